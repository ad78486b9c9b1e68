// Who calls, over the wire.

#include "runtime/server/caller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/runtime/server/test_certificates.h"
#include "tests/runtime/server/whoami_server.h"
#include "tests/support/temp_dir.h"

namespace folio {

static bool operator==(const Caller& a, const Caller& b) {
  return a.tenant == b.tenant && a.authenticated == b.authenticated;
}
static void PrintTo(const Caller& caller, std::ostream* out) {
  *out << caller.tenant << (caller.authenticated ? " (authenticated)" : "");
}

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Caller kAlice{.tenant = "alice", .authenticated = true};

// Matches a StatusOr<Caller> with that caller.
MATCHER_P(Is, caller, "") {
  if (!arg.ok()) *result_listener << arg.status();
  return arg.ok() && *arg == caller;
}

MATCHER_P2(Fails, code, message, "") {
  if (arg.ok()) return false;
  return arg.status().code() == code &&
         testing::ExplainMatchResult(HasSubstr(message),
                                     std::string(arg.status().message()),
                                     result_listener);
}

constexpr auto kUnauthenticated = absl::StatusCode::kUnauthenticated;
constexpr auto kDenied = absl::StatusCode::kPermissionDenied;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class CallerTest : public testing::Test {
 protected:
  std::string TokenFile() {
    return dir_.Write("tokens",
                      absl::StrCat(TokenLine("secret-a", "alice"), "\n",
                                   TokenLine("secret-b", "bob")));
  }

  // A server that wants certificates of `authority_`, and what connects to it.
  SecurityOptions MutualTls() {
    const Identity server = authority_.IssueToServer();
    return {.tls_cert = dir_.Write("server.crt", server.cert),
            .tls_key = dir_.Write("server.key", server.key),
            .tls_client_ca = dir_.Write("ca.crt", authority_.cert())};
  }
  ClientOptions ClientWith(const std::string& common_name,
                           const std::string& alternative_names) {
    const Identity client = authority_.Issue(common_name, alternative_names);
    return {.tls_ca = dir_.Write("ca.crt", authority_.cert()),
            .tls_cert = dir_.Write("client.crt", client.cert),
            .tls_key = dir_.Write("client.key", client.key)};
  }

  TempDir dir_;
  const TestAuthority authority_{"authority"};
};

TEST_F(CallerTest, IsWhomTheMetadataNamesWithoutSecurity) {
  const WhoamiServer server({});
  const auto ask = [&](const Metadata& metadata) {
    return AskWhoami(server.address(), {}, metadata);
  };
  EXPECT_THAT(ask({}), Is(Caller{}));
  EXPECT_THAT(ask({{"folio-tenant", "bob"}}), Is(Caller{.tenant = "bob"}));
  // Nobody looks at tokens here.
  EXPECT_THAT(ask({{"authorization", "Bearer x"}}), Is(Caller{}));
  const std::string longest(256, 'a');
  EXPECT_THAT(ask({{"folio-tenant", longest}}), Is(Caller{.tenant = longest}));
  EXPECT_THAT(ask({{"folio-tenant", longest + "a"}}), Fails(kInvalid, "257"));
  EXPECT_THAT(ask({{"folio-tenant", "a"}, {"folio-tenant", "b"}}),
              Fails(kInvalid, "2 values of folio-tenant"));
}

TEST_F(CallerTest, IsTheTenantOfItsToken) {
  const WhoamiServer server({.token_file = TokenFile()});
  const auto ask = [&](const std::string& authorization) {
    return AskWhoami(server.address(), {}, {{"authorization", authorization}});
  };
  EXPECT_THAT(ask("Bearer secret-a"), Is(kAlice));
  EXPECT_THAT(ask("bearer secret-a"), Is(kAlice));
  EXPECT_THAT(ask("BEARER   secret-a"), Is(kAlice));
  EXPECT_THAT(AskWhoami(server.address(), {.token = "secret-a"}), Is(kAlice));
  for (const char* wrong :
       {"Bearer secret-c", "Bearer secret-", "Bearer SECRET-A", "Bearer   ",
        "Bearer secret-a secret-b"}) {
    EXPECT_THAT(ask(wrong), Fails(kUnauthenticated, "token file")) << wrong;
  }
  for (const char* wrong :
       {"secret-a", "Basic secret-a", "Bearersecret-a", "", "Bearer"}) {
    EXPECT_THAT(ask(wrong), Fails(kUnauthenticated, "of another kind"))
        << wrong;
  }
}

TEST_F(CallerTest, MustHaveATokenWhereThereAreAny) {
  const WhoamiServer server({.token_file = TokenFile()});
  EXPECT_THAT(AskWhoami(server.address()),
              Fails(kUnauthenticated, "'authorization: Bearer TOKEN'"));
  EXPECT_THAT(AskWhoami(server.address(), {}, {{"folio-tenant", "alice"}}),
              Fails(kUnauthenticated, "has none"));
  EXPECT_THAT(AskWhoami(server.address(), {.token = "secret-a"},
                        {{"authorization", "Bearer secret-b"}}),
              Fails(kUnauthenticated, "has several"));
}

TEST_F(CallerTest, IsNotToldTheToken) {
  const WhoamiServer server({.token_file = TokenFile()});
  for (const char* authorization : {"Bearer guess", "Basic guess", "guess"}) {
    const auto answer =
        AskWhoami(server.address(), {}, {{"authorization", authorization}});
    EXPECT_THAT(std::string(answer.status().message()),
                Not(HasSubstr("guess")));
  }
}

TEST_F(CallerTest, LosesATokenThatIsTakenAway) {
  const WhoamiServer server({.token_file = TokenFile()});
  const ClientOptions client{.token = "secret-a"};
  EXPECT_THAT(AskWhoami(server.address(), client), Is(kAlice));
  dir_.Write("tokens", TokenLine("secret-b", "bob"));
  EXPECT_THAT(AskWhoami(server.address(), client),
              Fails(kUnauthenticated, "no longer"));
}

TEST_F(CallerTest, MayNotNameAnotherTenantInTheMetadata) {
  const WhoamiServer server({.token_file = TokenFile()});
  const auto ask = [&](const std::string& tenant) {
    return AskWhoami(server.address(), {.token = "secret-a"},
                     {{"folio-tenant", tenant}});
  };
  EXPECT_THAT(ask("alice"), Is(kAlice));
  EXPECT_THAT(ask(""), Is(kAlice));
  EXPECT_THAT(ask("bob"), Fails(kDenied, "'alice' and may not act as 'bob'"));
}

TEST_F(CallerTest, IsWhomItsCertificateNames) {
  const WhoamiServer server(MutualTls());
  const auto ask = [&](const std::string& common_name,
                       const std::string& alternative_names,
                       const Metadata& metadata = {}) {
    return AskWhoami(server.address(),
                     ClientWith(common_name, alternative_names), metadata);
  };
  EXPECT_THAT(ask("alice", ""), Is(kAlice));
  EXPECT_THAT(ask("bob", "DNS:alice"), Is(kAlice));
  EXPECT_THAT(ask("", "DNS:alice, DNS:bob"), Is(kAlice));
  EXPECT_THAT(ask("bob", "URI:spiffe://a/b"),
              Is(Caller{.tenant = "spiffe://a/b", .authenticated = true}));
  EXPECT_THAT(ask("", ""), Fails(kUnauthenticated, "names nobody"));
  EXPECT_THAT(ask("", "DNS:" + std::string(257, 'a')),
              Fails(kUnauthenticated, "257 bytes"));
  EXPECT_THAT(ask("alice", "", {{"folio-tenant", "alice"}}), Is(kAlice));
  EXPECT_THAT(ask("alice", "", {{"folio-tenant", "bob"}}),
              Fails(kDenied, "'alice' and may not act as 'bob'"));
}

TEST_F(CallerTest, NeedsBothWhereBothAreAskedForAndIsTheTokens) {
  SecurityOptions options = MutualTls();
  options.token_file = TokenFile();
  const WhoamiServer server(options);
  ClientOptions client = ClientWith("bob", "");
  EXPECT_THAT(AskWhoami(server.address(), client),
              Fails(kUnauthenticated, "wants a token"));
  client.token = "secret-c";
  EXPECT_THAT(AskWhoami(server.address(), client),
              Fails(kUnauthenticated, "token file"));
  client.token = "secret-a";
  EXPECT_THAT(AskWhoami(server.address(), client), Is(kAlice));
  client.tls_cert = client.tls_key = "";
  EXPECT_THAT(AskWhoami(server.address(), client),
              Fails(absl::StatusCode::kUnavailable, ""));
}

TEST(CallersCreate, TellsWhatIsWrongWithTheTokens) {
  TempDir dir;
  const std::string path = dir.Write("tokens", "x");
  EXPECT_THAT(Callers::Create({.token_file = path}),
              Fails(kInvalid, absl::StrCat("'", path, "', line 1")));
}

TEST(TenantOf, TakesTheFieldOnlyFromWhoIsNobody) {
  const Caller nobody;
  const Caller named{.tenant = "bob"};
  EXPECT_EQ(*TenantOf(nobody, ""), "");
  EXPECT_EQ(*TenantOf(nobody, "carol"), "carol");
  EXPECT_EQ(*TenantOf(named, ""), "bob");
  EXPECT_EQ(*TenantOf(named, "bob"), "bob");
  EXPECT_THAT(TenantOf(named, "carol"),
              Fails(kInvalid,
                    "'bob' in the metadata folio-tenant, but "
                    "'carol' in the request's tenant"));
  EXPECT_EQ(*TenantOf(kAlice, ""), "alice");
  EXPECT_EQ(*TenantOf(kAlice, "alice"), "alice");
  EXPECT_THAT(TenantOf(kAlice, "carol"),
              Fails(kDenied, "'alice' and may not act as 'carol'"));
}

}  // namespace
}  // namespace folio
