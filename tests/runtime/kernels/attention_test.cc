#include "runtime/kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
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
constexpr ElementType kInt8 = ElementType::kInt8;

using Problem = AttentionProblem;
using Way = AttentionWay;

// Computes the sequence in chunks; before each, no more is in the pages than
// its rows see.
std::vector<float> Result(const Problem& p, const Way& way,
                          Executor& executor) {
  PagedSequence paged(p, way);
  PagedAttention attention(p.shape, way.window, p.num_tokens, &executor);
  Activations part(kF32, p.num_tokens, p.width, executor.num_workers());
  std::vector<float> out;
  for (int32_t first = 0; first < p.num_tokens;) {
    const int32_t rows = std::min(way.chunk, p.num_tokens - first);
    paged.GrowTo(first + rows);
    paged.ForgetBefore(FirstSeen(first, way.window));
    const AttentionSequence sequence{.first_row = 0,
                                     .num_rows = rows,
                                     .first_position = first,
                                     .pages = paged.pages()};
    attention.Plan({&sequence, 1});
    attention.Attend(p.Queries(first, rows), paged.kv());
    attention.Finish({0, rows}, part, executor);
    const std::vector<float> values = Values(part, rows);
    out.insert(out.end(), values.begin(), values.end());
    first += rows;
  }
  return out;
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

// How far a result may be from the definition.
//
// A score is a sum of head_dim products of at most 8 with an error of at most
// head_dim * 2^-24 times their sum, over sqrt(head_dim), and is scaled, shifted
// and merged by a few operations with an error of at most 2^-24 times the score
// each; the weights' relative errors are twice that (numerator and
// denominator), values are at most 1. The rest, exp2 (2^-21, twice), rescaling
// and sums over positions, is at most (500 + 2 * positions) * 2^-24.
//
// Where weights are bf16, each has a relative error of at most 2^-9, and before
// that of 2^-13, and so has their sum.
double Bound(const Problem& p, ElementType kv_type) {
  const double d = p.shape.head_dim;
  const double f32 =
      (2 * 8 * d * (d + 4) / std::sqrt(d) + 500 + 2 * p.num_tokens) * 0x1p-24;
  return kv_type == kF32 ? f32 : f32 + 0x1p-8 + 0x1p-12;
}

void ExpectNear(std::span<const float> out, std::span<const double> exact,
                double bound) {
  ASSERT_EQ(out.size(), exact.size());
  for (size_t i = 0; i < out.size(); ++i) {
    ASSERT_NEAR(out[i], exact[i], bound) << "element " << i;
  }
}

class AttentionTest
    : public testing::TestWithParam<std::tuple<AttentionShape, ElementType>> {
 protected:
  const AttentionShape& shape() const { return std::get<0>(GetParam()); }
  ElementType kv_type() const { return std::get<1>(GetParam()); }
};

TEST_P(AttentionTest, AgreesWithTheDefinitionAndItsOwnChunksOnEveryTarget) {
  const Problem p(shape(), kSanitized ? 100 : 200, /*seed=*/5);
  const Problem stored = AsStored(p, kv_type());
  SerialExecutor executor;
  for (const auto& window : Windows()) {
    SCOPED_TRACE(NameOf(window));
    const std::vector<double> exact = NaiveAttention(stored, window);
    ForEachTarget([&] {
      const std::vector<float> out =
          Result(p, {.window = window, .kv_type = kv_type()}, executor);
      ExpectNear(out, exact, Bound(p, kv_type()));
      for (const Way& way : {Way{.page_size = 8, .chunk = 1},
                             Way{.page_size = 24, .chunk = 37}}) {
        Way other = way;
        other.window = window;
        other.kv_type = kv_type();
        EXPECT_TRUE(SameBits(Result(p, other, executor), out));
      }
    });
  }
}

TEST_P(AttentionTest, DoesNotDependOnChunks) {
  const Problem p(shape(), 150, /*seed=*/6);
  SerialExecutor executor;
  for (const auto& window : Windows()) {
    const std::vector<float> whole =
        Result(p, {.window = window, .kv_type = kv_type()}, executor);
    for (int32_t chunk : {1, 2, 3, 5, 13, 31, 32, 33, 63, 64, 65, 100, 149}) {
      const Way way{.chunk = chunk, .window = window, .kv_type = kv_type()};
      EXPECT_TRUE(SameBits(Result(p, way, executor), whole))
          << "chunks of " << chunk << ", " << NameOf(window);
    }
  }
}

TEST_P(AttentionTest, DoesNotDependOnThePageSize) {
  const Problem p(shape(), 150, /*seed=*/7);
  SerialExecutor executor;
  for (const auto& window : Windows()) {
    const std::vector<float> expected =
        Result(p, {.page_size = 152, .window = window, .kv_type = kv_type()},
               executor);
    for (int32_t page_size : {8, 16, 24, 32, 40, 56, 64, 72, 80, 104, 128}) {
      for (int32_t chunk : {1, 150}) {
        const Way way{.page_size = page_size,
                      .chunk = chunk,
                      .window = window,
                      .kv_type = kv_type()};
        EXPECT_TRUE(SameBits(Result(p, way, executor), expected))
            << "pages of " << page_size << ", chunks of " << chunk << ", "
            << NameOf(window);
      }
    }
  }
}

TEST_P(AttentionTest, AWindowThatHoldsTheSequenceChangesNothing) {
  const Problem p(shape(), 150, /*seed=*/11);
  SerialExecutor executor;
  const std::vector<float> expected =
      Result(p, {.kv_type = kv_type()}, executor);
  const auto with_window = [&](int32_t window, int32_t chunk) {
    return Result(p, {.chunk = chunk, .window = window, .kv_type = kv_type()},
                  executor);
  };
  for (int32_t window : {150, 151, 4096, std::numeric_limits<int32_t>::max()}) {
    for (int32_t chunk : {1, 70, 150}) {
      EXPECT_TRUE(SameBits(with_window(window, chunk), expected))
          << NameOf(window);
    }
  }
  EXPECT_FALSE(SameBits(with_window(149, 150), expected));
}

// All rows at once, in a matrix of `out_type`.
Activations ResultAs(const Problem& p, ElementType kv_type,
                     ElementType out_type) {
  SerialExecutor executor;
  PagedSequence paged(p, {.window = 70, .kv_type = kv_type});
  paged.GrowTo(p.num_tokens);
  PagedAttention attention(p.shape, 70, p.num_tokens, &executor);
  Activations out(out_type, p.num_tokens, p.width, 1);
  const AttentionSequence sequence{.num_rows = p.num_tokens,
                                   .pages = paged.pages()};
  attention.Plan({&sequence, 1});
  attention.Attend(p.q, paged.kv());
  attention.Finish({0, p.num_tokens}, out, executor);
  return out;
}

TEST_P(AttentionTest, OutputIsTheRoundedF32) {
  const Problem p(shape(), 90, /*seed=*/13);
  ForEachTarget([&] {
    const Activations f32 = ResultAs(p, kv_type(), kF32);
    EXPECT_TRUE(IsRounded(ResultAs(p, kv_type(), kBf16), f32));
    const Activations int8 = ResultAs(p, kv_type(), kInt8);
    Activations expected(kInt8, p.num_tokens, p.width, 1);
    SetRows(expected, 0, Values(f32, p.num_tokens));
    for (int32_t row = 0; row < p.num_tokens; ++row) {
      ASSERT_EQ(std::memcmp(int8.row(row), expected.row(row), int8.row_bytes()),
                0);
      ASSERT_EQ(int8.scales()[row], expected.scales()[row]);
    }
  });
}

// What the token at one position sees is no number: that must show in every
// row that sees it. Rows computed with those may be no numbers either; alone,
// they do not know of it.
TEST_P(AttentionTest, NanGoesWhereItIsSeen) {
  constexpr int32_t kBad = 70;
  const Problem p(shape(), 150, /*seed=*/14);
  SerialExecutor executor;
  const auto check = [&](const Problem& bad, const Way& way) {
    const std::vector<float> clean = Result(p, way, executor);
    const std::vector<float> out = Result(bad, way, executor);
    for (int32_t t = 0; t < p.num_tokens; ++t) {
      const bool sees = t >= kBad && FirstSeen(t, way.window) <= kBad;
      for (int32_t i = 0; i < p.width; ++i) {
        const size_t place = size_t(t) * p.width + i;
        if (sees) {
          ASSERT_TRUE(std::isnan(out[place])) << "row " << t;
        } else if (way.chunk == 1) {
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
      for (int32_t chunk : {1, 150}) {
        const Way way{.chunk = chunk, .window = window, .kv_type = kv_type()};
        check(bad_value, way);
        check(bad_key, way);
      }
    }
  });
}

// Two workers at a time, a part of the rows each.
void FinishInStrips(PagedAttention& attention, int32_t rows, Activations& out,
                    Executor& executor) {
  constexpr int kStrips = 5;
  executor.ParallelFor(kStrips, [&](int strip, int worker) {
    const int32_t first = rows * strip / kStrips;
    SerialExecutor alone(worker);
    attention.Finish({first, rows * (strip + 1) / kStrips - first}, out, alone);
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

std::vector<std::unique_ptr<Executor>> Executors() {
  std::vector<std::unique_ptr<Executor>> executors;
  executors.push_back(std::make_unique<SerialExecutor>());
  executors.push_back(std::make_unique<BackwardExecutor>(3));
  executors.push_back(std::make_unique<ThreadExecutor>(2));
  executors.push_back(MakeParallelTestExecutor(2));
  return executors;
}

TEST_P(AttentionTest, DoesNotDependOnThreadsOrCompany) {
  const Problem a(shape(), 130, /*seed=*/8);
  const Problem b(shape(), 90, /*seed=*/9);
  const Problem c(shape(), 70, /*seed=*/10);
  Problem bad(shape(), 80, /*seed=*/15);  // Nobody else may notice.
  std::fill(bad.keys.begin(), bad.keys.end(), kNan);
  std::fill(bad.values.begin(), bad.values.end(), kNan);
  const Company::Member members[] = {{&a, 0}, {&b, 73}, {&bad, 40}, {&c, 69}};
  const auto executors = Executors();
  SerialExecutor serial;
  for (const auto& window : Windows()) {
    const Company company(members, {.window = window, .kv_type = kv_type()},
                          serial);
    for (const auto& executor : executors) {
      // Two rows more than there are, which are left alone.
      PagedAttention attention(shape(), window, company.num_rows + 2,
                               executor.get());
      Activations out(kF32, company.num_rows + 2, a.width,
                      executor->num_workers());
      const std::vector<float> others(2 * a.width, 7.0f);
      SetRows(out, company.num_rows, others);
      attention.Plan(company.sequences);
      attention.Attend(company.q, company.pages[0]->kv());
      FinishInStrips(attention, company.num_rows, out, *executor);
      const std::vector<float> values = Values(out, out.max_rows());
      std::vector<float> expected = company.expected;
      expected.insert(expected.end(), others.begin(), others.end());
      for (size_t i = 0; i < values.size(); ++i) {
        if (std::isnan(expected[i])) {
          ASSERT_TRUE(std::isnan(values[i]));
        } else {
          ASSERT_TRUE(SameBits({&values[i], 1}, {&expected[i], 1}))
              << executor->num_workers() << " workers, " << NameOf(window);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionTest,
    testing::Combine(
        testing::Values(AttentionShape{4, 4, 16}, AttentionShape{9, 9, 64},
                        AttentionShape{9, 3, 64}, AttentionShape{4, 1, 128},
                        AttentionShape{5, 5, 2}, AttentionShape{2, 1, 7},
                        AttentionShape{3, 3, 1}, AttentionShape{40, 1, 80},
                        AttentionShape{2, 2, 37}),
        testing::Values(kF32, kBf16, kInt8)),
    [](const auto& test) {
      const AttentionShape& shape = std::get<0>(test.param);
      return "Heads" + std::to_string(shape.num_heads) + "Kv" +
             std::to_string(shape.num_kv_heads) + "Dim" +
             std::to_string(shape.head_dim) +
             std::string(NameOf(std::get<1>(test.param)));
    });

// Sequences of several spans.
class LongAttentionTest : public testing::TestWithParam<ElementType> {
 protected:
  const AttentionShape shape_{
      .num_heads = 6, .num_kv_heads = 2, .head_dim = 10};
};

TEST_P(LongAttentionTest, AgreesWithTheDefinition) {
  const Problem p(shape_, kSanitized ? 530 : 1100, /*seed=*/21);
  const Problem stored = AsStored(p, GetParam());
  const auto executor = MakeParallelTestExecutor(2);
  // Windows that begin inside a span, or hold exactly one, or nearly two.
  for (const auto& window :
       {std::optional<int32_t>(), {100}, {512}, {513}, {1000}}) {
    const std::vector<double> exact = NaiveAttention(stored, window);
    ForEachTarget([&] {
      ExpectNear(
          Result(p, {.window = window, .kv_type = GetParam()}, *executor),
          exact, Bound(p, GetParam()));
    });
  }
}

// The last row is computed alone, with some, and with all before it, by
// executors for which it is split into its spans, and by one for which it is
// not.
TEST_P(LongAttentionTest, DoesNotDependOnSplitting) {
  const auto executors = Executors();
  SerialExecutor serial;
  const std::vector<int32_t> lengths =
      kSanitized ? std::vector<int32_t>{65, 513}
                 : std::vector<int32_t>{1,   63,  64,   65,   511,
                                        512, 513, 1024, 1025, 1600};
  for (const int32_t tokens : lengths) {
    const Problem p(shape_, tokens, /*seed=*/uint64_t(tokens));
    for (const auto& window :
         {std::optional<int32_t>(), {500}, {512}, {1030}}) {
      const Way way{.window = window, .kv_type = GetParam()};
      const std::vector<float> expected = Result(p, way, serial);
      for (const int32_t rows : {1, 2, 30, 200}) {
        if (rows > tokens) continue;
        const Company::Member member[] = {{&p, tokens - rows}};
        const Company company(member, way, serial);
        for (const auto& executor : executors) {
          PagedAttention attention(shape_, window, rows, executor.get());
          Activations out(kF32, rows, p.width, executor->num_workers());
          attention.Plan(company.sequences);
          attention.Attend(company.q, company.pages[0]->kv());
          attention.Finish({0, rows}, out, *executor);
          ASSERT_TRUE(SameBits(Values(out, rows),
                               std::span(expected).last(rows * p.width)))
              << tokens << " tokens, " << rows << " rows, "
              << executor->num_workers() << " workers, " << NameOf(window);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LongAttentionTest,
                         testing::Values(kF32, kBf16, kInt8),
                         [](const auto& test) {
                           return std::string(NameOf(test.param));
                         });

// Hand-computed: with keys of 0 every position weighs the same.
TEST(AttentionHandTest, EqualScoresGiveTheMean) {
  const AttentionShape shape{.num_heads = 1, .num_kv_heads = 1, .head_dim = 1};
  Problem p(shape, 4, /*seed=*/1);
  p.keys = {0, 0, 0, 0};
  p.values = {1, 3, 8, 4};
  SerialExecutor executor;
  EXPECT_EQ(Result(p, {.page_size = 8}, executor),
            (std::vector<float>{1, 2, 4, 4}));
  EXPECT_EQ(Result(p, {.page_size = 8, .window = 2}, executor),
            (std::vector<float>{1, 2, 5.5f, 6}));
  EXPECT_EQ(Result(p, {.page_size = 8, .window = 1}, executor),
            (std::vector<float>{1, 3, 8, 4}));
}

}  // namespace
}  // namespace folio
