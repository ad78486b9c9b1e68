// Runs that come to an early end.

#include <atomic>
#include <limits>

#include "bench/load/run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/bench/load/run_support.h"

namespace folio {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Tokens at 10, 20, 30, ... ms, and no end for hours.
Script Endless(const TargetRequest& /*request*/) {
  Script script;
  for (int i = 1; i <= 1000; ++i)
    script.messages.push_back({.time = Ms(10) * i});
  script.end = absl::Hours(9);
  return script;
}

class RunBreakOffTest : public testing::Test {
 protected:
  RunBreakOffTest() {
    // Two that end in time, three that live long, and five to come; the last
    // one of these belongs to a conversation.
    for (int i = 0; i < 5; ++i)
      load_.push_back({.output_tokens = i < 2 ? 2 : 3});
    for (int i = 0; i < 4; ++i) load_.push_back({.arrival = Ms(1000 + i)});
    load_.push_back({.arrival = Ms(0), .previous = 8});
  }

  // What came before the break is kept, the rest was not sent.
  static void ExpectBrokenOffAt(const RunResult& result, double ms) {
    ASSERT_THAT(result.records, SizeIs(10));
    for (size_t i = 0; i < 10; ++i) {
      const RequestRecord& record = result.records[i];
      SCOPED_TRACE(i);
      if (i < 2) {
        EXPECT_TRUE(record.status.ok());
        EXPECT_EQ(record.end, Ms(20));
      } else if (i < 5) {
        EXPECT_EQ(record.sent, Ms(0));
        ASSERT_THAT(record.samples, SizeIs(1));
        EXPECT_THAT(record.samples[0], SizeIs(static_cast<size_t>(ms / 10)));
      } else {
        EXPECT_TRUE(absl::IsAborted(record.status)) << record.status;
        EXPECT_THAT(record.status.message(), HasSubstr("not sent"));
        EXPECT_EQ(record.sent, std::nullopt);
        EXPECT_EQ(record.end, std::nullopt);
        EXPECT_FALSE(record.end_was_asked_for);
      }
    }
    EXPECT_EQ(Measure(result.records).output_tokens,
              2 * 2 + 3 * static_cast<int64_t>(ms / 10));
  }

  std::function<Script(const TargetRequest&)> Scripts() {
    return [](const TargetRequest& request) {
      return request.max_tokens == 2 ? Steady(request, Ms(10), Ms(10))
                                     : Endless(request);
    };
  }

