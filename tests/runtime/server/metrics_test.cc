// Metrics of a scripted engine whose clock is moved by hand, in the text
// format.

#include "runtime/server/metrics.h"

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <iostream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/server/finish_reason_name.h"
#include "tests/runtime/server/scrape.h"
#include "tests/support/sanitized.h"
#include "tests/support/scripted_engine.h"

namespace folio {
namespace {

constexpr int32_t kPages = 20;
constexpr int64_t kPageBytes = 16 * ScriptedEngine::kTokenBytes;

class MetricsTest : public testing::Test {
 protected:
  explicit MetricsTest(int32_t num_pages = kPages)
      : engine_(ScriptedEngine::Options(num_pages)),
        metrics_("scripted", {.page_size = 16,
                              .num_pages = num_pages,
                              .pool_bytes = num_pages * kPageBytes,
                              .kv_type = ElementType::kF32,
                              .prefix_cache = true}) {}

  // Takes a turn so much later. Returns whether work is left.
  bool Step(absl::Duration after) {
    engine_.clock().Advance(after);
    const bool has_work = engine_->Step(output_);
    metrics_.Observe(output_);
    return has_work;
  }

  Scrape Now() const {
    return ParseScrape(
        prometheus::TextSerializer().Serialize(metrics_.registry()->Collect()));
  }

  void ExpectIdle(const Scrape& now) {
    for (const char* name :
         {"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc",
          "kv_tokens_held", "kv_waste_bytes", "kv_shared_bytes_saved"}) {
      EXPECT_EQ(now.Value(absl::StrCat("folio:", name)), 0) << name;
    }
    EXPECT_EQ(now.Value("folio:kv_pages", "state=\"in_use\""), 0);
    EXPECT_EQ(now.Value("folio:kv_pages", "state=\"free\"") +
                  now.Value("folio:kv_pages", "state=\"cached\""),
              engine_->load().pages_total);
    EXPECT_EQ(metrics_.num_timed_requests(), 0u);
  }

