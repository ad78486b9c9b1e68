// A plan of three sequences, flattened by hand.

#include "runtime/engine/step_builder.h"

#include <memory>

#include "cache/kv_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/scheduler.h"

namespace folio {
namespace {

using ::testing::ElementsAre;

MATCHER_P2(IsSlot, page, offset, "") {
  return arg.page == PageId{page} && arg.offset == offset;
}

MATCHER_P2(IsSample, logits_row, sequence, "") {
  return arg.logits_row == logits_row && arg.sequence == sequence;
}

MATCHER_P3(IsScore, logits_row, sequence, token, "") {
  return arg.logits_row == logits_row && arg.sequence == sequence &&
         arg.token == token;
}

class StepBuilderTest : public testing::Test {
 protected:
  void Add(std::vector<TokenId> prompt, bool prompt_logprobs) {
    auto request = std::make_shared<Request>();
    request->id = RequestId{next_id_++};
    request->prompt = std::move(prompt);
    request->sampling.prompt_logprobs = prompt_logprobs;
    scheduler_.Add(std::move(request));
  }

  // Plans, applies and builds; Finish then commits.
  const StepInput& Build() {
    scheduler_.Plan(absl::UnixEpoch(), plan_);
    scheduler_.Apply(plan_, absl::UnixEpoch(), applied_, events_);
    return builder_.Build(applied_, scheduler_);
  }

  void Finish(const StepInput& input, TokenId sampled) {
    StepResult result;
    for (const Sequence* sequence : builder_.sequences()) {
      result.sequences.Append().id = sequence->id;
    }
    for (const SampleInput& sample : input.samples) {
      result.sequences[sample.sequence].sampled.tokens = {sampled};
    }
    BatchReport report;
    scheduler_.Commit(applied_, result, absl::UnixEpoch(), NeverStops, events_,
                      report);
  }

  KvCache cache_{KvLayout({.num_layers = 1, .num_kv_heads = 1, .head_dim = 8},
                          /*page_size=*/2),
                 /*num_pages=*/20};
  Scheduler scheduler_{{.max_batch_tokens = 6, .max_batch_sequences = 3},
                       /*context_length=*/30,
                       /*pool_bytes=*/20 * 128,
                       &cache_};
  StepBuilder builder_;
  BatchPlan plan_;
  AppliedPlan applied_;
  TokenEvents events_;
  uint64_t next_id_ = 1;
};

TEST_F(StepBuilderTest, RaggedBatchOfDecodeAndChunks) {
  Add({10, 11, 12}, /*prompt_logprobs=*/false);
  Finish(Build(), /*sampled=*/13);  // Pages 0 and 1.
  Add({20, 21, 22, 23, 24, 25}, /*prompt_logprobs=*/true);

  // Sequence 1 decodes position 3; sequence 2 prefills positions 0 to 4.
  const StepInput& input = Build();
  EXPECT_THAT(input.tokens, ElementsAre(13, 20, 21, 22, 23, 24));
  EXPECT_THAT(input.positions, ElementsAre(3, 0, 1, 2, 3, 4));
  EXPECT_THAT(input.slots,
              ElementsAre(IsSlot(1, 1), IsSlot(2, 0), IsSlot(2, 1),
                          IsSlot(3, 0), IsSlot(3, 1), IsSlot(4, 0)));
  ASSERT_EQ(input.sequences.size(), 2u);
  EXPECT_EQ(input.sequences[0].first_row, 0);
  EXPECT_EQ(input.sequences[0].num_rows, 1);
  EXPECT_EQ(input.sequences[0].first_position, 3);
  EXPECT_THAT(input.sequences[0].pages, ElementsAre(PageId{0}, PageId{1}));
  EXPECT_EQ(input.sequences[1].first_row, 1);
  EXPECT_EQ(input.sequences[1].num_rows, 5);
  EXPECT_EQ(input.sequences[1].first_position, 0);
  EXPECT_THAT(input.sequences[1].pages,
              ElementsAre(PageId{2}, PageId{3}, PageId{4}));
  // Row 0 is sampled; rows 1 to 5 score the prompt tokens behind them.
  EXPECT_THAT(input.logits_rows, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(input.samples, ElementsAre(IsSample(0, 0)));
  EXPECT_THAT(input.scores, ElementsAre(IsScore(1, 1, 21), IsScore(2, 1, 22),
                                        IsScore(3, 1, 23), IsScore(4, 1, 24),
                                        IsScore(5, 1, 25)));
  Finish(input, 14);

  // Now both have one token left: the last of the prompt, and a decode.
  const StepInput& next = Build();
  EXPECT_THAT(next.tokens, ElementsAre(14, 25));
  EXPECT_THAT(next.positions, ElementsAre(4, 5));
  EXPECT_THAT(next.logits_rows, ElementsAre(0, 1));
  EXPECT_THAT(next.samples, ElementsAre(IsSample(0, 0), IsSample(1, 1)));
  EXPECT_TRUE(next.scores.empty());
  Finish(next, 15);
}

TEST_F(StepBuilderTest, APreemptedPromptIsNotScoredTwice) {
  Add({20, 21, 22, 23, 24, 25, 26, 27}, /*prompt_logprobs=*/true);
  const StepInput& first = Build();
  EXPECT_EQ(first.scores.size(), 6u);
  Finish(first, 0);
  scheduler_.RequestPreemption(RequestId{1});
  Finish(Build(), 0);
  const StepInput& again = Build();
  EXPECT_THAT(again.positions, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_TRUE(again.logits_rows.empty());
  Finish(again, 0);
  const StepInput& rest = Build();
  EXPECT_THAT(rest.positions, ElementsAre(6, 7));
  EXPECT_THAT(rest.scores, ElementsAre(IsScore(0, 0, 27)));
  EXPECT_THAT(rest.samples, ElementsAre(IsSample(1, 0)));
  Finish(rest, 0);
}

}  // namespace
}  // namespace folio
