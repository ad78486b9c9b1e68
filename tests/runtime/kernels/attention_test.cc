#include "runtime/kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "runtime/base/philox.h"
#include "tests/runtime/kernels/each_target.h"
#include "tests/support/random_floats.h"
#include "tests/support/test_executors.h"

namespace folio {
namespace {

// K/V of one sequence in pages at shuffled places; slots that hold no token,
// and pages of nobody, are NaN.
class PagedSequence {
 public:
  PagedSequence(const AttentionShape& shape, int32_t page_size,
                int32_t num_tokens, std::span<const float> keys,
                std::span<const float> values, uint64_t seed)
      : kv_{.page_size = page_size,
            .key_offset = 64,  // As if another layer came first.
            .value_offset = 64 + int64_t{shape.num_kv_heads} * page_size *
                                     shape.head_dim * int64_t{sizeof(float)},
            .head_stride =
                int64_t{page_size} * shape.head_dim * int64_t{sizeof(float)}} {
    const int32_t num_pages = (num_tokens + page_size - 1) / page_size;
    const size_t page_floats =
        16 + 2 * size_t(shape.num_kv_heads) * page_size * shape.head_dim;
    memory_.assign(page_floats * (num_pages + 1),
                   std::numeric_limits<float>::quiet_NaN());
    std::vector<int32_t> places(num_pages);
    for (int32_t i = 0; i < num_pages; ++i) places[i] = i;
    for (int32_t i = num_pages - 1; i > 0; --i) {
      std::swap(places[i], places[PhiloxAt(seed, 9, i)[0] % (i + 1)]);
    }
    for (int32_t place : places) {
      pages_.push_back(
          reinterpret_cast<std::byte*>(memory_.data() + place * page_floats));
    }
    for (int32_t t = 0; t < num_tokens; ++t) {
      for (int32_t h = 0; h < shape.num_kv_heads; ++h) {
        const size_t source =
            (size_t(t) * shape.num_kv_heads + h) * shape.head_dim;
        Store(t, kv_.key_offset + h * kv_.head_stride,
              keys.subspan(source, shape.head_dim));
        Store(t, kv_.value_offset + h * kv_.head_stride,
              values.subspan(source, shape.head_dim));
      }
    }
  }

  const PagedKv& kv() const { return kv_; }
  std::span<const std::byte* const> pages() const { return pages_; }

 private:
  void Store(int32_t token, int64_t head_offset, std::span<const float> row) {
    // Pages are this object's own memory.
    std::byte* page =
        const_cast<std::byte*>(pages_[token / kv_.page_size]) + head_offset;
    std::memcpy(page + (token % kv_.page_size) * row.size_bytes(), row.data(),
                row.size_bytes());
  }

  PagedKv kv_;
  std::vector<float> memory_;
  std::vector<const std::byte*> pages_;
};

// One sequence's q, k and v, [num_tokens, heads, head_dim].
struct Problem {
  Problem(const AttentionShape& s, int32_t tokens, uint64_t seed_in)
      : shape(s),
        num_tokens(tokens),
        seed(seed_in),
        width(s.num_heads * s.head_dim),
        // Scores up to about 8 times head_dim: sharp and flat rows.
        q(RandomFloats(seed, size_t(tokens) * width, 4)),
        keys(RandomFloats(seed + 1,
                          size_t(tokens) * s.num_kv_heads * s.head_dim, 2)),
        values(RandomFloats(seed + 2, keys.size(), 1)) {}

  PagedSequence Paged(int32_t page_size) const {
    return PagedSequence(shape, page_size, num_tokens, keys, values, seed + 3);
  }

