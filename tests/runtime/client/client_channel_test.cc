// What clients can't connect with. (How they get in, the server's tests show.)

#include "runtime/client/client_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/client/client.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Nobody listens there.
constexpr char kAddress[] = "127.0.0.1:1";

std::string ErrorOf(const ClientOptions& options) {
  const absl::Status status = MakeClientChannel(kAddress, options, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(MakeClientChannel, WantsFilesThatGoTogether) {
  EXPECT_THAT(ErrorOf({.tls_cert = "c"}), HasSubstr("given together"));
  EXPECT_THAT(ErrorOf({.tls_key = "k"}), HasSubstr("given together"));
  EXPECT_THAT(ErrorOf({.tls_cert = "c", .tls_key = "k"}),
              HasSubstr("certificate authority of the server"));
}

TEST(MakeClientChannel, NamesTheFileThatIsWrong) {
  const TempDir dir;
  const std::string missing = dir.path() + "/missing";
  const std::string empty = dir.Write("empty", "");
  const std::string pem = dir.Write("pem", "-----BEGIN CERTIFICATE-----\n");
  EXPECT_THAT(ErrorOf({.tls_ca = missing}),
              AllOf(HasSubstr(missing), HasSubstr("No such file")));
  for (const std::string& bad : {empty, dir.path()}) {
    const std::string error = absl::StrCat("'", bad, "' has nothing in PEM");
    EXPECT_THAT(ErrorOf({.tls_ca = bad}), HasSubstr(error));
    EXPECT_THAT(ErrorOf({.tls_ca = pem, .tls_cert = bad, .tls_key = pem}),
                HasSubstr(error));
    EXPECT_THAT(ErrorOf({.tls_ca = pem, .tls_cert = pem, .tls_key = bad}),
                HasSubstr(error));
  }
}

TEST(MakeClientChannel, RefusesATokenThatCannotTravel) {
  for (const char* token : {"se cret", "secret\n",
                            "s\xc3\xa9"
                            "cret",
                            "\x01"}) {
    EXPECT_THAT(ErrorOf({.token = token}),
                AllOf(HasSubstr("one word"), Not(HasSubstr("cret"))));
  }
}

TEST(ClientConnect, SaysWhatToCheck) {
  const TempDir dir;
  const std::string pem = dir.Write("pem", "-----BEGIN CERTIFICATE-----\n");
  const auto error_of = [](const ClientOptions& options) {
    const absl::Status status =
        Client::Connect(kAddress, absl::Milliseconds(10), options).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error_of({}),
              AllOf(HasSubstr(kAddress), HasSubstr("serves without TLS")));
  EXPECT_THAT(error_of({.tls_ca = pem}),
              HasSubstr(absl::StrCat("signed by '", pem, "', and whether")));
  EXPECT_THAT(error_of({.tls_ca = pem, .tls_cert = pem, .tls_key = pem}),
              HasSubstr(absl::StrCat("accepts '", pem, "'")));
}

}  // namespace
}  // namespace folio
