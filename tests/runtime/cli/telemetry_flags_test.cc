#include "runtime/cli/telemetry_flags.h"

#include <string>

#include "gtest/gtest.h"

namespace folio {
namespace {

// Whether `arguments` are taken, and what they make of `options`.
bool Parse(const std::string& arguments, TelemetryOptions& options) {
  CLI::App app;
  AddTelemetryFlags(app, options);
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError&) {
    return false;
  }
  return true;
}

TEST(TelemetryFlags, AreOffByDefault) {
  TelemetryOptions options;
  EXPECT_TRUE(Parse("", options));
  EXPECT_FALSE(options.metrics_listen.has_value());
  EXPECT_FALSE(options.request_log.has_value());
  EXPECT_FALSE(options.log_prompts);
}

TEST(TelemetryFlags, FillTheOptions) {
  TelemetryOptions options;
  EXPECT_TRUE(Parse(
      "--metrics-listen 127.0.0.1:0 --request-log - --log-prompts", options));
  EXPECT_EQ(options.metrics_listen, "127.0.0.1:0");
  EXPECT_EQ(options.request_log, "-");
  EXPECT_TRUE(options.log_prompts);
}

TEST(TelemetryFlags, RefuseWhatMakesNoSense) {
  TelemetryOptions options;
  EXPECT_FALSE(Parse("--metrics-listen 9100", options));
  EXPECT_FALSE(Parse("--log-prompts", options));
}

}  // namespace
}  // namespace folio
