#include "runtime/kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/runtime/kernels/attention_problem.h"
#include "tests/runtime/kernels/each_target.h"
#include "tests/runtime/kernels/matrices.h"
#include "tests/support/sanitized.h"
#include "tests/support/test_executors.h"

namespace folio {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr ElementType kF32 = ElementType::kF32;
constexpr ElementType kBf16 = ElementType::kBf16;

using Problem = AttentionProblem;
using Way = AttentionWay;

// Computes the sequence in chunks; before each, no more is in the pages than
// its rows see.
Activations Attend(const Problem& p, const Way& way, Executor& executor) {
  PagedSequence paged(p, way);
  PagedAttention attention(p.shape, way.window, p.num_tokens, &executor);
  Activations out(way.out_type, p.num_tokens, p.width);
  Activations part(way.out_type, p.num_tokens, p.width);
  for (int32_t first = 0; first < p.num_tokens;) {
    const int32_t rows = std::min(way.chunk, p.num_tokens - first);
    paged.GrowTo(first + rows);
    paged.ForgetBefore(FirstSeen(first, way.window));
    const AttentionSequence sequence{.first_row = 0,
                                     .num_rows = rows,
                                     .first_position = first,
                                     .pages = paged.pages()};
    attention.Run(p.Queries(first, rows), {&sequence, 1}, paged.kv(), part);
    std::copy_n(part.row(0), size_t(rows) * p.width * BytesOf(way.out_type),
                out.MutableRow(first));
    first += rows;
  }
  return out;
}

std::vector<float> Result(const Problem& p, const Way& way,
                          Executor& executor) {
  Activations out = Attend(p, way, executor);
  return Values(out, p.num_tokens);
}

// No window, the reference model's, some around a block, and one that never
// ends.
std::vector<std::optional<int32_t>> Windows() {
  if (kSanitized) return {std::nullopt, 2, 65};
  return {std::nullopt, 1, 2, 24, 63, 64, 65, 100, 1000};
}

std::string NameOf(std::optional<int32_t> window) {
  return window.has_value() ? "window " + std::to_string(*window) : "no window";
}

class AttentionTest : public testing::TestWithParam<AttentionShape> {};

TEST_P(AttentionTest, AgreesWithTheDefinitionAndItsOwnChunksOnEveryTarget) {
  const Problem p(GetParam(), kSanitized ? 100 : 200, /*seed=*/5);
  SerialExecutor executor;
  // A score is a sum of head_dim products of at most 8 with an error of at most
  // head_dim * 2^-24 times their sum, over sqrt(head_dim); the weights'
  // relative errors are twice that (numerator and denominator), values are at
  // most 1. The rest, exp, rescaling and the sum over 200 positions, is at most
  // 500 * 2^-24.
  const double d = GetParam().head_dim;
  const double bound = (2 * 8 * d * (d + 1) / std::sqrt(d) + 500) * 0x1p-24;
  for (const auto& window : Windows()) {
    SCOPED_TRACE(NameOf(window));
    const std::vector<double> exact = NaiveAttention(p, window);
    ForEachTarget([&] {
      const std::vector<float> out = Result(p, {.window = window}, executor);
      for (size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(out[i], exact[i], bound) << "element " << i;
      }
      for (const Way& way : {Way{.page_size = 8, .chunk = 1},
                             Way{.page_size = 1, .chunk = 37}}) {
        Way other = way;
        other.window = window;
        EXPECT_TRUE(SameBits(Result(p, other, executor), out));
      }
    });
  }
}

TEST_P(AttentionTest, DoesNotDependOnChunks) {
  const Problem p(GetParam(), 150, /*seed=*/6);
  SerialExecutor executor;
  for (const auto& window : Windows()) {
    const std::vector<float> whole = Result(p, {.window = window}, executor);
    for (int32_t chunk : {1, 2, 3, 5, 13, 31, 32, 33, 63, 64, 65, 100, 149}) {
      const Way way{.chunk = chunk, .window = window};
      EXPECT_TRUE(SameBits(Result(p, way, executor), whole))
          << "chunks of " << chunk << ", " << NameOf(window);
    }
  }
}

TEST_P(AttentionTest, DoesNotDependOnThePageSize) {
  const Problem p(GetParam(), 150, /*seed=*/7);
  SerialExecutor executor;
  for (const auto& window : Windows()) {
    const std::vector<float> expected =
        Result(p, {.page_size = 150, .window = window}, executor);
    for (int32_t page_size : {1, 2, 3, 4, 7, 8, 16, 32, 64, 100, 128}) {
      for (int32_t chunk : {1, 150}) {
        const Way way{.page_size = page_size, .chunk = chunk, .window = window};
        EXPECT_TRUE(SameBits(Result(p, way, executor), expected))
            << "pages of " << page_size << ", chunks of " << chunk << ", "
            << NameOf(window);
      }
    }
  }
}

TEST_P(AttentionTest, AWindowThatHoldsTheSequenceChangesNothing) {
  const Problem p(GetParam(), 150, /*seed=*/11);
  SerialExecutor executor;
  const std::vector<float> expected = Result(p, {}, executor);
  for (int32_t window : {150, 151, 4096, std::numeric_limits<int32_t>::max()}) {
    for (int32_t chunk : {1, 70, 150}) {
      const Way way{.chunk = chunk, .window = window};
      EXPECT_TRUE(SameBits(Result(p, way, executor), expected))
          << NameOf(window);
    }
  }
  EXPECT_FALSE(SameBits(Result(p, {.window = 149}, executor), expected));
}

TEST_P(AttentionTest, Bf16KvIsTheSameNumbersAsF32) {
  const Problem p(GetParam(), 150, /*seed=*/12);
  Problem rounded = p;
  rounded.keys = Rounded(p.keys, kBf16);
  rounded.values = Rounded(p.values, kBf16);
  SerialExecutor executor;
  ForEachTarget([&] {
    for (const auto& window : {std::optional<int32_t>(), {24}, {65}}) {
      const std::vector<float> expected =
          Result(rounded, {.window = window}, executor);
      for (int32_t chunk : {1, 40, 150}) {
        const Way way{
            .page_size = 8, .chunk = chunk, .window = window, .kv_type = kBf16};
        EXPECT_TRUE(SameBits(Result(p, way, executor), expected))
            << "chunks of " << chunk << ", " << NameOf(window);
      }
    }
  });
}

TEST_P(AttentionTest, Bf16OutputIsTheRoundedF32) {
  const Problem p(GetParam(), 90, /*seed=*/13);
  SerialExecutor executor;
  ForEachTarget([&] {
    for (ElementType kv_type : {kF32, kBf16}) {
      for (int32_t chunk : {1, 90}) {
        const Way way{.chunk = chunk, .window = 70, .kv_type = kv_type};
        Way to_bf16 = way;
        to_bf16.out_type = kBf16;
        Activations f32 = Attend(p, way, executor);
        Activations bf16 = Attend(p, to_bf16, executor);
        EXPECT_TRUE(IsRounded(bf16, f32));
      }
    }
  });
}

// What the token at one position sees is no number: that must show in every
// row that sees it, and in no other.
TEST_P(AttentionTest, NanGoesWhereItIsSeen) {
  constexpr int32_t kBad = 70;
  const Problem p(GetParam(), 150, /*seed=*/14);
  SerialExecutor executor;
  const auto check = [&](const Problem& bad, std::optional<int32_t> window) {
    const std::vector<float> clean = Result(p, {.window = window}, executor);
    const std::vector<float> out = Result(bad, {.window = window}, executor);
    for (int32_t t = 0; t < p.num_tokens; ++t) {
      const bool sees = t >= kBad && FirstSeen(t, window) <= kBad;
      for (int32_t i = 0; i < p.width; ++i) {
        const size_t place = size_t(t) * p.width + i;
        if (sees) {
          ASSERT_TRUE(std::isnan(out[place])) << "row " << t;
        } else {
          ASSERT_EQ(out[place], clean[place]) << "row " << t;
        }
      }
    }
  };
  Problem bad_key = p;
  Problem bad_value = p;
  for (int32_t h = 0; h < p.shape.num_kv_heads; ++h) {
    // One element of the key; all of the value.
    bad_key.keys[p.KvPlace(kBad, h)] = kNan;
    std::fill_n(bad_value.values.begin() + p.KvPlace(kBad, h), p.shape.head_dim,
                kNan);
  }
  ForEachTarget([&] {
    for (const auto& window : {std::optional<int32_t>(), {24}}) {
      check(bad_value, window);
      check(bad_key, window);
    }
  });
}

// Some rows of several sequences in one batch.
struct Company {
  struct Member {
    const Problem* problem;
    int32_t first;  // Position of its first row.
  };