  ScriptedEngine engine_;
  Metrics metrics_;
  StepOutput output_;
};

double Ends(const Scrape& now, const std::string& reason) {
  return now.Value("folio:request_success_total",
                   absl::StrCat("finished_reason=\"", reason, "\""));
}

TEST_F(MetricsTest, HaveTheNamesAndTypesThatDashboardsKnow) {
  const std::map<std::string, std::string> expected = {
      {"folio:cache_config_info", "gauge"},
      {"folio:e2e_request_latency_seconds", "histogram"},
      {"folio:generation_tokens_total", "counter"},
      {"folio:inter_token_latency_seconds", "histogram"},
      {"folio:iteration_tokens_total", "histogram"},
      {"folio:kv_cache_usage_perc", "gauge"},
      {"folio:kv_pages", "gauge"},
      {"folio:kv_shared_bytes_saved", "gauge"},
      {"folio:kv_tokens_held", "gauge"},
      {"folio:kv_waste_bytes", "gauge"},
      {"folio:num_preemptions_total", "counter"},
      {"folio:num_requests_running", "gauge"},
      {"folio:num_requests_waiting", "gauge"},
      {"folio:prefix_cache_hits_total", "counter"},
      {"folio:prefix_cache_queries_total", "counter"},
      {"folio:prompt_tokens_total", "counter"},
      {"folio:request_decode_time_seconds", "histogram"},
      {"folio:request_prefill_time_seconds", "histogram"},
      {"folio:request_queue_time_seconds", "histogram"},
      {"folio:request_success_total", "counter"},
      {"folio:step_seconds", "histogram"},
      {"folio:time_to_first_token_seconds", "histogram"},
  };
  const Scrape now = Now();
  std::map<std::string, std::string> ours;
  for (const auto& [name, type] : now.types) {
    if (name.starts_with("folio:")) ours.emplace(name, type);
  }
  EXPECT_EQ(ours, expected);
  // Counters are there before the first event, so that rates see it.
  for (const FinishReason reason : kFinishReasons) {
    EXPECT_EQ(Ends(now, NameOf(reason)), 0);
  }
  EXPECT_EQ(now.Value("folio:cache_config_info",
                      "block_size=\"16\",cache_dtype=\"f32\","
                      "enable_prefix_caching=\"True\",kv_pool_bytes=\"2560\","
                      "num_gpu_blocks=\"20\""),
            1);
  ExpectIdle(now);
}

TEST_F(MetricsTest, FollowOneRequest) {
  // 40 tokens in steps of at most 32.
  engine_.Submit(ScriptedEngine::MakeRequest(std::vector<TokenId>(40, 5), 3));
  Step(absl::Seconds(1));  // Admitted.
  Scrape now = Now();
  EXPECT_EQ(now.Value("folio:num_requests_running"), 1);
  EXPECT_EQ(now.Value("folio:kv_cache_usage_perc"), 2.0 / kPages);
  EXPECT_EQ(now.Value("folio:kv_tokens_held"), 32);
  EXPECT_EQ(now.Value("folio:kv_waste_bytes"), 0);
  EXPECT_EQ(now.Value("folio:prompt_tokens_total"), 0);

  Step(absl::Seconds(2));  // Its first token.
  now = Now();
  EXPECT_EQ(now.Value("folio:kv_cache_usage_perc"), 3.0 / kPages);
  EXPECT_EQ(now.Value("folio:kv_tokens_held"), 40);
  EXPECT_EQ(now.Value("folio:kv_waste_bytes"), 8 * ScriptedEngine::kTokenBytes);
  EXPECT_EQ(now.Value("folio:kv_pages", "state=\"in_use\""), 3);
  EXPECT_EQ(now.Value("folio:kv_pages", "state=\"free\""), kPages - 3);
  EXPECT_EQ(now.Value("folio:prompt_tokens_total"), 40);
  EXPECT_EQ(now.Value("folio:generation_tokens_total"), 1);
  // When it happens, not when the request ends.
  EXPECT_EQ(now.Sum("folio:time_to_first_token_seconds"), 3);
  EXPECT_EQ(now.UpTo("folio:time_to_first_token_seconds", "2.5"), 0);
  EXPECT_EQ(now.UpTo("folio:time_to_first_token_seconds", "5"), 1);
  EXPECT_EQ(now.Count("folio:inter_token_latency_seconds"), 0);

  Step(absl::Milliseconds(500));
  EXPECT_FALSE(Step(absl::Seconds(2)));
  now = Now();
  ExpectIdle(now);
  EXPECT_EQ(now.Value("folio:kv_pages", "state=\"cached\""), 2);
  EXPECT_EQ(now.Value("folio:generation_tokens_total"), 3);
  EXPECT_EQ(now.Value("folio:prefix_cache_queries_total"), 40);
  EXPECT_EQ(now.Value("folio:prefix_cache_hits_total"), 0);
  EXPECT_EQ(Ends(now, "length"), 1);
  const auto expect_histogram = [&](const std::string& name, double sum,
                                    double count) {
    EXPECT_EQ(now.Sum("folio:" + name), sum) << name;
    EXPECT_EQ(now.Count("folio:" + name), count) << name;
  };
  expect_histogram("time_to_first_token_seconds", 3, 1);
  expect_histogram("inter_token_latency_seconds", 0.5 + 2, 2);
  expect_histogram("request_queue_time_seconds", 1, 1);
  expect_histogram("request_prefill_time_seconds", 2, 1);
  expect_histogram("request_decode_time_seconds", 2.5, 1);
  expect_histogram("e2e_request_latency_seconds", 5.5, 1);
  expect_histogram("iteration_tokens_total", 32 + 8 + 1 + 1, 4);
  EXPECT_EQ(now.UpTo("folio:iteration_tokens_total", "1"), 2);
  EXPECT_EQ(now.UpTo("folio:iteration_tokens_total", "8"), 3);
  EXPECT_EQ(now.UpTo("folio:inter_token_latency_seconds", "0.5"), 1);
}

TEST_F(MetricsTest, FollowSharing) {
  const std::vector<TokenId> prompt(40, 5);
  engine_.RunOne(ScriptedEngine::MakeRequest(prompt, 1));
  // 32 tokens are in the cache. The samples share three pages, until the first
  // one writes to the last of them.
  Request request = ScriptedEngine::MakeRequest(prompt, 3);
  request.n = 2;
  engine_.Submit(std::move(request));
  Step(absl::Seconds(1));
  Scrape now = Now();
  EXPECT_EQ(now.Value("folio:num_requests_running"), 2);
  // (RunOne's steps were not observed.)
  EXPECT_EQ(now.Value("folio:prefix_cache_queries_total"), 40);
  EXPECT_EQ(now.Value("folio:prefix_cache_hits_total"), 32);
  EXPECT_EQ(now.Value("folio:kv_shared_bytes_saved"), 3 * kPageBytes);
  EXPECT_EQ(now.Value("folio:kv_tokens_held"), 40);
  Step(absl::Seconds(1));
  now = Now();
  EXPECT_EQ(now.Value("folio:kv_shared_bytes_saved"), 2 * kPageBytes);
  EXPECT_EQ(now.Value("folio:kv_tokens_held"), 32 + 2 * 9);
  EXPECT_FALSE(Step(absl::Seconds(1)));
  now = Now();
  ExpectIdle(now);
  EXPECT_EQ(now.Value("folio:prompt_tokens_total"), 40);
  EXPECT_EQ(now.Value("folio:generation_tokens_total"), 6);
  EXPECT_EQ(now.Count("folio:inter_token_latency_seconds"), 4);
  EXPECT_EQ(now.Sum("folio:inter_token_latency_seconds"), 4);
  EXPECT_EQ(now.Count("folio:time_to_first_token_seconds"), 1);
  EXPECT_EQ(Ends(now, "length"), 1);
}

TEST_F(MetricsTest, CountWaiting) {
  for (TokenId t = 0; t < 7; ++t) {
    engine_.Submit(ScriptedEngine::MakeRequest({t, t}, 2));
  }
  Step(absl::ZeroDuration());  // Four run at most.
  const Scrape now = Now();
  EXPECT_EQ(now.Value("folio:num_requests_running"), 4);
  EXPECT_EQ(now.Value("folio:num_requests_waiting"), 3);
}

// Gauges follow what happens between steps, too.
TEST_F(MetricsTest, FollowAFlush) {
  engine_.RunOne(ScriptedEngine::MakeRequest(std::vector<TokenId>(40, 5), 1));
  Step(absl::ZeroDuration());
  EXPECT_EQ(Now().Value("folio:kv_pages", "state=\"cached\""), 2);
  engine_->FlushPrefixCache();
  Step(absl::ZeroDuration());
  EXPECT_EQ(Now().Value("folio:kv_pages", "state=\"cached\""), 0);
}

TEST_F(MetricsTest, CountEachEndByItsReason) {
  // stop: its first token is a stop token.
  Request stops = ScriptedEngine::MakeRequest({1, 2}, 9);
  stops.stop_tokens = ScriptedEngine::Expected({1, 2}, 1);
  engine_.Submit(std::move(stops));
  // length, without a token.
  engine_.Submit(ScriptedEngine::MakeRequest({1, 2, 3}, 0));
  // error.
  engine_.Submit(ScriptedEngine::MakeRequest({1, ScriptedModel::kPoison}, 9));
  Step(absl::Seconds(1));
  // abort, of one that runs and of one that never did.
  const RequestId running = engine_.Submit(ScriptedEngine::MakeRequest({4}, 9));
  Step(absl::Seconds(1));
  engine_->Abort(running);
  engine_->Abort(engine_.Submit(ScriptedEngine::MakeRequest({5}, 9)));
  Step(absl::Seconds(1));
  // deadline.
  Request late = ScriptedEngine::MakeRequest({6}, 9);
  late.deadline = engine_.clock().Now() + absl::Seconds(1);
  engine_.Submit(std::move(late));
  Step(absl::Seconds(2));
  // shutdown.
  engine_.Submit(ScriptedEngine::MakeRequest({7}, 9));
  Step(absl::Seconds(1));
  engine_->Close();
  Step(absl::Seconds(1));

  const Scrape now = Now();
  ExpectIdle(now);
  const std::map<std::string, double> expected = {
      {"stop", 1},     {"length", 1},   {"abort", 2},
      {"deadline", 1}, {"shutdown", 1}, {"error", 1}};
  for (const auto& [reason, count] : expected) {
    EXPECT_EQ(Ends(now, reason), count) << reason;
  }
  EXPECT_EQ(now.Count("folio:e2e_request_latency_seconds"), 7);
  EXPECT_EQ(now.Count("folio:request_queue_time_seconds"), 7);
  // Three got a token: that which stopped, that which was aborted while it ran,
  // and the last.
  EXPECT_EQ(now.Count("folio:time_to_first_token_seconds"), 3);
  EXPECT_EQ(now.Count("folio:request_prefill_time_seconds"), 3);
  EXPECT_EQ(now.Count("folio:request_decode_time_seconds"), 3);
}

TEST_F(MetricsTest, HaveTheTimesOfAStepsParts) {
  StepOutput output;
  output.stepped = true;
  output.report.plan_duration = absl::Milliseconds(250);
  output.report.forward_duration = absl::Seconds(4);
  output.report.sample_duration = absl::Milliseconds(500);
  output.report.commit_duration = absl::Milliseconds(125);
  metrics_.Observe(output);
  metrics_.Observe(output);
  const Scrape now = Now();
  const std::map<std::string, double> sums = {
      {"plan", 0.5}, {"forward", 8}, {"sample", 1}, {"commit", 0.25}};
  for (const auto& [part, sum] : sums) {
    const std::string label = absl::StrCat("part=\"", part, "\"");
    EXPECT_EQ(now.Sum("folio:step_seconds", label), sum) << part;
    EXPECT_EQ(now.Count("folio:step_seconds", label), 2) << part;
  }
}

TEST_F(MetricsTest, CountAGapOnceForSeveralTokens) {
  const auto observe = [&](absl::Duration after, size_t num_tokens) {
    StepOutput output;
    output.time = absl::UnixEpoch() + after;
    TokenEvent& event = output.events.Append();
    event.request_id = RequestId{1};
    event.sampled.tokens.assign(num_tokens, 5);
    metrics_.Observe(output);
  };
  observe(absl::Seconds(1), 3);
  observe(absl::Seconds(2), 0);  // Nothing but text.
  observe(absl::Seconds(5), 2);
  const Scrape now = Now();
  EXPECT_EQ(now.Count("folio:inter_token_latency_seconds"), 1);
  EXPECT_EQ(now.Sum("folio:inter_token_latency_seconds"), 4);
}

// What the clients of a random mix can see, added up without Metrics.
class Tally {
 public:
  void Take(const StepOutput& output) {
    for (const TokenEvent& event : output.events) {
      if (event.terminal) {
        TakeEnd(event);
      } else if (!event.sampled.tokens.empty()) {
        TakeTokens(event, output.time);
      }
    }
  }

