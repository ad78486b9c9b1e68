// TLS as clients meet it.

#include "runtime/server/server_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/runtime/server/error_log.h"
#include "tests/runtime/server/test_certificates.h"
#include "tests/runtime/server/whoami_server.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ServerCredentialsTest : public testing::Test {
 protected:
  ServerCredentialsTest() {
    ShowServer(ours_.IssueToServer());
    ca_ = dir_.Write("ours.crt", ours_.cert());
    other_ca_ = dir_.Write("theirs.crt", theirs_.cert());
  }

  // Puts it into the server's files.
  void ShowServer(const Identity& identity) {
    tls_.tls_cert = dir_.Write("server.crt", identity.cert);
    tls_.tls_key = dir_.Write("server.key", identity.key);
  }

  SecurityOptions MutualTls(const TestAuthority& client_ca) {
    SecurityOptions options = tls_;
    options.tls_client_ca = dir_.Write("clients.crt", client_ca.cert());
    return options;
  }

  ClientOptions ClientOf(const TestAuthority& authority) {
    const Identity identity = authority.Issue("alice", "");
    return {.tls_ca = ca_,
            .tls_cert = dir_.Write("client.crt", identity.cert),
            .tls_key = dir_.Write("client.key", identity.key)};
  }

  // Whether a new connection works. One that is refused is so at once; a call
  // that hangs is neither.
  static bool Connects(const WhoamiServer& server,
                       const ClientOptions& client) {
    const absl::StatusOr<Caller> answer = AskWhoami(server.address(), client);
    EXPECT_TRUE(answer.ok() || absl::IsUnavailable(answer.status()))
        << answer.status();
    return answer.ok();
  }

  std::string ErrorOf(const SecurityOptions& options) {
    const absl::Status status = MakeServerCredentials(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }

  TempDir dir_;
  const TestAuthority ours_{"ours"};
  const TestAuthority theirs_{"theirs"};
  SecurityOptions tls_;   // Of a server, without client certificates.
  std::string ca_;        // Who signed the server's certificate.
  std::string other_ca_;  // Who did not.
};

TEST_F(ServerCredentialsTest, AreInsecureWithoutFiles) {
  const WhoamiServer server({});
  EXPECT_TRUE(Connects(server, {}));
  EXPECT_FALSE(Connects(server, {.tls_ca = ca_}));
}

TEST_F(ServerCredentialsTest, LetOnlyTlsIn) {
  const WhoamiServer server(tls_);
  EXPECT_TRUE(Connects(server, {.tls_ca = ca_}));
  EXPECT_FALSE(Connects(server, {}));
  EXPECT_FALSE(Connects(server, {.tls_ca = other_ca_}));
  // A certificate that nobody asked for does no harm.
  EXPECT_TRUE(Connects(server, ClientOf(theirs_)));
}

TEST_F(ServerCredentialsTest, AreCheckedByClientsForTheirName) {
  ShowServer(ours_.Issue("127.0.0.1", "DNS:elsewhere"));
  EXPECT_FALSE(Connects(WhoamiServer(tls_), {.tls_ca = ca_}));
}

TEST_F(ServerCredentialsTest, ServeSeveralPorts) {
  const WhoamiServer server(tls_);
  for (const TestAuthority* authority : {&ours_, &theirs_}) {
    ShowServer(authority->IssueToServer());
    const ClientOptions client{.tls_ca = authority == &ours_ ? ca_ : other_ca_};
    for (const std::string& address :
         {server.address(), server.other_address()}) {
      EXPECT_EQ(AskWhoami(address, client).status(), absl::OkStatus());
    }
  }
}

TEST_F(ServerCredentialsTest, WantTheRightCertificateOfTheClient) {
  const WhoamiServer server(MutualTls(ours_));
  EXPECT_TRUE(Connects(server, ClientOf(ours_)));
  EXPECT_FALSE(Connects(server, ClientOf(theirs_)));
  EXPECT_FALSE(Connects(server, {.tls_ca = ca_}));
  EXPECT_FALSE(Connects(server, {}));
}

TEST_F(ServerCredentialsTest, FollowTheServersFiles) {
  const WhoamiServer server(tls_);
  EXPECT_TRUE(Connects(server, {.tls_ca = ca_}));
  ShowServer(theirs_.IssueToServer());
  EXPECT_TRUE(Connects(server, {.tls_ca = other_ca_}));
  EXPECT_FALSE(Connects(server, {.tls_ca = ca_}));
}

TEST_F(ServerCredentialsTest, FollowTheClientsAuthority) {
  const WhoamiServer server(MutualTls(ours_));
  EXPECT_TRUE(Connects(server, ClientOf(ours_)));
  dir_.Write("clients.crt", theirs_.cert());
  EXPECT_TRUE(Connects(server, ClientOf(theirs_)));
  EXPECT_FALSE(Connects(server, ClientOf(ours_)));
  dir_.Write("clients.crt", theirs_.cert() + ours_.cert());
  EXPECT_TRUE(Connects(server, ClientOf(theirs_)));
  EXPECT_TRUE(Connects(server, ClientOf(ours_)));
}

// As certificate managers replace them: a link that leads to another folder.
TEST_F(ServerCredentialsTest, FollowALink) {
  const Identity next = theirs_.IssueToServer();
  dir_.Write("next/server.crt", next.cert);
  dir_.Write("next/server.key", next.key);
  const std::string link = dir_.path() + "/current";
  std::filesystem::create_directory_symlink(dir_.path(), link);
  const WhoamiServer server(
      {.tls_cert = link + "/server.crt", .tls_key = link + "/server.key"});
  EXPECT_TRUE(Connects(server, {.tls_ca = ca_}));
  std::filesystem::create_directory_symlink(dir_.path() + "/next",
                                            link + ".new");
  std::filesystem::rename(link + ".new", link);
  EXPECT_TRUE(Connects(server, {.tls_ca = other_ca_}));
}

