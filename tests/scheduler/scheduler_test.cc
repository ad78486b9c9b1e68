// Plans, worked out by hand.

#include "scheduler/scheduler.h"

#include <memory>
#include <vector>

#include "cache/kv_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int32_t kPageSize = 8;
constexpr int32_t kContext = 1000;
const absl::Time kStart = absl::UnixEpoch();

MATCHER_P3(Planned, id, count, admitted, "") {
  return arg.id == SequenceId{static_cast<uint64_t>(id)} &&
         arg.count == count && arg.admitted == admitted;
}

MATCHER_P(Id, id, "") { return arg == SequenceId{static_cast<uint64_t>(id)}; }

// A scheduler whose sequences sample token 1 for ever. Requests and their
// sequences are both numbered from 1 in the order in which they are added.
class SchedulerTest : public testing::Test {
 protected:
  void Make(int32_t num_pages, int32_t max_batch_tokens,
            int32_t max_batch_sequences) {
    const KvShape shape{.num_layers = 1, .num_kv_heads = 1, .head_dim = 8};
    const KvLayout layout(shape, kPageSize);
    cache_ = std::make_unique<KvCache>(layout, num_pages);
    scheduler_ = std::make_unique<Scheduler>(
        SchedulerOptions{.max_batch_tokens = max_batch_tokens,
                         .max_batch_sequences = max_batch_sequences},
        kContext, num_pages * layout.page_bytes(), cache_.get());
  }

  void Add(int32_t prompt_tokens, int32_t max_tokens,
           absl::Time deadline = absl::InfiniteFuture()) {
    auto request = std::make_shared<Request>();
    request->id = RequestId{next_request_++};
    request->prompt.assign(prompt_tokens, 0);
    request->max_tokens = max_tokens;
    request->stop_tokens = {2};
    request->deadline = deadline;
    scheduler_->Add(std::move(request));
  }

  // Takes a whole step, and leaves its plan in plan_ and its events in events_.
  void Step(absl::Time now = kStart, std::vector<TokenId> sampled = {1}) {
    events_.Clear();
    scheduler_->Plan(now, plan_);
    std::vector<bool> samples;
    for (const PlannedSequence& planned : plan_.sequences) {
      samples.push_back(
          scheduler_->sequence(planned.id).SamplesAfter(planned.count));
    }
    scheduler_->Apply(plan_, events_);
    StepResult result;
    for (size_t i = 0; i < plan_.sequences.size(); ++i) {
      SequenceResult& entry = result.sequences.Append();
      entry.id = plan_.sequences[i].id;
      if (samples[i]) entry.sampled.tokens = sampled;
    }
    scheduler_->Commit(plan_, result, events_, report_);
    scheduler_->CheckInvariants();
    report_.memory.CheckIdentities();
  }

  std::vector<FinishReason> Finished() const {
    std::vector<FinishReason> reasons;
    for (const TokenEvent& event : events_) {
      if (event.terminal) reasons.push_back(event.finish_reason);
    }
    return reasons;
  }

  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<Scheduler> scheduler_;
  BatchPlan plan_;
  TokenEvents events_;
  BatchReport report_;
  uint64_t next_request_ = 1;
};

TEST_F(SchedulerTest, NothingLiveGivesAnEmptyPlan) {
  Make(/*num_pages=*/4, /*max_batch_tokens=*/16, /*max_batch_sequences=*/4);
  Step();
  EXPECT_THAT(plan_.sequences, IsEmpty());
  EXPECT_EQ(plan_.num_tokens, 0);
}

TEST_F(SchedulerTest, DecodesComeFirstThenChunksThenNewcomers) {
  Make(100, /*max_batch_tokens=*/16, 4);
  Add(/*prompt_tokens=*/3, /*max_tokens=*/50);
  Step();
  EXPECT_THAT(plan_.sequences, ElementsAre(Planned(1, 3, true)));

  Add(40, 50);
  Step();  // 1 decodes; 2 gets the other 15 of 16 tokens.
  EXPECT_THAT(plan_.sequences,
              ElementsAre(Planned(1, 1, false), Planned(2, 15, true)));

  Add(2, 50);
  Step();  // Nothing is left for 3.
  EXPECT_THAT(plan_.sequences,
              ElementsAre(Planned(1, 1, false), Planned(2, 15, false)));
  EXPECT_EQ(report_.decode_tokens, 1);
  EXPECT_EQ(report_.prefill_tokens, 15);
  EXPECT_EQ(report_.sequences_running, 2);
  EXPECT_EQ(report_.sequences_waiting, 1);

  Step();  // 10 of the 40 are left, then 3 gets in with its 2.
  EXPECT_THAT(plan_.sequences,
              ElementsAre(Planned(1, 1, false), Planned(2, 10, false),
                          Planned(3, 2, true)));
  EXPECT_EQ(plan_.num_tokens, 13);

  Step();  // Now all three decode.
  EXPECT_THAT(plan_.sequences,
              ElementsAre(Planned(1, 1, false), Planned(2, 1, false),
                          Planned(3, 1, false)));
}