  std::map<RequestId, std::string> ends;
  int64_t generated = 0;
  int64_t preemptions = 0;
  int64_t with_token = 0;
  int64_t gaps = 0;
  absl::Duration gap_sum;
  absl::Duration first_token_sum;
  absl::Duration decode_sum;
  absl::Duration end_to_end_sum;

 private:
  void TakeEnd(const TokenEvent& event) {
    const Usage& usage = event.usage;
    EXPECT_TRUE(
        ends.emplace(event.request_id, NameOf(event.finish_reason)).second);
    generated += usage.generated_tokens;
    preemptions += usage.preemptions;
    const absl::Duration first = usage.queue_duration + usage.prefill_duration;
    end_to_end_sum += first + usage.decode_duration;
    if (usage.generated_tokens == 0) return;
    ++with_token;
    first_token_sum += first;
    decode_sum += usage.decode_duration;
  }

  // The gaps of one sample add up to the time from its first to its last.
  void TakeTokens(const TokenEvent& event, absl::Time now) {
    const auto [entry, is_first] =
        last_.emplace(std::pair(event.request_id, event.sample_index), now);
    if (is_first) return;
    ++gaps;
    gap_sum += now - std::exchange(entry->second, now);
  }

  std::map<std::pair<RequestId, int32_t>, absl::Time> last_;
};

// Too few pages for four sequences of full length, so that some are preempted.
class CrowdedMetricsTest : public MetricsTest {
 protected:
  CrowdedMetricsTest() : MetricsTest(/*num_pages=*/14) {}

