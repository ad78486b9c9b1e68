#include "runtime/server/metrics_server.h"

#include <prometheus/registry.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/server/metrics.h"
#include "tests/runtime/server/scrape.h"

namespace folio {
namespace {

using ::testing::HasSubstr;

absl::Status Refused(const std::string& listen) {
  return MetricsServer::Start(listen, std::make_shared<prometheus::Registry>())
      .status();
}

TEST(MetricsServer, ServesTheTextFormat) {
  const Metrics metrics("a \"quoted\\ name", {.num_pages = 7});
  const auto server = MetricsServer::Start("127.0.0.1:0", metrics.registry());
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string address = (*server)->address();
  EXPECT_TRUE(address.starts_with("127.0.0.1:")) << address;
  EXPECT_FALSE(address.ends_with(":0")) << address;

  const HttpResponse response = HttpGet(address, "/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.headers, HasSubstr("Content-Type: text/plain"));
  const Scrape scrape = ParseScrape(response.body);
  EXPECT_EQ(scrape.types.size(), scrape.helps.size());
  EXPECT_EQ(scrape.samples.at("folio:kv_pages{model_name="
                              "\"a \\\"quoted\\\\ name\",state=\"free\"}"),
            7);
  EXPECT_EQ(HttpGet(address, "/").status, 404);
  EXPECT_EQ(HttpGet(address, "/../etc/passwd").status, 404);
}

TEST(MetricsServer, StopsWithItsObject) {
  const Metrics metrics("scripted", {});
  auto server = MetricsServer::Start("127.0.0.1:0", metrics.registry());
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string address = (*server)->address();
  server->reset();
  EXPECT_EQ(HttpGet(address, "/metrics").status, 0);
  // The port can be had again at once.
  const auto again = MetricsServer::Start(address, metrics.registry());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->address(), address);
}

TEST(MetricsServer, OutlivesItsMetrics) {
  auto metrics = std::make_unique<Metrics>("scripted", CacheConfig());
  const auto server = MetricsServer::Start("127.0.0.1:0", metrics->registry());
  ASSERT_TRUE(server.ok()) << server.status();
  metrics.reset();
  EXPECT_EQ(HttpGet((*server)->address(), "/metrics").body.find("folio:"),
            std::string::npos);
}

TEST(MetricsServer, SaysWhichAddressItCannotHave) {
  const auto server = MetricsServer::Start(
      "127.0.0.1:0", std::make_shared<prometheus::Registry>());
  ASSERT_TRUE(server.ok()) << server.status();
  const absl::Status taken = Refused((*server)->address());
  EXPECT_EQ(taken.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(taken.message()), HasSubstr((*server)->address()));

  for (const std::string& bad :
       {std::string("9100"), std::string("127.0.0.1:x"),
        absl::StrCat("9100,127.0.0.1:", 0)}) {
    const absl::Status status = Refused(bad);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad));
  }
}

// Whether there is IPv6 depends on the machine and on how the library was
// built.
TEST(MetricsServer, TakesIpv6OrSaysThatItCannot) {
  const auto server =
      MetricsServer::Start("[::1]:0", std::make_shared<prometheus::Registry>());
  if (server.ok()) {
    EXPECT_TRUE((*server)->address().starts_with("[::1]:"));
  } else {
    EXPECT_EQ(server.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(server.status().message()), HasSubstr("IPv6"));
  }
}

}  // namespace
}  // namespace folio