TEST_F(SchedulerTest, NeverMoreSequencesThanAllowed) {
  Make(100, 64, /*max_batch_sequences=*/2);
  for (int i = 0; i < 4; ++i) Add(4, 3);
  Step();
  EXPECT_THAT(plan_.sequences,
              ElementsAre(Planned(1, 4, true), Planned(2, 4, true)));
  Step();
  Step();  // Third token of both: they end.
  EXPECT_THAT(Finished(),
              ElementsAre(FinishReason::kLength, FinishReason::kLength));
  Step();
  EXPECT_THAT(plan_.sequences,
              ElementsAre(Planned(3, 4, true), Planned(4, 4, true)));
}

TEST_F(SchedulerTest, AdmissionWaitsForPagesOfTheWholePrompt) {
  Make(/*num_pages=*/4, /*max_batch_tokens=*/8, 4);
  Add(16, 8);  // 16 tokens and one more: 3 of the 4 pages.
  Add(8, 4);   // 2 pages.
  Add(4, 4);   // 1 page, but behind the one before it.
  Step();
  EXPECT_THAT(plan_.sequences, ElementsAre(Planned(1, 8, true)));
  EXPECT_EQ(cache_->num_free(), 3);
  Step();
  // Of the budget of 8 tokens none is left; and of 3 free pages, 1 takes one.
  EXPECT_THAT(plan_.sequences, ElementsAre(Planned(1, 8, false)));
  Step();
  // Request 1 decodes and takes its third page; one is free, 2 needs two.
  EXPECT_THAT(plan_.sequences, ElementsAre(Planned(1, 1, false)));
  EXPECT_EQ(report_.memory.pages_free, 1);
  EXPECT_EQ(scheduler_->num_waiting(), 2);
}

TEST_F(SchedulerTest, PagesPromisedToOneNewcomerAreNotGivenToTheNext) {
  Make(/*num_pages=*/3, /*max_batch_tokens=*/64, 4);
  Add(8, 4);   // One page now, and one for its next token.
  Add(12, 4);  // Two pages: but one of the three is promised.
  Step();
  EXPECT_THAT(plan_.sequences, ElementsAre(Planned(1, 8, true)));
  EXPECT_EQ(cache_->num_free(), 2);
}

TEST_F(SchedulerTest, TheYoungestIsPreemptedAndComesBackFirst) {
  Make(/*num_pages=*/4, 64, 4);
  Add(8, 20);
  Add(8, 20);
  Add(8, 20);
  Step();  // 1 and 2 need two pages each with their next token; 3 waits.
  EXPECT_THAT(plan_.sequences,
              ElementsAre(Planned(1, 8, true), Planned(2, 8, true)));
  for (int i = 0; i < 8; ++i) Step();  // Until both have filled two pages.
  EXPECT_EQ(cache_->num_free(), 0);
  Step();
  EXPECT_THAT(plan_.preempted, ElementsAre(Id(2)));
  EXPECT_THAT(plan_.sequences, ElementsAre(Planned(1, 1, false)));
  EXPECT_EQ(report_.sequences_preempted, 1);
  EXPECT_EQ(scheduler_->num_waiting(), 2);
  EXPECT_EQ(scheduler_->sequence(SequenceId{2}).num_computed, 0);
  EXPECT_EQ(scheduler_->sequence(SequenceId{2}).num_generated(), 9);

  // 2 must wait for three pages (17 tokens and one more), and 3, which would
  // fit, behind it. 1 ends with its 20th token, its 27 tokens in four pages.
  for (int i = 0; i < 9; ++i) {
    Step();
    EXPECT_THAT(plan_.sequences, ElementsAre(Planned(1, 1, false)));
  }
  Step();
  EXPECT_THAT(Finished(), ElementsAre(FinishReason::kLength));
  Step();  // All 17 tokens are computed again, and 3 gets the last page...
  EXPECT_THAT(plan_.sequences, ElementsAre(Planned(2, 17, true)));
}

TEST_F(SchedulerTest, TheOldestIsNeverPreempted) {
  Make(/*num_pages=*/3, 64, 2);
  Add(8, 15);
  Add(8, 15);
  int finished = 0;
  std::vector<RequestId> order;
  for (int step = 0; step < 60 && finished < 2; ++step) {
    Step();
    for (const TokenEvent& event : events_) {
      if (!event.terminal) continue;
      ++finished;
      order.push_back(event.request_id);
      if (event.request_id == RequestId{1}) {
        EXPECT_EQ(event.usage.preemptions, 0);
      }
    }
  }
  EXPECT_THAT(order, ElementsAre(RequestId{1}, RequestId{2}));
}

TEST_F(SchedulerTest, RequestedPreemptionTakesEffectOnce) {
  Make(/*num_pages=*/5, /*max_batch_tokens=*/8, 4);
  Add(24, 4);
  Step();  // 8 of 24.
  scheduler_->RequestPreemption(RequestId{1});
  Step();  // Nobody runs; 1 is at the front again.
  EXPECT_THAT(plan_.preempted, ElementsAre(Id(1)));
  EXPECT_THAT(plan_.sequences, IsEmpty());
  EXPECT_EQ(cache_->num_free(), 5);
  Step();
  EXPECT_THAT(plan_.sequences, ElementsAre(Planned(1, 8, true)));
}