  AttentionShape shape;
  int32_t num_tokens;
  uint64_t seed;
  int32_t width;
  std::vector<float> q;
  std::vector<float> keys;
  std::vector<float> values;
};

// The definition, in double precision.
std::vector<double> Naive(const Problem& p) {
  const AttentionShape& s = p.shape;
  const int32_t group = s.num_heads / s.num_kv_heads;
  std::vector<double> out(p.q.size(), 0.0);
  for (int32_t t = 0; t < p.num_tokens; ++t) {
    for (int32_t h = 0; h < s.num_heads; ++h) {
      const size_t row = (size_t(t) * s.num_heads + h) * s.head_dim;
      const auto kv_row = [&](int32_t j) {
        return (size_t(j) * s.num_kv_heads + h / group) * s.head_dim;
      };
      std::vector<double> weights(t + 1);
      for (int32_t j = 0; j <= t; ++j) {
        for (int32_t i = 0; i < s.head_dim; ++i) {
          weights[j] += double{p.q[row + i]} * p.keys[kv_row(j) + i];
        }
        weights[j] /= std::sqrt(double(s.head_dim));
      }
      const double max = *std::max_element(weights.begin(), weights.end());
      double total = 0;
      for (double& w : weights) total += w = std::exp(w - max);
      for (int32_t j = 0; j <= t; ++j) {
        for (int32_t i = 0; i < s.head_dim; ++i) {
          out[row + i] += weights[j] / total * p.values[kv_row(j) + i];
        }
      }
    }
  }
  return out;
}

// Computes the sequence in chunks of `chunk` rows.
std::vector<float> Attend(const Problem& p, const PagedSequence& paged,
                          int32_t chunk, Executor& executor) {
  PagedAttention attention(p.shape, p.num_tokens, &executor);
  std::vector<float> out(p.q.size(), std::numeric_limits<float>::quiet_NaN());
  for (int32_t first = 0; first < p.num_tokens; first += chunk) {
    const int32_t rows = std::min(chunk, p.num_tokens - first);
    const AttentionSequence sequence{.first_row = 0,
                                     .num_rows = rows,
                                     .first_position = first,
                                     .pages = paged.pages()};
    const size_t start = size_t(first) * p.width;
    attention.Run(std::span(p.q).subspan(start), {&sequence, 1}, paged.kv(),
                  std::span(out).subspan(start));
  }
  return out;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

class AttentionTest : public testing::TestWithParam<AttentionShape> {};

TEST_P(AttentionTest, AgreesWithTheDefinitionAndItsOwnChunksOnEveryTarget) {
  const Problem p(GetParam(), 200, /*seed=*/5);
  SerialExecutor executor;
  const std::vector<double> exact = Naive(p);
  // A score is a sum of head_dim products of at most 8 with an error of at most
  // head_dim * 2^-24 times their sum, over sqrt(head_dim); the weights'
  // relative errors are twice that (numerator and denominator), values are at
  // most 1. The rest, exp, rescaling and the sum over 200 positions, is at most
  // 500 * 2^-24.
  const double d = GetParam().head_dim;
  const double bound = (2 * 8 * d * (d + 1) / std::sqrt(d) + 500) * 0x1p-24;
  ForEachTarget([&] {
    const std::vector<float> out = Attend(p, p.Paged(16), 200, executor);
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(out[i], exact[i], bound) << "element " << i;
    }
    EXPECT_TRUE(SameBits(Attend(p, p.Paged(8), 1, executor), out));
    EXPECT_TRUE(SameBits(Attend(p, p.Paged(1), 37, executor), out));
  });
}

TEST_P(AttentionTest, DoesNotDependOnChunks) {
  const Problem p(GetParam(), 150, /*seed=*/6);
  SerialExecutor executor;
  const PagedSequence paged = p.Paged(16);
  const std::vector<float> whole = Attend(p, paged, p.num_tokens, executor);
  for (int32_t chunk : {1, 2, 3, 5, 13, 31, 32, 33, 63, 64, 65, 100, 149}) {
    EXPECT_TRUE(SameBits(Attend(p, paged, chunk, executor), whole))
        << "chunks of " << chunk;
  }
}

TEST_P(AttentionTest, DoesNotDependOnThePageSize) {
  const Problem p(GetParam(), 150, /*seed=*/7);
  SerialExecutor executor;
  const std::vector<float> expected = Attend(p, p.Paged(150), 150, executor);
  for (int32_t page_size : {1, 2, 3, 4, 7, 8, 16, 32, 64, 100, 128}) {
    for (int32_t chunk : {1, 150}) {
      EXPECT_TRUE(
          SameBits(Attend(p, p.Paged(page_size), chunk, executor), expected))
          << "pages of " << page_size << ", chunks of " << chunk;
    }
  }
}

TEST_P(AttentionTest, DoesNotDependOnThreadsOrCompany) {
  const Problem a(GetParam(), 130, /*seed=*/8);
  const Problem b(GetParam(), 90, /*seed=*/9);
  const Problem c(GetParam(), 70, /*seed=*/10);
  const PagedSequence pages[] = {a.Paged(16), b.Paged(16), c.Paged(16)};
  SerialExecutor serial;
  const std::vector<float> alone[] = {Attend(a, pages[0], 130, serial),
                                      Attend(b, pages[1], 90, serial),
                                      Attend(c, pages[2], 70, serial)};
  // All of a, the last 17 tokens of b, the last one of c.
  const AttentionSequence sequences[] = {{.first_row = 0,
                                          .num_rows = 130,
                                          .first_position = 0,
                                          .pages = pages[0].pages()},
                                         {.first_row = 130,
                                          .num_rows = 17,
                                          .first_position = 73,
                                          .pages = pages[1].pages()},
                                         {.first_row = 147,
                                          .num_rows = 1,
                                          .first_position = 69,
                                          .pages = pages[2].pages()}};
  const auto tail = [&](std::span<const float> rows, int32_t count) {
    return rows.last(size_t(count) * a.width);
  };
  std::vector<float> q = a.q;
  std::vector<float> expected = alone[0];
  for (float x : tail(b.q, 17)) q.push_back(x);
  for (float x : tail(c.q, 1)) q.push_back(x);
  for (float x : tail(alone[1], 17)) expected.push_back(x);
  for (float x : tail(alone[2], 1)) expected.push_back(x);

  std::vector<std::unique_ptr<Executor>> executors;
  executors.push_back(std::make_unique<SerialExecutor>());
  executors.push_back(std::make_unique<BackwardExecutor>(3));
  executors.push_back(std::make_unique<ThreadExecutor>(2));
  executors.push_back(MakeParallelTestExecutor(2));
  for (const auto& executor : executors) {
    PagedAttention attention(GetParam(), 148, executor.get());
    std::vector<float> out(q.size());
    attention.Run(q, sequences, pages[0].kv(), out);
    EXPECT_TRUE(SameBits(out, expected))
        << executor->num_workers() << " workers";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionTest,
    testing::Values(AttentionShape{4, 4, 16}, AttentionShape{9, 9, 64},
                    AttentionShape{9, 3, 64}, AttentionShape{4, 1, 128},
                    AttentionShape{5, 5, 2}, AttentionShape{2, 1, 7},
                    AttentionShape{3, 3, 1}, AttentionShape{40, 1, 80},
                    AttentionShape{2, 2, 37}),
    [](const auto& test) {
      return "Heads" + std::to_string(test.param.num_heads) + "Kv" +
             std::to_string(test.param.num_kv_heads) + "Dim" +
             std::to_string(test.param.head_dim);
    });

// Hand-computed: with keys of 0 every position weighs the same.
TEST(AttentionHandTest, EqualScoresGiveTheMean) {
  const AttentionShape shape{.num_heads = 1, .num_kv_heads = 1, .head_dim = 1};
  Problem p(shape, 4, /*seed=*/1);
  p.keys = {0, 0, 0, 0};
  p.values = {1, 3, 8, 4};
  SerialExecutor executor;
  EXPECT_EQ(Attend(p, p.Paged(2), 4, executor),
            (std::vector<float>{1, 2, 4, 4}));
}

}  // namespace
}  // namespace folio
