#include "runtime/server/telemetry.h"

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/runtime/server/scrape.h"
#include "tests/support/scripted_engine.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

class TelemetryTest : public testing::Test {
 protected:
  TelemetryTest() : engine_(ScriptedEngine::Options(20)) {}

  std::unique_ptr<Telemetry> Make(const TelemetryOptions& options) {
    auto telemetry = Telemetry::Create(options, *engine_);
    EXPECT_TRUE(telemetry.ok()) << telemetry.status();
    return *std::move(telemetry);
  }

  // Runs one request of 40 tokens that generates three, a second a step.
  void RunOne(Telemetry& telemetry) {
    engine_.Submit(ScriptedEngine::MakeRequest(std::vector<TokenId>(40, 5), 3));
    StepOutput output;
    bool has_work = true;
    while (has_work) {
      engine_.clock().Advance(absl::Seconds(1));
      has_work = engine_->Step(output);
      telemetry.Observe(output);
      for (const TokenEvent& event : output.events) {
        if (event.terminal) {
          telemetry.LogEnd({.name = "it", .prompt = "text"}, event,
                           output.time);
        }
      }
    }
  }

  ScriptedEngine engine_;
};

TEST_F(TelemetryTest, IsTheLoadMeterAloneUnlessAsked) {
  const auto telemetry = Make({});
  EXPECT_EQ(telemetry->metrics_address(), "");
  EXPECT_FALSE(telemetry->wants_prompts());
  RunOne(*telemetry);
  // 32 and 8 tokens of the prompt, and three generated, within 10 seconds.
  const TokenRates rates = telemetry->load_meter().Rates(engine_.clock().Now());
  EXPECT_EQ(rates.prompt, 4);
  EXPECT_EQ(rates.generated, 0.3);
}

TEST_F(TelemetryTest, ServesMetricsAndLogs) {
  const TempDir dir;
  const std::string log = dir.path() + "/log";
  const auto telemetry = Make({.metrics_listen = "127.0.0.1:0",
                               .request_log = log,
                               .log_prompts = true});
  EXPECT_TRUE(telemetry->wants_prompts());
  RunOne(*telemetry);
  const Scrape now = ScrapeOf(telemetry->metrics_address());
  EXPECT_EQ(
      now.Value("folio:request_success_total", "finished_reason=\"length\""),
      1);
  EXPECT_EQ(now.Value("folio:cache_config_info",
                      "block_size=\"16\",cache_dtype=\"f32\","
                      "enable_prefix_caching=\"True\",kv_pool_bytes=\"2560\","
                      "num_gpu_blocks=\"20\""),
            1);
  std::ifstream file(log);
  const auto line = nlohmann::json::parse(file);
  EXPECT_EQ(line.at("request_id"), "it");
  EXPECT_EQ(line.at("model"), "scripted");
  EXPECT_EQ(line.at("prompt"), "text");
  EXPECT_EQ(line.at("e2e_ms"), 4000.0);
}

TEST_F(TelemetryTest, FailsWithWhatItCannotHave) {
  EXPECT_EQ(Telemetry::Create({.metrics_listen = "nonsense"}, *engine_)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Telemetry::Create({.request_log = "/none/such/file"}, *engine_)
                .status()
                .code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace folio