TEST_F(SchedulerTest, DeadlinesEndWaitingAndRunningRequests) {
  Make(100, 8, 1);
  Add(4, 50, kStart + absl::Seconds(2));
  Add(4, 50, kStart + absl::Seconds(1));
  Add(4, 50);
  Step(kStart);
  EXPECT_THAT(plan_.sequences, ElementsAre(Planned(1, 4, true)));
  Step(kStart + absl::Seconds(1));
  EXPECT_THAT(plan_.expired, ElementsAre(Id(2)));
  EXPECT_THAT(plan_.sequences, ElementsAre(Planned(1, 1, false)));
  // The place of the one that expires is taken in the same step.
  Step(kStart + absl::Seconds(2));
  EXPECT_THAT(plan_.expired, ElementsAre(Id(1)));
  EXPECT_THAT(plan_.sequences, ElementsAre(Planned(3, 4, true)));
  EXPECT_THAT(Finished(), ElementsAre(FinishReason::kDeadline));
}

TEST_F(SchedulerTest, StopTokenIsTheLastOne) {
  Make(100, 8, 1);
  Add(4, 50);
  Step();
  Step(kStart, /*sampled=*/{2});
  ASSERT_EQ(events_.size(), 3u);
  EXPECT_THAT(events_[0].sampled.tokens, ElementsAre(2));
  EXPECT_EQ(events_[1].finish_reason, FinishReason::kStop);
  EXPECT_TRUE(events_[2].terminal);
  EXPECT_EQ(events_[2].usage.prompt_tokens, 4);
  EXPECT_EQ(events_[2].usage.generated_tokens, 2);
  EXPECT_EQ(cache_->num_free(), 100);
}

TEST_F(SchedulerTest, ASpanOfTokensIsTakenUpToTheStopOrTheLimit) {
  Make(100, 8, 1);
  Add(4, 50);
  Step(kStart, {1, 2, 1});
  EXPECT_THAT(events_[0].sampled.tokens, ElementsAre(1, 2));
  EXPECT_THAT(Finished(), ElementsAre(FinishReason::kStop));
  Add(4, 2);
  Step(kStart, {1, 1, 1});
  EXPECT_THAT(events_[0].sampled.tokens, ElementsAre(1, 1));
  EXPECT_THAT(Finished(), ElementsAre(FinishReason::kLength));
  EXPECT_EQ(events_.back().usage.generated_tokens, 2);
}

TEST_F(SchedulerTest, NoTokensWantedComputesThePromptOnly) {
  Make(100, 8, 1);
  Add(12, 0);
  Step();
  EXPECT_THAT(Finished(), IsEmpty());
  Step();
  EXPECT_THAT(plan_.sequences, ElementsAre(Planned(1, 4, false)));
  EXPECT_THAT(Finished(), ElementsAre(FinishReason::kLength));
  EXPECT_EQ(events_.back().usage.generated_tokens, 0);
}

TEST_F(SchedulerTest, AbortFreesOnce) {
  Make(100, 64, 1);
  Add(20, 50);
  Add(20, 50);
  Step();
  EXPECT_EQ(cache_->num_free(), 97);
  events_.Clear();
  EXPECT_TRUE(
      scheduler_->Abort(RequestId{1}, FinishReason::kCancelled, events_));
  EXPECT_TRUE(
      scheduler_->Abort(RequestId{2}, FinishReason::kCancelled, events_));
  EXPECT_FALSE(
      scheduler_->Abort(RequestId{1}, FinishReason::kCancelled, events_));
  EXPECT_EQ(cache_->num_free(), 100);
  EXPECT_THAT(Finished(),
              ElementsAre(FinishReason::kCancelled, FinishReason::kCancelled));
  EXPECT_FALSE(scheduler_->HasWork());
}

TEST_F(SchedulerTest, LimitIsTheSmallestOfRequestContextAndPool) {
  Make(/*num_pages=*/2, 64, 1);
  EXPECT_EQ(scheduler_->MaxTokens(), 16);
  Add(10, 100);
  EXPECT_EQ(scheduler_->sequence(SequenceId{1}).limit, 16);
  Add(10, 3);
  EXPECT_EQ(scheduler_->sequence(SequenceId{2}).limit, 13);
  Make(/*num_pages=*/1000, 64, 1);
  EXPECT_EQ(scheduler_->MaxTokens(), kContext);
}

TEST(SchedulerOptionsTest, BudgetMustCoverTheSequences) {
  EXPECT_TRUE(
      (SchedulerOptions{.max_batch_tokens = 4, .max_batch_sequences = 4})
          .Validate()
          .ok());
  EXPECT_FALSE(
      (SchedulerOptions{.max_batch_tokens = 3, .max_batch_sequences = 4})
          .Validate()
          .ok());
  EXPECT_FALSE(
      (SchedulerOptions{.max_batch_tokens = 3, .max_batch_sequences = 0})
          .Validate()
          .ok());
}

}  // namespace
}  // namespace folio