  Company(std::span<const Member> members, const Way& way, Executor& executor) {
    for (const Member& m : members) {
      const Problem& p = *m.problem;
      const int32_t rows = p.num_tokens - m.first;
      PagedSequence& paged =
          *pages.emplace_back(std::make_unique<PagedSequence>(p, way));
      paged.GrowTo(p.num_tokens);
      paged.ForgetBefore(FirstSeen(m.first, way.window));
      sequences.push_back({.first_row = num_rows,
                           .num_rows = rows,
                           .first_position = m.first,
                           .pages = paged.pages()});
      num_rows += rows;
      const auto queries = p.Queries(m.first, rows);
      q.insert(q.end(), queries.begin(), queries.end());
      const std::vector<float> alone = Result(p, way, executor);
      expected.insert(expected.end(), alone.end() - queries.size(),
                      alone.end());
    }
  }

  std::vector<std::unique_ptr<PagedSequence>> pages;
  std::vector<AttentionSequence> sequences;
  int32_t num_rows = 0;
  std::vector<float> q;
  std::vector<float> expected;  // Of each alone.
};

TEST_P(AttentionTest, DoesNotDependOnThreadsOrCompany) {
  const Problem a(GetParam(), 130, /*seed=*/8);
  const Problem b(GetParam(), 90, /*seed=*/9);
  const Problem c(GetParam(), 70, /*seed=*/10);
  const Company::Member members[] = {{&a, 0}, {&b, 73}, {&c, 69}};
  std::vector<std::unique_ptr<Executor>> executors;
  executors.push_back(std::make_unique<SerialExecutor>());
  executors.push_back(std::make_unique<BackwardExecutor>(3));
  executors.push_back(std::make_unique<ThreadExecutor>(2));
  executors.push_back(MakeParallelTestExecutor(2));
  SerialExecutor serial;
  for (const auto& window : Windows()) {
    const Company company(members, {.window = window}, serial);
    for (const auto& executor : executors) {
      // Two rows more than there are, which are left alone.
      PagedAttention attention(GetParam(), window, company.num_rows + 2,
                               executor.get());
      Activations out(kF32, company.num_rows + 2, a.width);
      const std::vector<float> others(2 * a.width, 7.0f);
      SetRows(out, company.num_rows, others);
      attention.Run(company.q, company.sequences, company.pages[0]->kv(), out);
      std::vector<float> expected = company.expected;
      expected.insert(expected.end(), others.begin(), others.end());
      EXPECT_TRUE(SameBits(Values(out, out.max_rows()), expected))
          << executor->num_workers() << " workers, " << NameOf(window);
    }
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
  EXPECT_EQ(Result(p, {.page_size = 2}, executor),
            (std::vector<float>{1, 2, 4, 4}));
  EXPECT_EQ(Result(p, {.page_size = 2, .window = 2}, executor),
            (std::vector<float>{1, 2, 5.5f, 6}));
  EXPECT_EQ(Result(p, {.page_size = 2, .window = 1}, executor),
            (std::vector<float>{1, 3, 8, 4}));
}

}  // namespace
}  // namespace folio
