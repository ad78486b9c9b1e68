// Random loads on random targets, compared with a twin that knows only what the
// target has seen and done.

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/load/run.h"
#include "gtest/gtest.h"
#include "tests/bench/load/run_support.h"

namespace folio {
namespace {

using Random = std::mt19937_64;
using Durations = std::vector<absl::Duration>;

int Draw(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

// True `percent` times of a hundred.
bool Chance(Random& random, int percent) {
  return Draw(random, 1, 100) <= percent;
}

std::vector<LoadRequest> RandomLoad(Random& random) {
  std::vector<LoadRequest> load;
  const int count = Draw(random, 1, 40);
  std::vector<bool> is_gone_on_from(count, false);
  for (int i = 0; i < count; ++i) {
    LoadRequest request{.arrival = Ms(Draw(random, 50, 600)),
                        .prompt_tokens = Draw(random, 1, 30),
                        .output_tokens = Draw(random, 1, 8),
                        .token_seed = random(),
                        .n = Chance(random, 20) ? 3 : 1};
    if (Chance(random, 15)) request.cancel_after = Ms(Draw(random, 0, 200));
    if (Chance(random, 15)) request.deadline = Ms(Draw(random, 0, 200));
    const int previous = i > 0 ? Draw(random, 0, i - 1) : 0;
    if (i > 0 && Chance(random, 40) && !is_gone_on_from[previous]) {
      is_gone_on_from[previous] = true;
      request.previous = previous;
      request.think_time = Ms(Draw(random, 0, 150));
    }
    load.push_back(request);
  }
  return load;
}

Script RandomScript(const TargetRequest& request, Random& random) {
  Script script;
  absl::Duration time;
  const int messages = Draw(random, 0, 2 * request.max_tokens);
  for (int i = 0; i < messages; ++i) {
    time += Ms(Draw(random, 0, 15));
    script.messages.push_back({.time = time,
                               .sample = Draw(random, 0, request.n - 1),
                               .num_tokens = Draw(random, 0, 3)});
  }
  script.end = time + Ms(Draw(random, 0, 10));
  script.is_refused = Chance(random, 7);
  script.tells_queue = Chance(random, 50);
  if (script.is_refused) script.status = absl::ResourceExhaustedError("full");
  if (Chance(random, 7)) script.status = absl::UnavailableError("reset");
  if (script.is_refused && script.status.ok()) script.is_refused = false;
  if (Chance(random, 20)) script.told_output_tokens = Draw(random, 0, 9);
  if (Chance(random, 20)) script.told_prompt_tokens = Draw(random, 1, 99);
  return script;
}

// The definition, by counting.
absl::Duration NaivePercentile(const Durations& values, int percent) {
  absl::Duration best = absl::InfiniteDuration();
  for (const absl::Duration value : values) {
    const auto not_above = std::ranges::count_if(
        values, [value](absl::Duration v) { return v <= value; });
    if (not_above * 100 >= percent * std::ssize(values)) {
      best = std::min(best, value);
    }
  }
  return best;
}

void ExpectSummary(const DurationSummary& summary, const Durations& values) {
  ASSERT_EQ(summary.count, std::ssize(values));
  if (values.empty()) return;
  absl::Duration sum;
  for (const absl::Duration value : values) sum += value;
  EXPECT_EQ(summary.mean, sum / std::ssize(values));
  EXPECT_EQ(summary.p50, NaivePercentile(values, 50));
  EXPECT_EQ(summary.p90, NaivePercentile(values, 90));
  EXPECT_EQ(summary.p95, NaivePercentile(values, 95));
  EXPECT_EQ(summary.p99, NaivePercentile(values, 99));
  EXPECT_EQ(summary.max, *std::ranges::max_element(values));
}

class Simulation {
 public:
  explicit Simulation(uint64_t seed)
      : random_(seed),
        load_(RandomLoad(random_)),
        concurrency_(Chance(random_, 50) ? Draw(random_, 1, 8) : 0),
        target_(&clock_, Draw(random_, 1, 6),
                [this](const TargetRequest& request) {
                  scripts_.push_back(RandomScript(request, random_));
                  return scripts_.back();
                }) {
    if (Chance(random_, 30)) clock_.SetLateness(Ms(Draw(random_, 1, 40)));
    result_ = Run(load_, target_, clock_, {.concurrency = concurrency_});
    for (size_t i = 0; i < target_.seen().size(); ++i) {
      places_[target_.seen()[i].request.name] = i;
    }
  }

  void Check() {
    ASSERT_TRUE(result_.broke_off.ok()) << result_.broke_off;
    ASSERT_EQ(result_.records.size(), load_.size());
    ASSERT_EQ(result_.send_lags.size(), target_.seen().size());
    FindDueTimes();
    for (size_t i = 0; i < load_.size(); ++i) CheckRequest(i);
    CheckMetrics();
  }

 private:
  const ScriptedTarget::Seen* SeenOf(size_t index) const {
    const auto place = places_.find(absl::StrCat("load-", index));
    return place == places_.end() ? nullptr : &target_.seen()[place->second];
  }

  // Of a closed loop, the n-th request to go gets the slot that came free n-th.
  void FindDueTimes() {
    std::vector<absl::Time> slots(concurrency_, RunStart());
    for (const auto& seen : target_.seen()) slots.push_back(seen.end);
    std::ranges::sort(slots);
    for (size_t place = 0; place < target_.seen().size(); ++place) {
      const size_t i = std::stoul(target_.seen()[place].request.name.substr(5));
      absl::Time due = RunStart() + (concurrency_ > 0 ? absl::ZeroDuration()
                                                      : load_[i].arrival);
      if (load_[i].previous.has_value()) {
        due = SeenOf(*load_[i].previous)->end + load_[i].think_time;
      }
      if (concurrency_ > 0) due = std::max(due, slots[place]);
      due_[i] = due;
    }
    if (concurrency_ > 0) {
      EXPECT_LE(target_.max_live(), concurrency_);
    }
  }

  void CheckRequest(size_t i) {
    SCOPED_TRACE(absl::StrCat("request ", i));
    const RequestRecord& record = result_.records[i];
    const ScriptedTarget::Seen* const seen = SeenOf(i);
    const bool is_sent = !load_[i].previous.has_value() ||
                         result_.records[*load_[i].previous].status.ok();
    ASSERT_EQ(seen != nullptr, is_sent);
    ASSERT_EQ(record.sent.has_value(), is_sent);
    if (!is_sent) {
      EXPECT_TRUE(absl::IsAborted(record.status));
      return;
    }
    EXPECT_EQ(record.status, seen->status);
    EXPECT_EQ(RunStart() + record.arrival, due_[i]);
    EXPECT_EQ(RunStart() + *record.sent, seen->sent);
    EXPECT_EQ(due_[i] + *record.end, seen->end);
    EXPECT_EQ(result_.send_lags[places_[record.name]], seen->sent - due_[i]);
    if (load_[i].deadline.has_value()) {
      EXPECT_EQ(seen->request.deadline, due_[i] + *load_[i].deadline);
    }
  }

  // Adds what the request gives to the values below.
  void Collect(size_t i) {
    const ScriptedTarget::Seen& seen = *SeenOf(i);
    const Script& script = scripts_[places_[seen.request.name]];
    begin_ = std::min(begin_, due_[i]);
    output_tokens_ += script.told_output_tokens.value_or(
        static_cast<int>(seen.tokens.size()));
    if (script.tells_queue && seen.service.has_value()) {
      queue_.push_back(*seen.service - seen.sent);
    }
    if (seen.status.ok()) e2e_.push_back(seen.end - due_[i]);
    if (seen.tokens.empty()) return;
    ttft_.push_back(seen.tokens.front().time - due_[i]);
    last_token_ = std::max(last_token_, seen.tokens.back().time);
    input_tokens_ += script.told_prompt_tokens.value_or(static_cast<int>(
        std::get<std::vector<TokenId>>(seen.request.prompt).size()));
    std::map<int, std::vector<absl::Time>> samples;
    int64_t longest = 0;
    for (const auto& token : seen.tokens) {
      std::vector<absl::Time>& times = samples[token.sample];
      if (!times.empty()) itl_.push_back(token.time - times.back());
      times.push_back(token.time);
      longest = std::max(longest, std::ssize(times));
    }
    if (seen.status.ok() && longest > 1) {
      tpot_.push_back((seen.end - seen.tokens.front().time) / (longest - 1));
    }
  }

  void CheckMetrics() {
    int64_t served = 0;
    int64_t asked_for = 0;
    int64_t not_sent = 0;
    for (size_t i = 0; i < load_.size(); ++i) {
      if (SeenOf(i) != nullptr) Collect(i);
      served += SeenOf(i) != nullptr && SeenOf(i)->status.ok();
      // Its own end, or that of a turn before it, was the load's will.
      size_t cause = i;
      while (SeenOf(cause) == nullptr) cause = *load_[cause].previous;
      const absl::Status& status = SeenOf(cause)->status;
      const bool was_asked_for =
          absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
      EXPECT_EQ(result_.records[i].end_was_asked_for, was_asked_for);
      not_sent += cause != i;
      asked_for += was_asked_for && cause == i;
    }
    const LoadMetrics metrics = Measure(result_.records);
    ExpectSummary(metrics.ttft, ttft_);
    ExpectSummary(metrics.itl, itl_);
    ExpectSummary(metrics.tpot, tpot_);
    ExpectSummary(metrics.e2e, e2e_);
    ExpectSummary(metrics.queue, queue_);
    EXPECT_EQ(metrics.requests, std::ssize(load_));
    EXPECT_EQ(metrics.served, served);
    EXPECT_EQ(metrics.good, served);
    EXPECT_EQ(metrics.not_sent, not_sent);
    EXPECT_EQ(metrics.ended_as_asked, asked_for);
    EXPECT_EQ(metrics.failed,
              std::ssize(load_) - served - asked_for - not_sent);
    EXPECT_EQ(metrics.output_tokens, output_tokens_);
    EXPECT_EQ(metrics.input_tokens, input_tokens_);
    if (ttft_.empty()) return;
    EXPECT_EQ(metrics.duration, last_token_ - begin_);
    const double seconds = absl::ToDoubleSeconds(last_token_ - begin_);
    if (seconds == 0) return;
    EXPECT_DOUBLE_EQ(metrics.output_tokens_per_second,
                     output_tokens_ / seconds);
    EXPECT_DOUBLE_EQ(metrics.input_tokens_per_second, input_tokens_ / seconds);
    EXPECT_DOUBLE_EQ(metrics.requests_per_second, served / seconds);
  }

  Random random_;
  VirtualRunClock clock_{RunStart()};
  const std::vector<LoadRequest> load_;
  const int32_t concurrency_;
  std::vector<Script> scripts_;  // In the order in which requests were sent.
  ScriptedTarget target_;
  RunResult result_;
  std::map<std::string, size_t> places_;  // Among those that were sent.
  std::map<size_t, absl::Time> due_;

  Durations ttft_;
  Durations itl_;
  Durations tpot_;
  Durations e2e_;
  Durations queue_;
  int64_t output_tokens_ = 0;
  int64_t input_tokens_ = 0;
  absl::Time begin_ = absl::InfiniteFuture();
  absl::Time last_token_ = absl::InfinitePast();
};

TEST(RunSimulationTest, AgreesWithItsTwin) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Simulation(seed).Check();
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace folio