  VirtualRunClock clock_{RunStart()};
  ScriptedTarget target_{&clock_, 10, Scripts()};
  std::vector<LoadRequest> load_;
};

TEST_F(RunBreakOffTest, AServerThatDies) {
  clock_.At(RunStart() + Ms(555), [this] {
    target_.StopAnswering(absl::UnavailableError("127.0.0.1:1: refused"));
    target_.EndAll(absl::UnavailableError("socket closed"));
  });
  const RunResult result = folio::Run(load_, target_, clock_, {});
  EXPECT_EQ(result.broke_off, absl::UnavailableError("127.0.0.1:1: refused"));
  ExpectBrokenOffAt(result, 555);
  for (size_t i = 2; i < 5; ++i) {
    EXPECT_EQ(result.records[i].status,
              absl::UnavailableError("socket closed"));
    EXPECT_EQ(result.records[i].end, Ms(555));
  }
  EXPECT_EQ(clock_.Now(), RunStart() + Ms(555));
  EXPECT_FALSE(target_.is_watched());
}

// One connection is refused, and nobody answers any more. The others, which
// seem to live, are cancelled: their end would not come.
TEST_F(RunBreakOffTest, AServerThatHangs) {
  load_[4].arrival = Ms(400);
  clock_.At(RunStart() + Ms(390), [this] {
    target_.StopAnswering(absl::UnavailableError("no answer"));
  });
  const RunResult result = folio::Run(load_, target_, clock_, {});
  EXPECT_EQ(result.broke_off, absl::UnavailableError("no answer"));
  for (const size_t i : {2, 3}) {
    EXPECT_TRUE(absl::IsCancelled(result.records[i].status));
    EXPECT_EQ(result.records[i].end, Ms(400));
    EXPECT_THAT(result.records[i].samples[0], SizeIs(40));
    EXPECT_FALSE(result.records[i].end_was_asked_for);
  }
  EXPECT_TRUE(absl::IsUnavailable(result.records[4].status));
  for (const size_t i : {5, 6, 7, 8, 9}) {
    EXPECT_TRUE(absl::IsAborted(result.records[i].status));
  }
  EXPECT_THAT(target_.seen(), SizeIs(5));
  EXPECT_EQ(clock_.Now(), RunStart() + Ms(400));
}

// Only a server that does not answer ends the run: this one refuses requests,
// as one does that is full, and is asked once a second whether it is there.
TEST_F(RunBreakOffTest, AServerThatAnswersIsGoneOnWith) {
  ScriptedTarget target(&clock_, 10, [](const TargetRequest& request) {
    Script script = Steady(request, Ms(10), Ms(0));
    script.is_refused = request.name != "load-49";
    if (script.is_refused) script.status = absl::UnavailableError("too busy");
    return script;
  });
  std::vector<LoadRequest> load;
  for (int i = 0; i < 50; ++i) load.push_back({.arrival = Ms(100) * i});
  const RunResult result = folio::Run(load, target, clock_, {});
  EXPECT_TRUE(result.broke_off.ok());
  EXPECT_THAT(target.seen(), SizeIs(50));
  EXPECT_EQ(Measure(result.records).failed, 49);
  EXPECT_TRUE(result.records[49].status.ok());
  EXPECT_EQ(target.num_describes(), 5);  // 0, 1, ..., 4 s.
}

// It dies between two questions: the next one finds it, within a second.
TEST_F(RunBreakOffTest, AServerIsAskedAgain) {
  load_.clear();
  for (int i = 0; i < 40; ++i) load_.push_back({.arrival = Ms(100) * i});
  ScriptedTarget target(&clock_, 10, [](const TargetRequest& request) {
    Script script = Steady(request, Ms(10), Ms(0));
    script.is_refused = request.name == "load-3";
    if (script.is_refused) script.status = absl::UnavailableError("hiccup");
    return script;
  });
  clock_.At(RunStart() + Ms(650), [&target] {
    target.StopAnswering(absl::UnavailableError("gone"));
  });
  const RunResult result = folio::Run(load_, target, clock_, {});
  // Asked at 300 and, after the failure at 700, at 1300.
  EXPECT_EQ(result.broke_off, absl::UnavailableError("gone"));
  EXPECT_EQ(target.num_describes(), 2);
  EXPECT_THAT(target.seen(), SizeIs(14));
  EXPECT_EQ(Measure(result.records).served, 6);
}

// Other failures are nobody's death.
TEST_F(RunBreakOffTest, OtherFailuresAreNoReasonToAsk) {
  ScriptedTarget target(&clock_, 10, [](const TargetRequest&) {
    return Script{.status = absl::InternalError("bug"), .is_refused = true};
  });
  const RunResult result =
      folio::Run(std::span(load_).first(9), target, clock_, {});
  EXPECT_TRUE(result.broke_off.ok());
  EXPECT_THAT(target.seen(), SizeIs(9));
  EXPECT_EQ(target.num_describes(), 0);
}

// It is set between two wakes; nobody wakes the run for it.
TEST_F(RunBreakOffTest, AnInterrupt) {
  std::atomic<bool> interrupted = false;
  clock_.At(RunStart() + Ms(455), [&] { interrupted = true; });
  const RunResult result =
      folio::Run(load_, target_, clock_, {.interrupted = &interrupted});
  EXPECT_TRUE(absl::IsCancelled(result.broke_off));
  EXPECT_THAT(result.broke_off.message(), HasSubstr("interrupted"));
  ExpectBrokenOffAt(result, 600);
  for (size_t i = 2; i < 5; ++i) {
    EXPECT_TRUE(absl::IsCancelled(result.records[i].status));
    EXPECT_EQ(result.records[i].end, Ms(600));
    EXPECT_FALSE(result.records[i].end_was_asked_for);
  }
}

TEST_F(RunBreakOffTest, AnInterruptOfAClosedLoop) {
  std::atomic<bool> interrupted = false;
  clock_.At(RunStart() + Ms(55), [&] { interrupted = true; });
  const RunResult result = folio::Run(
      load_, target_, clock_, {.concurrency = 4, .interrupted = &interrupted});
  EXPECT_TRUE(absl::IsCancelled(result.broke_off));
  // Two of the first four ended at 20, and the next two took their slots.
  EXPECT_THAT(target_.seen(), SizeIs(6));
  EXPECT_EQ(target_.num_live(), 0);
  for (size_t i = 0; i < 10; ++i) {
    const RequestRecord& record = result.records[i];
    EXPECT_EQ(record.sent.has_value(), i < 6);
    EXPECT_EQ(record.status.code(), i < 2   ? absl::StatusCode::kOk
                                    : i < 6 ? absl::StatusCode::kCancelled
                                            : absl::StatusCode::kAborted);
  }
}

// Cancels take two seconds. What would be due by then, or get a slot, is not
// sent any more.
TEST_F(RunBreakOffTest, NothingIsSentAfterwards) {
  for (const int concurrency : {0, 4}) {
    VirtualRunClock clock(RunStart());
    ScriptedTarget target(&clock, 10, Scripts());
    target.SetCancelDelay(absl::Seconds(2));
    std::atomic<bool> interrupted = false;
    clock.At(RunStart() + Ms(55), [&] { interrupted = true; });
    const RunResult result =
        folio::Run(load_, target, clock,
                   {.concurrency = concurrency, .interrupted = &interrupted});
    EXPECT_TRUE(absl::IsCancelled(result.broke_off));
    EXPECT_EQ(clock.Now(), RunStart() + Ms(2200));
    // The first five, and in the closed loop the one that took the second slot
    // that came free.
    EXPECT_THAT(target.seen(), SizeIs(concurrency == 0 ? 5 : 6));
    EXPECT_EQ(result.records[4].end, Ms(concurrency == 0 ? 2200 : 2180));
    EXPECT_TRUE(absl::IsAborted(result.records[6].status));
  }
}

// Nothing waits for the slots of a loop that is broader than its load.
TEST_F(RunBreakOffTest, AHugeConcurrencyIsNoMemory) {
  const RunResult result =
      folio::Run(std::span(load_).first(2), target_, clock_,
                 {.concurrency = std::numeric_limits<int32_t>::max()});
  EXPECT_TRUE(result.records[1].status.ok());
}

}  // namespace
}  // namespace folio