  int Draw(int end) { return static_cast<int>(random_() % end); }

  void SubmitOne() {
    std::vector<TokenId> prompt(1 + Draw(60), static_cast<TokenId>(Draw(5)));
    if (Draw(8) == 0) prompt.back() = ScriptedModel::kPoison;
    Request request = ScriptedEngine::MakeRequest(std::move(prompt), Draw(90));
    request.n = 1 + Draw(3);
    request.ignore_eos = Draw(2) == 0;
    if (Draw(4) == 0) {
      request.deadline =
          engine_.clock().Now() + absl::Milliseconds(1 + Draw(5000));
    }
    submitted_.push_back(engine_.Submit(std::move(request)));
  }

  void Run(int num_requests) {
    const auto step = [&] {
      const bool has_work = Step(absl::Milliseconds(1 + Draw(100)));
      tally_.Take(output_);
      return has_work;
    };
    while (static_cast<int>(submitted_.size()) < num_requests) {
      if (engine_->load().sequences_waiting < 6 && Draw(4) == 0) SubmitOne();
      if (Draw(40) == 0 && !submitted_.empty()) {
        engine_->Abort(submitted_[Draw(static_cast<int>(submitted_.size()))]);
        engine_->Abort(submitted_.back(), FinishReason::kAborted);
      }
      step();
    }
    for (int i = 0; i < 5; ++i) SubmitOne();
    step();
    engine_->Close();
    EXPECT_FALSE(step());
  }

