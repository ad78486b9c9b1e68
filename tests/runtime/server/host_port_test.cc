// Which addresses Folio takes.

#include "runtime/server/host_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace folio {
namespace {

TEST(ParseHostPort, SplitsAtThePort) {
  const absl::StatusOr<HostPort> v4 = ParseHostPort("127.0.0.1:50051", 1);
  ASSERT_TRUE(v4.ok()) << v4.status();
  EXPECT_EQ(v4->host, "127.0.0.1");
  EXPECT_EQ(v4->port, 50051);
  const absl::StatusOr<HostPort> v6 = ParseHostPort("[::1]:0", 0);
  ASSERT_TRUE(v6.ok()) << v6.status();
  EXPECT_EQ(v6->host, "[::1]");
  EXPECT_EQ(v6->port, 0);
  EXPECT_TRUE(ParseHostPort("my-host.example:65535", 1).ok());
}

TEST(ParseHostPort, RefusesEverythingElse) {
  for (const std::string address :
       {"", "host", ":80", "host:", "host:0", "host:65536", "host:-1",
        "host:+80", "host: 80", "host:80x", "ho st:80", "::1:80", "[]:80",
        "unix:/socket:80", "host:99999999999999999999"}) {
    const absl::StatusOr<HostPort> parsed = ParseHostPort(address, 1);
    ASSERT_FALSE(parsed.ok()) << address;
    EXPECT_THAT(std::string(parsed.status().message()),
                testing::AllOf(testing::HasSubstr("'" + address + "'"),
                               testing::HasSubstr("from 1 to 65535")));
  }
}

}  // namespace
}  // namespace folio
