// Plans, worked out by hand.

#include "scheduler/scheduler.h"

#include <memory>
#include <string>
#include <vector>

#include "cache/kv_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int32_t kPageSize = 8;
constexpr int32_t kContext = 1000;
const absl::Time kStart = absl::UnixEpoch();

MATCHER_P3(Planned, id, count, admitted, "") {
  return arg.id == SequenceId{static_cast<uint64_t>(id)} &&
         arg.count == count && arg.admitted == admitted;
}

MATCHER_P(Id, id, "") {
  return static_cast<uint64_t>(arg) == static_cast<uint64_t>(id);
}

// A scheduler whose sequences sample token 1 for ever. Requests and their
// sequences are both numbered from 1 in the order in which they are added.
class SchedulerTest : public testing::Test {
 protected:
  void Make(int32_t num_pages, int32_t max_batch_tokens,
            int32_t max_batch_sequences) {
    scheduler_.reset();  // Before its cache.
    options_.max_batch_tokens = max_batch_tokens;
    options_.max_batch_sequences = max_batch_sequences;
    const KvShape shape{.num_layers = 1, .num_kv_heads = 1, .head_dim = 8};
    const KvLayout layout(shape, kPageSize);
    cache_ = std::make_unique<KvCache>(layout, num_pages, cache_options_);
    scheduler_ = std::make_unique<Scheduler>(
        options_, kContext, num_pages * layout.page_bytes(), cache_.get());
  }

  void Add(int32_t prompt_tokens, int32_t max_tokens,
           absl::Time deadline = absl::InfiniteFuture()) {
    auto request = std::make_shared<Request>();
    request->id = RequestId{next_request_++};
    request->prompt.assign(prompt_tokens, 0);
    request->max_tokens = max_tokens;
    request->stop_tokens = {2};
    request->deadline = deadline;
    request->n = next_n_;
    request->priority = next_priority_;
    request->tenant = next_tenant_;
    request->arrival = next_arrival_;
    scheduler_->Add(std::move(request));
  }

