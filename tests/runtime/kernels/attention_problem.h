// Sequences to attend to, the pages they lie in, and the truth about them.

#ifndef TESTS_RUNTIME_KERNELS_ATTENTION_PROBLEM_H_
#define TESTS_RUNTIME_KERNELS_ATTENTION_PROBLEM_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/bf16.h"
#include "tests/support/random_floats.h"

namespace folio {

// One sequence's q, k and v, [num_tokens, heads, head_dim].
struct AttentionProblem {
  AttentionProblem(const AttentionShape& s, int32_t tokens, uint64_t seed_in)
      : shape(s),
        num_tokens(tokens),
        seed(seed_in),
        width(s.num_heads * s.head_dim),
        // Scores up to about 8 times head_dim: sharp and flat rows.
        q(RandomFloats(seed, size_t(tokens) * width, 4)),
        keys(RandomFloats(seed + 1,
                          size_t(tokens) * s.num_kv_heads * s.head_dim, 2)),
        values(RandomFloats(seed + 2, keys.size(), 1)) {}

  // Where a token's key or value of one head begins.
  size_t KvPlace(int32_t token, int32_t kv_head) const {
    return (size_t(token) * shape.num_kv_heads + kv_head) * shape.head_dim;
  }
  std::span<const float> Queries(int32_t first, int32_t rows) const {
    return std::span(q).subspan(size_t(first) * width, size_t(rows) * width);
  }

  AttentionShape shape;
  int32_t num_tokens;
  uint64_t seed;
  int32_t width;
  std::vector<float> q;
  std::vector<float> keys;
  std::vector<float> values;
};

// How to compute it.
struct AttentionWay {
  int32_t page_size = 16;
  int32_t chunk = std::numeric_limits<int32_t>::max();
  std::optional<int32_t> window = {};
  ElementType kv_type = ElementType::kF32;
  ElementType out_type = ElementType::kF32;
};

// K/V of one sequence in pages at shuffled places. Slots that hold no token,
// or one that was forgotten, are NaN; pages without any token are null.
class PagedSequence {
 public:
  PagedSequence(const AttentionProblem& problem, const AttentionWay& way)
      : problem_(problem),
        row_bytes_(problem.shape.head_dim * BytesOf(way.kv_type)),
        kv_{.type = way.kv_type,
            .page_size = way.page_size,
            .key_offset = 64,  // As if another layer came first.
            .value_offset =
                64 + problem.shape.num_kv_heads * way.page_size * row_bytes_,
            .head_stride = way.page_size * row_bytes_} {
    const int32_t num_pages =
        (problem.num_tokens + way.page_size - 1) / way.page_size;
    const int64_t page_bytes =
        kv_.value_offset + problem.shape.num_kv_heads * kv_.head_stride;
    memory_.resize(static_cast<size_t>(page_bytes * num_pages));
    for (int32_t i = 0; i < num_pages; ++i) {
      places_.push_back(memory_.data() + i * page_bytes);
    }
    for (int32_t i = num_pages - 1; i > 0; --i) {
      std::swap(places_[i], places_[PhiloxAt(problem.seed, 9, i)[0] % (i + 1)]);
    }
    pages_.assign(num_pages, nullptr);
    const std::vector<float> nothing(problem.shape.head_dim,
                                     std::numeric_limits<float>::quiet_NaN());
    for (int32_t t = 0; t < num_pages * way.page_size; ++t) {
      Store(t, [&](int32_t) { return std::pair(nothing, nothing); });
    }
  }

  // Adds the tokens before `end`.
  void GrowTo(int32_t end) {
    const auto row_of = [&](const std::vector<float>& rows, size_t place) {
      return std::vector<float>(rows.begin() + place,
                                rows.begin() + place + problem_.shape.head_dim);
    };
    for (; size_ < end; ++size_) {
      pages_[size_ / kv_.page_size] = places_[size_ / kv_.page_size];
      Store(size_, [&](int32_t head) {
        const size_t place = problem_.KvPlace(size_, head);
        return std::pair(row_of(problem_.keys, place),
                         row_of(problem_.values, place));
      });
    }
  }

  // Takes away the tokens before `end` and the pages that only hold those.
  void ForgetBefore(int32_t end) {
    const std::vector<float> nothing(problem_.shape.head_dim,
                                     std::numeric_limits<float>::quiet_NaN());
    for (; forgotten_ < end; ++forgotten_) {
      Store(forgotten_, [&](int32_t) { return std::pair(nothing, nothing); });
    }
    std::fill_n(pages_.begin(), forgotten_ / kv_.page_size, nullptr);
  }

  const PagedKv& kv() const { return kv_; }
  std::span<const std::byte* const> pages() const { return pages_; }

 private:
  // rows_of(head) gives the key and the value.
  template <typename RowsOf>
  void Store(int32_t token, const RowsOf& rows_of) {
    std::byte* slot =
        places_[token / kv_.page_size] + (token % kv_.page_size) * row_bytes_;
    for (int32_t h = 0; h < problem_.shape.num_kv_heads; ++h) {
      const auto [key, value] = rows_of(h);
      StoreRow(key, slot + kv_.key_offset + h * kv_.head_stride);
      StoreRow(value, slot + kv_.value_offset + h * kv_.head_stride);
    }
  }
  void StoreRow(std::span<const float> row, std::byte* place) {
    if (kv_.type == ElementType::kF32) {
      std::memcpy(place, row.data(), row.size_bytes());
      return;
    }
    for (const float value : row) {
      const uint16_t bits = ToBf16(value);
      std::memcpy(place, &bits, sizeof(bits));
      place += sizeof(bits);
    }
  }

  const AttentionProblem& problem_;
  const int64_t row_bytes_;
  const PagedKv kv_;
  std::vector<std::byte> memory_;
  std::vector<std::byte*> places_;  // Of the pages, in logical order.
  std::vector<const std::byte*> pages_;
  int32_t size_ = 0;
  int32_t forgotten_ = 0;
};

inline int32_t FirstSeen(int32_t position, std::optional<int32_t> window) {
  return window.has_value() ? std::max(0, position - *window + 1) : 0;
}

// The definition, in double precision.
inline std::vector<double> NaiveAttention(const AttentionProblem& p,
                                          std::optional<int32_t> window) {
  const AttentionShape& s = p.shape;
  const int32_t group = s.num_heads / s.num_kv_heads;
  std::vector<double> out(p.q.size(), 0.0);
  for (int32_t t = 0; t < p.num_tokens; ++t) {
    const int32_t from = FirstSeen(t, window);
    for (int32_t h = 0; h < s.num_heads; ++h) {
      const size_t row = (size_t(t) * s.num_heads + h) * s.head_dim;
      std::vector<double> weights(t + 1);
      for (int32_t j = from; j <= t; ++j) {
        for (int32_t i = 0; i < s.head_dim; ++i) {
          weights[j] +=
              double{p.q[row + i]} * p.keys[p.KvPlace(j, h / group) + i];
        }
        weights[j] /= std::sqrt(double(s.head_dim));
      }
      const double max =
          *std::max_element(weights.begin() + from, weights.end());
      double total = 0;
      for (int32_t j = from; j <= t; ++j) {
        total += weights[j] = std::exp(weights[j] - max);
      }
      for (int32_t j = from; j <= t; ++j) {
        for (int32_t i = 0; i < s.head_dim; ++i) {
          out[row + i] +=
              weights[j] / total * p.values[p.KvPlace(j, h / group) + i];
        }
      }
    }
  }
  return out;
}

}  // namespace folio

#endif  // TESTS_RUNTIME_KERNELS_ATTENTION_PROBLEM_H_
