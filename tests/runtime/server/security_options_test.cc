// Which servers may be opened to whom.

#include "runtime/server/security_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kLoopbacks[][24] = {
    "127.0.0.1", "127.255.3.4",       "::1",
    "[::1]",     "[0:0:0:0:0:0:0:1]", "localhost",
    "LocalHost", "unix:/a/sock",      "unix:a.sock"};
// The network's, and what looks like a loopback address only.
constexpr char kOthers[][24] = {
    "0.0.0.0",     "[::]",        "10.0.0.1",        "128.0.0.1", "[::2]",
    "example.com", "localhost.a", "127.0.0.1.a.com", "127.1",     ""};

TEST(IsLoopback, KnowsLoopbackAddresses) {
  for (const char* host : kLoopbacks) EXPECT_TRUE(IsLoopback(host)) << host;
  for (const char* host : kOthers) EXPECT_FALSE(IsLoopback(host)) << host;
}

TEST(CheckSecurity, NeedsNothingOnLoopback) {
  for (const char* host : kLoopbacks) {
    EXPECT_EQ(CheckSecurity({}, host), absl::OkStatus()) << host;
  }
}

// Every combination off loopback; it needs TLS and one of the two ways to know
// the caller, or else --insecure.
TEST(CheckSecurity, WantsTlsAndCallersOffLoopback) {
  int allowed = 0;
  for (int bits = 0; bits < 16; ++bits) {
    const bool tls = bits & 1, ca = bits & 2, tokens = bits & 4,
               insecure = bits & 8;
    if (ca && !tls) continue;  // Refused anywhere.
    const SecurityOptions options{.tls_cert = tls ? "c" : "",
                                  .tls_key = tls ? "k" : "",
                                  .tls_client_ca = ca ? "a" : "",
                                  .token_file = tokens ? "t" : "",
                                  .insecure = insecure};
    const absl::Status status = CheckSecurity(options, "0.0.0.0");
    EXPECT_EQ(status.ok(), insecure || (tls && (ca || tokens))) << bits;
    allowed += status.ok();
    if (status.ok()) continue;
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("'0.0.0.0'"), HasSubstr("--insecure"),
                      HasSubstr(tls ? "--token-file or --tls-client-ca"
                                    : "--tls-cert and --tls-key")));
  }
  EXPECT_EQ(allowed, 9);  // 6 with --insecure, and 3 by right.
}

TEST(CheckSecurity, WantsFilesThatGoTogether) {
  const auto message = [](SecurityOptions options) {
    options.insecure = true;  // Makes up for none of it.
    return std::string(CheckSecurity(options, "127.0.0.1").message());
  };
  EXPECT_THAT(message({.tls_cert = "c"}),
              HasSubstr("--tls-cert is given without --tls-key"));
  EXPECT_THAT(message({.tls_key = "k"}),
              HasSubstr("--tls-key is given without --tls-cert"));
  EXPECT_THAT(message({.tls_client_ca = "a"}),
              HasSubstr("--tls-client-ca is given without --tls-cert"));
}

}  // namespace
}  // namespace folio