  // Takes a whole step, and leaves its plan in plan_ and its events in events_.
  void Step(absl::Time now = kStart, std::vector<TokenId> sampled = {1}) {
    events_.Clear();
    scheduler_->Plan(now, plan_);
    scheduler_->Apply(plan_, now, applied_, events_);
    StepResult result;
    for (const AppliedSequence& applied : applied_.sequences) {
      SequenceResult& entry = result.sequences.Append();
      entry.id = applied.id;
      if (scheduler_->sequence(applied.id).SamplesAfter(applied.count)) {
        entry.sampled.tokens = sampled;
      }
    }
    scheduler_->Commit(applied_, result, now, NeverStops, events_, report_);
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
  // Without a watermark or a prefix cache, unless a test has them.
  SchedulerOptions options_{.watermark_pages = 0};
  KvCacheOptions cache_options_{.prefix_cache = false};
  BatchPlan plan_;
  AppliedPlan applied_;
  TokenEvents events_;
  BatchReport report_;
  uint64_t next_request_ = 1;
  // Of the requests that are added from now on.
  int32_t next_n_ = 1;
  int32_t next_priority_ = 0;
  std::string next_tenant_;
  absl::Time next_arrival_ = kStart;
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
  Step();  // Half of 15 is kept for 3, which needs 2; 2 gets the rest.
  EXPECT_THAT(plan_.sequences,
              ElementsAre(Planned(1, 1, false), Planned(2, 13, false),
                          Planned(3, 2, true)));
  EXPECT_EQ(plan_.num_tokens, 16);
  EXPECT_EQ(report_.decode_tokens, 1);
  EXPECT_EQ(report_.prefill_tokens, 15);
  EXPECT_EQ(report_.sequences_running, 3);

  Step();  // 12 of the 40 are left.
  EXPECT_THAT(plan_.sequences,
              ElementsAre(Planned(1, 1, false), Planned(3, 1, false),
                          Planned(2, 12, false)));

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
  EXPECT_TRUE(scheduler_->Abort(RequestId{1}, FinishReason::kCancelled, kStart,
                                events_));
  EXPECT_TRUE(scheduler_->Abort(RequestId{2}, FinishReason::kCancelled, kStart,
                                events_));
  EXPECT_FALSE(scheduler_->Abort(RequestId{1}, FinishReason::kCancelled, kStart,
                                 events_));
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

TEST_F(SchedulerTest, TheWatermarkKeepsRoomForThoseThatRun) {
  options_.watermark_pages = 2;
  Make(/*num_pages=*/7, 64, 4);
  Add(12, 40);  // 2 pages with its next token, and 2 to grow.
  Add(12, 40);  // As much again: one page too few.
  Step();
  EXPECT_THAT(plan_.sequences, ElementsAre(Planned(1, 12, true)));
  EXPECT_EQ(report_.wait_reason, WaitReason::kWatermark);
  Make(/*num_pages=*/8, 64, 4);
  next_request_ = 1;
  Add(12, 40);
  Add(12, 40);
  Step();
  EXPECT_THAT(plan_.sequences,
              ElementsAre(Planned(1, 12, true), Planned(2, 12, true)));
  EXPECT_EQ(report_.wait_reason, WaitReason::kNone);
}

TEST_F(SchedulerTest, TheWatermarkIsNoMoreThanCanBeGenerated) {
  options_.watermark_pages = 10;
  Make(/*num_pages=*/4, 64, 4);
  Add(12, 4);  // Ever 16 tokens: 2 pages.
  Add(12, 4);
  Step();
  EXPECT_EQ(plan_.sequences.size(), 2u);
}

TEST_F(SchedulerTest, SaysWhyTheHeadWaits) {
  Make(/*num_pages=*/6, /*max_batch_tokens=*/16, /*max_batch_sequences=*/2);
  Step();
  EXPECT_EQ(report_.wait_reason, WaitReason::kNone);
  Add(16, 20);
  Add(16, 20);
  Step();
  EXPECT_EQ(report_.wait_reason, WaitReason::kTokens);
  Step();  // Now 2 runs.
  EXPECT_EQ(report_.wait_reason, WaitReason::kNone);
  Add(1, 1);
  Step();
  EXPECT_EQ(report_.wait_reason, WaitReason::kSequences);
  Make(/*num_pages=*/6, 64, 4);
  Add(20, 20);
  Add(30, 10);  // 3 + 4 pages.
  Step();
  EXPECT_EQ(report_.wait_reason, WaitReason::kPages);
}

// Also where nobody waited before.
TEST_F(SchedulerTest, ThePreemptedWaitForThePolicy) {
  Make(/*num_pages=*/3, 64, 2);
  Add(8, 15);
  Add(4, 15);
  while (report_.sequences_preempted == 0) {
    Step();
    ASSERT_LT(report_.memory.tokens_held, 24);
    if (report_.sequences_preempted > 0) break;
    EXPECT_EQ(report_.wait_reason, WaitReason::kNone);
  }
  EXPECT_EQ(report_.sequences_waiting, 1);
  EXPECT_EQ(report_.wait_reason, WaitReason::kPolicy);
}

TEST_F(SchedulerTest, PrefillGetsItsShareBesideDecodes) {
  options_.max_prefill_share = 0.25;
  Make(100, /*max_batch_tokens=*/64, 4);
  Add(40, 50);
  Step();  // Nobody decodes: the share means nothing.
  EXPECT_THAT(plan_.sequences, ElementsAre(Planned(1, 40, true)));
  Add(40, 50);
  Step();
  EXPECT_THAT(plan_.sequences,
              ElementsAre(Planned(1, 1, false), Planned(2, 16, true)));
}

// Three long prompts divide what there is; with somebody waiting, in four.
TEST_F(SchedulerTest, LongPromptsTakeTurns) {
  Make(100, /*max_batch_tokens=*/96, 4);
  Add(90, 5);
  Add(90, 5);
  Step();
  EXPECT_THAT(plan_.sequences,
              ElementsAre(Planned(1, 90, true), Planned(2, 6, true)));
  Make(200, /*max_batch_tokens=*/96, 4);
  next_request_ = 1;
  Add(400, 5);
  Step();
  EXPECT_THAT(plan_.sequences, ElementsAre(Planned(1, 96, true)));
  Add(400, 5);
  Step();  // Half each, since one waits.
  EXPECT_THAT(plan_.sequences,
              ElementsAre(Planned(1, 48, false), Planned(2, 48, true)));
  Add(5, 5);
  Step();  // A third each; the newcomer needs only 5, and 1 gets the rest.
  EXPECT_THAT(plan_.sequences,
              ElementsAre(Planned(1, 32 + 27, false), Planned(2, 32, false),
                          Planned(3, 5, true)));
}

TEST_F(SchedulerTest, SamplesForkWhenThePromptIsDone) {
  Make(100, /*max_batch_tokens=*/16, 4);
  next_n_ = 3;
  Add(20, 2);
  next_n_ = 1;
  Add(4, 2);
  Add(4, 2);
  Step();
  EXPECT_EQ(scheduler_->num_running(), 1);
  Step();  // Its last 4 tokens, then two forks; and 2: four in all.
  ASSERT_EQ(applied_.sequences.size(), 4u);
  EXPECT_EQ(applied_.sequences[0].count, 4);
  EXPECT_EQ(applied_.sequences[1].count, 0);
  EXPECT_EQ(applied_.sequences[2].count, 0);
  EXPECT_EQ(applied_.sequences[3].count, 4);
  EXPECT_EQ(scheduler_->num_running(), 4);
  EXPECT_EQ(report_.wait_reason, WaitReason::kSequences);
  EXPECT_EQ(report_.memory.pages_in_use, 3 + 1);
  EXPECT_EQ(report_.memory.duplicate_pages_saved, 6);
  EXPECT_EQ(report_.memory.tokens_held, 20 + 4);
  Step();  // Each writes its own token 20: two copies.
  EXPECT_EQ(applied_.copies.size(), 2u);
  EXPECT_EQ(report_.pages_copied, 2);
  EXPECT_EQ(report_.memory.pages_in_use, 3 + 2 + 1);
  EXPECT_EQ(Finished().size(), 2u);
  int ends = 0;
  for (const TokenEvent& event : events_) {
    ends += event.finish_reason == FinishReason::kLength && !event.terminal;
  }
  EXPECT_EQ(ends, 4);
  EXPECT_EQ(cache_->num_in_use(), 0);
}

TEST_F(SchedulerTest, ARequestThatEndsBeforeItForksEndsAllItsSamples) {
  Make(100, 16, 4);
  next_n_ = 3;
  Add(20, 2);
  Step();
  events_.Clear();
  scheduler_->Abort(RequestId{1}, FinishReason::kCancelled, kStart, events_);
  ASSERT_EQ(events_.size(), 4u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(events_[i].sample_index, i);
  EXPECT_TRUE(events_[3].terminal);
}

TEST_F(SchedulerTest, SmallerPrioritiesGoFirstUntilWaitingMakesUpForIt) {
  options_.policy = "priority";
  options_.priority_ageing = absl::Seconds(1);
  Make(100, 16, /*max_batch_sequences=*/1);
  next_priority_ = 2;
  Add(4, 1);  // 1: stands at 2 s.
  next_priority_ = 0;
  next_arrival_ = kStart + absl::Seconds(1.5);
  Add(4, 1);  // 2: at 1.5 s, before 1.
  next_arrival_ = kStart + absl::Seconds(2.5);
  Add(4, 1);  // 3: at 2.5 s, behind it.
  std::vector<uint64_t> order;
  for (int step = 0; step < 3; ++step) {
    Step();
    order.push_back(static_cast<uint64_t>(plan_.sequences[0].id));
  }
  EXPECT_THAT(order, ElementsAre(2, 1, 3));
}

// Costs of a request: 4 prompt tokens and 3 sampled ones of 2 each, 10.
TEST_F(SchedulerTest, TenantsAreServedInTurnWhateverTheySend) {
  options_.policy = "fair";
  Make(100, 16, /*max_batch_sequences=*/1);
  next_tenant_ = "many";
  for (int i = 0; i < 6; ++i) Add(4, 3);
  next_tenant_ = "few";
  Add(4, 3);
  Add(4, 3);
  std::string order;
  for (int step = 0; step < 24; ++step) {
    Step();
    const uint64_t id = static_cast<uint64_t>(plan_.sequences[0].id);
    if (step % 3 == 0) order += id <= 6 ? 'm' : 'f';
  }
  EXPECT_EQ(order, "mfmfmmmm");
}

// In one step, too: each admission is paid for before the next.
TEST_F(SchedulerTest, TenantsAlternateWithinAStep) {
  options_.policy = "fair";
  Make(100, 64, /*max_batch_sequences=*/4);
  next_tenant_ = "a";
  for (int i = 0; i < 4; ++i) Add(4, 30);
  next_tenant_ = "b";
  for (int i = 0; i < 4; ++i) Add(4, 30);
  Step();
  EXPECT_THAT(plan_.sequences,
              ElementsAre(Planned(1, 4, true), Planned(5, 4, true),
                          Planned(2, 4, true), Planned(6, 4, true)));
}

TEST_F(SchedulerTest, ATenantCannotSaveUpWhatItDidNotUse) {
  options_.policy = "fair";
  Make(100, 16, /*max_batch_sequences=*/1);
  next_tenant_ = "busy";
  for (int i = 0; i < 20; ++i) Add(4, 3);
  for (int step = 0; step < 30; ++step) Step();  // Ten of them.
  next_tenant_ = "late";
  for (int i = 0; i < 5; ++i) Add(4, 3);
  std::string order;
  for (int step = 0; step < 18; ++step) {
    Step();
    const uint64_t id = static_cast<uint64_t>(plan_.sequences[0].id);
    if (step % 3 == 0) order += id <= 20 ? 'b' : 'l';
  }
  EXPECT_EQ(order, "blblbl");
}

TEST_F(SchedulerTest, TimesStepsFromCommitToCommitAndNotWhileNothingIsLive) {
  Make(100, 16, 1);
  const auto at = [](int seconds) { return kStart + absl::Seconds(seconds); };
  Add(4, 2);
  Step(at(10));
  EXPECT_EQ(report_.commit_interval, absl::ZeroDuration());
  Step(at(13));
  EXPECT_EQ(report_.commit_interval, absl::Seconds(3));
  EXPECT_FALSE(scheduler_->HasWork());
  Add(4, 2);
  Step(at(60));
  EXPECT_EQ(report_.commit_interval, absl::ZeroDuration());
  events_.Clear();
  scheduler_->Abort(RequestId{2}, FinishReason::kCancelled, at(61), events_);
  Add(4, 2);
  Step(at(90));
  EXPECT_EQ(report_.commit_interval, absl::ZeroDuration());
}

TEST(SchedulerOptionsTest, NamesWhatIsWrong) {
  const auto error = [](SchedulerOptions options) {
    return std::string(options.Validate().message());
  };
  EXPECT_THAT(error({.policy = "lifo"}), HasSubstr("fcfs, priority, fair"));
  EXPECT_THAT(error({.priority_ageing = absl::ZeroDuration()}),
              HasSubstr("priority_ageing"));
  EXPECT_THAT(error({.max_prefill_share = 0}), HasSubstr("max_prefill_share"));
  EXPECT_THAT(error({.max_prefill_share = 1.5}), HasSubstr("1.5"));
  EXPECT_THAT(error({.target_itl = -absl::Seconds(1)}),
              HasSubstr("target_itl"));
  EXPECT_THAT(error({.watermark_pages = -1}), HasSubstr("watermark_pages"));
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
