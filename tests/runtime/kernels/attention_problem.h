// Sequences to attend to, the pages they lie in, and the truth about them.

#ifndef TESTS_RUNTIME_KERNELS_ATTENTION_PROBLEM_H_
#define TESTS_RUNTIME_KERNELS_ATTENTION_PROBLEM_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/bf16.h"
#include "tests/runtime/kernels/kv_places.h"
#include "tests/support/random_floats.h"

namespace folio {

// One sequence's q, k and v, [num_tokens, heads, head_dim].
struct AttentionProblem {
  AttentionProblem(const AttentionShape& s, int32_t tokens, uint64_t seed_in)
      : shape(s),
        num_tokens(tokens),
        seed(seed_in),
        width(s.num_heads * s.head_dim),
        // Scores up to 8 times the root of head_dim: sharp and flat rows.
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
};

// The elements of one row of K or V of a token and head as they are stored,
// rounded plainly.
struct StoredRow {
  StoredRow(std::span<const float> row, ElementType type) {
    if (type == ElementType::kInt8) {
      for (const float v : row) {
        scale = std::isfinite(v) ? std::max(scale, std::abs(v) / 127)
                                 : std::numeric_limits<float>::quiet_NaN();
        if (std::isnan(scale)) break;
      }
    }
    for (const float v : row) {
      if (type == ElementType::kF32) {
        Append(v);
        values.push_back(v);
      } else if (type == ElementType::kBf16) {
        Append(ToBf16(v));
        values.push_back(FromBf16(ToBf16(v)));
      } else {
        const bool is_number = scale > 0;
        const auto q =
            static_cast<int8_t>(is_number ? std::nearbyint(v / scale) : 0);
        Append(q);
        values.push_back(scale * q);
      }
    }
  }

  std::vector<std::byte> bytes;
  float scale = 0;            // Of int8.
  std::vector<float> values;  // What it holds.

 private:
  template <typename T>
  void Append(T value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof(value));
  }
};

// The problem that is really solved: K and V are what is stored, and with
// anything less than f32 q is rounded to bf16, multiplied by what makes scores
// powers of 2.
inline AttentionProblem AsStored(AttentionProblem p, ElementType kv_type) {
  for (std::vector<float>* rows : {&p.keys, &p.values}) {
    for (size_t i = 0; i < rows->size(); i += p.shape.head_dim) {
      const std::span<float> row =
          std::span(*rows).subspan(i, p.shape.head_dim);
      const StoredRow stored(row, kv_type);
      std::copy(stored.values.begin(), stored.values.end(), row.begin());
    }
  }
  if (kv_type != ElementType::kF32) {
    const float factor = static_cast<float>(
        std::numbers::log2e / std::sqrt(static_cast<double>(p.shape.head_dim)));
    for (float& value : p.q) value = FromBf16(ToBf16(value * factor)) / factor;
  }
  return p;
}

// K/V of one sequence in pages at shuffled places. Slots that hold no token,
// or one that was forgotten, have all bits set, which is NaN, as have scales;
// pages without any token are null.
class PagedSequence {
 public:
  PagedSequence(const AttentionProblem& problem, const AttentionWay& way)
      : problem_(problem), kv_(LayOut(way, problem.shape.head_dim)) {
    const int32_t num_pages =
        (problem.num_tokens + way.page_size - 1) / way.page_size;
    const int64_t page_bytes =
        kv_.key_offset + problem.shape.num_kv_heads * kv_.head_stride;
    memory_.resize(static_cast<size_t>(page_bytes * num_pages),
                   std::byte{0xFF});
    for (int32_t i = 0; i < num_pages; ++i) {
      places_.push_back(memory_.data() + i * page_bytes);
    }
    for (int32_t i = num_pages - 1; i > 0; --i) {
      std::swap(places_[i], places_[PhiloxAt(problem.seed, 9, i)[0] % (i + 1)]);
    }
    pages_.assign(num_pages, nullptr);
  }

  // Adds the tokens before `end`.
  void GrowTo(int32_t end) {
    for (; size_ < end; ++size_) {
      pages_[size_ / kv_.page_size] = places_[size_ / kv_.page_size];
      for (int32_t h = 0; h < problem_.shape.num_kv_heads; ++h) {
        Store(size_, h, /*is_key=*/true, problem_.keys);
        Store(size_, h, /*is_key=*/false, problem_.values);
      }
    }
  }

  // Takes away the tokens before `end` and the pages that only hold those.
  void ForgetBefore(int32_t end) {
    for (; forgotten_ < end; ++forgotten_) {
      for (int32_t h = 0; h < problem_.shape.num_kv_heads; ++h) {
        for (const bool is_key : {true, false}) {
          ForEachPlace(forgotten_, h, is_key,
                       [](std::byte* place, size_t size, int32_t) {
                         std::memset(place, 0xFF, size);
                       });
        }
      }
    }
    std::fill_n(pages_.begin(), forgotten_ / kv_.page_size, nullptr);
  }

  const PagedKv& kv() const { return kv_; }
  std::span<const std::byte* const> pages() const { return pages_; }

 private:
  static PagedKv LayOut(const AttentionWay& way, int32_t head_dim) {
    PagedKv kv{.type = way.kv_type,
               .page_size = way.page_size,
               .key_offset = 64};  // As if another layer came first.
    const int64_t array_bytes = KvArrayBytes(kv, head_dim);
    const int64_t scale_bytes = way.page_size * int64_t{sizeof(float)};
    kv.value_offset = kv.key_offset + array_bytes;
    kv.key_scale_offset = kv.value_offset + array_bytes + 12;
    kv.value_scale_offset = kv.key_scale_offset + scale_bytes;
    kv.head_stride = kv.value_scale_offset + scale_bytes - kv.key_offset;
    return kv;
  }

  static constexpr int32_t kScale = -1;

  // body(place, size, column) for all of a token's key or value of one head:
  // the columns that it has in a page, and its scale.
  template <typename Body>
  void ForEachPlace(int32_t token, int32_t head, bool is_key,
                    const Body& body) {
    std::byte* const page = places_[token / kv_.page_size];
    const int32_t slot = token % kv_.page_size;
    const int32_t dim = problem_.shape.head_dim;
    const int32_t columns = is_key ? PaddedKeySize(kv_, dim) : dim;
    for (int32_t i = 0; i < columns; ++i) {
      body(is_key ? KeyPlace(kv_, page, head, slot, i)
                  : ValuePlace(kv_, page, head, dim, slot, i),
           BytesOf(kv_.type), i);
    }
    if (kv_.type != ElementType::kInt8) return;
    body(ScalePlace(kv_, page, head, is_key, slot), sizeof(float), kScale);
  }

  void Store(int32_t token, int32_t head, bool is_key,
             std::span<const float> rows) {
    const int32_t dim = problem_.shape.head_dim;
    const StoredRow row(rows.subspan(problem_.KvPlace(token, head), dim),
                        kv_.type);
    ForEachPlace(token, head, is_key,
                 [&](std::byte* place, size_t size, int32_t column) {
                   if (column == kScale) {
                     std::memcpy(place, &row.scale, size);
                   } else if (column >= dim) {
                     std::memset(place, 0, size);
                   } else {
                     std::memcpy(place, row.bytes.data() + column * size, size);
                   }
                 });
  }

  const AttentionProblem& problem_;
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