TEST_F(ServerCredentialsTest, StayWhileAReplacementIsBroken) {
  const WhoamiServer server(MutualTls(ours_));
  const ClientOptions client = ClientOf(ours_);
  const ErrorLog errors;
  const auto expect_old = [&] {
    EXPECT_TRUE(Connects(server, client));
    EXPECT_FALSE(Connects(server, {.tls_ca = ca_}));
    EXPECT_TRUE(Connects(server, client));
  };
  expect_old();
  const Identity next = theirs_.IssueToServer();
  dir_.Write("server.crt", next.cert.substr(0, next.cert.size() / 2));
  expect_old();
  dir_.Write("server.crt", "");
  expect_old();
  std::filesystem::remove(tls_.tls_cert);
  expect_old();
  dir_.Write("server.crt", next.cert);  // The key is still the old one's.
  expect_old();
  std::filesystem::remove(dir_.path() + "/clients.crt");
  dir_.Write("server.key", next.key);
  expect_old();
  EXPECT_THAT(errors.messages(),
              ElementsAre(HasSubstr("certificate 1 in it can't be read"),
                          HasSubstr("no certificate in PEM"),
                          HasSubstr("No such file or directory"),
                          HasSubstr("it is not the key of the certificate"),
                          AllOf(HasSubstr("--tls-client-ca"),
                                HasSubstr("No such file or directory"))));
  dir_.Write("clients.crt", ours_.cert());
  EXPECT_FALSE(Connects(server, client));
  ClientOptions new_client = client;
  new_client.tls_ca = other_ca_;
  EXPECT_TRUE(Connects(server, new_client));
}

TEST_F(ServerCredentialsTest, MayChangeWhileManyConnect) {
  const WhoamiServer server(tls_);
  const std::string both =
      dir_.Write("both.crt", ours_.cert() + theirs_.cert());
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 30; ++j) {
        EXPECT_TRUE(Connects(server, {.tls_ca = both}));
      }
    });
  }
  for (int i = 0; i < 30; ++i) {
    ShowServer((i % 2 == 0 ? theirs_ : ours_).IssueToServer());
    EXPECT_TRUE(Connects(server, {.tls_ca = i % 2 == 0 ? other_ca_ : ca_}));
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ServerCredentialsTest, NameTheFileThatIsWrong) {
  const Identity good = ours_.IssueToServer();
  const auto expect = [&](const SecurityOptions& options,
                          const std::string& flag, const std::string& path,
                          const std::string& why) {
    EXPECT_THAT(ErrorOf(options),
                AllOf(HasSubstr(absl::StrCat(flag, " '", path, "': ")),
                      HasSubstr(why)));
  };
  const auto with_cert = [&](const std::string& contents) {
    SecurityOptions options = tls_;
    options.tls_cert = dir_.Write("bad", contents);
    return options;
  };
  const auto with_key = [&](const std::string& contents) {
    SecurityOptions options = tls_;
    options.tls_key = dir_.Write("bad", contents);
    return options;
  };
  const std::string bad = dir_.path() + "/bad";
  expect(with_cert("nonsense"), "--tls-cert", bad, "no certificate in PEM");
  expect(with_cert(good.key), "--tls-cert", bad, "no certificate in PEM");
  expect(with_cert(good.cert + "-----BEGIN CERTIFICATE-----\nAAAA\n"),
         "--tls-cert", bad, "certificate 2 in it can't be read");
  expect(with_key("nonsense"), "--tls-key", bad, "no unencrypted private key");
  expect(with_key(good.cert), "--tls-key", bad, "no unencrypted private key");
  expect(with_key(good.key), "--tls-key", bad,
         absl::StrCat("not the key of the certificate in '", tls_.tls_cert));
  SecurityOptions options = tls_;
  options.tls_client_ca = dir_.Write("bad", good.key);
  expect(options, "--tls-client-ca", bad, "no certificate in PEM");
}

TEST_F(ServerCredentialsTest, NameTheFileThatIsMissing) {
  const std::string missing = dir_.path() + "/missing";
  const auto expect = [&](std::string SecurityOptions::*file,
                          const std::string& flag) {
    SecurityOptions options = MutualTls(ours_);
    options.*file = missing;
    const absl::Status status = MakeServerCredentials(options).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(flag + ": "), HasSubstr(missing)));
  };
  expect(&SecurityOptions::tls_cert, "--tls-cert");
  expect(&SecurityOptions::tls_key, "--tls-key");
  expect(&SecurityOptions::tls_client_ca, "--tls-client-ca");
}

// (OpenSSL would ask on the terminal.)
TEST_F(ServerCredentialsTest, RefuseAnEncryptedKey) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  BIO* const bio = BIO_new(BIO_s_mem());
  char passphrase[] = "passphrase";
  ASSERT_EQ(PEM_write_bio_PrivateKey(bio, key, EVP_aes_128_cbc(), nullptr, 0,
                                     nullptr, passphrase),
            1);
  char* data;
  const long size = BIO_get_mem_data(bio, &data);
  tls_.tls_key = dir_.Write("server.key", std::string(data, size));
  BIO_free_all(bio);
  EVP_PKEY_free(key);
  EXPECT_THAT(ErrorOf(tls_), HasSubstr("no unencrypted private key"));
}

}  // namespace
}  // namespace folio