  std::mt19937_64 random_;
  std::vector<RequestId> submitted_;
  Tally tally_;
};

TEST_F(CrowdedMetricsTest, AgreeWithWhatTheClientsSee) {
  const uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  random_.seed(seed);
  Run(kSanitized ? 300 : 1500);

  const Scrape now = Now();
  ExpectIdle(now);
  EXPECT_EQ(tally_.ends.size(), submitted_.size());
  // Two reasons may have one name.
  std::map<std::string, double> expected;
  for (const auto& [id, name] : tally_.ends) ++expected[name];
  double all = 0;
  for (const char* name :
       {"stop", "length", "abort", "deadline", "shutdown", "error"}) {
    EXPECT_EQ(Ends(now, name), expected[name]) << name;
    EXPECT_GT(expected[name], 0) << name << " was not tried";
    all += Ends(now, name);
  }
  EXPECT_EQ(all, static_cast<double>(submitted_.size()));
  EXPECT_EQ(now.Value("folio:generation_tokens_total"), tally_.generated);
  EXPECT_EQ(now.Value("folio:num_preemptions_total"), tally_.preemptions);
  EXPECT_GT(tally_.preemptions, 0);
  // Sums of doubles differ from exact ones by rounding: at most one part in
  // 2^53 for each of some 10^5 observations.
  const auto expect_histogram = [&](const std::string& name, int64_t count,
                                    absl::Duration sum) {
    EXPECT_EQ(now.Count("folio:" + name), count) << name;
    EXPECT_NEAR(now.Sum("folio:" + name), absl::ToDoubleSeconds(sum), 1e-6)
        << name;
  };
  expect_histogram("time_to_first_token_seconds", tally_.with_token,
                   tally_.first_token_sum);
  expect_histogram("request_decode_time_seconds", tally_.with_token,
                   tally_.decode_sum);
  expect_histogram("inter_token_latency_seconds", tally_.gaps, tally_.gap_sum);
  expect_histogram("e2e_request_latency_seconds",
                   static_cast<int64_t>(submitted_.size()),
                   tally_.end_to_end_sum);
}

}  // namespace
}  // namespace folio
