// Bearer tokens, and the file that they come from.

#include "runtime/server/token_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/runtime/server/error_log.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

// From FIPS 180-2, appendix B.1.
constexpr char kToken[] = "abc";
constexpr char kHash[] =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class TokenTableTest : public testing::Test {
 protected:
  std::unique_ptr<TokenTable> Load(const std::string& contents) {
    path_ = dir_.Write("tokens", contents);
    auto table = TokenTable::Load(path_);
    EXPECT_EQ(table.status(), absl::OkStatus());
    return *std::move(table);
  }

  std::string ErrorOf(const std::string& contents) {
    path_ = dir_.Write("tokens", contents);
    const auto table = TokenTable::Load(path_);
    EXPECT_TRUE(absl::IsInvalidArgument(table.status())) << contents;
    return std::string(table.status().message());
  }

  TempDir dir_;
  std::string path_;
};

TEST_F(TokenTableTest, FindsTheTenantOfAToken) {
  const auto table = Load(absl::StrCat(
      "# who may call\n\n", kHash, " alice\n\t", TokenLine("x", "b\u00f6b"),
      "\t\r\n  # indented\n", TokenLine("y", "alice"), "  "));
  EXPECT_THAT(table->TenantOf(kToken), Optional(std::string("alice")));
  EXPECT_THAT(table->TenantOf("x"), Optional(std::string("b\u00f6b")));
  EXPECT_THAT(table->TenantOf("y"), Optional(std::string("alice")));
  for (const char* other : {"", "ab", "abcd", "ABC", " abc", kHash}) {
    EXPECT_EQ(table->TenantOf(other), std::nullopt) << other;
  }
}

TEST_F(TokenTableTest, TakesDigitsOfBothCases) {
  std::string upper = kHash;
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  EXPECT_THAT(Load(upper + " alice")->TenantOf(kToken),
              Optional(std::string("alice")));
}

TEST_F(TokenTableTest, NamesTheLineThatIsWrong) {
  const std::string good = absl::StrCat("#\n", TokenLine("x", "bob"), "\n\n");
  const auto expect = [&](const std::string& line, const std::string& why) {
    EXPECT_THAT(ErrorOf(absl::StrCat(good, line, "\n", TokenLine("y", "bob"))),
                AllOf(HasSubstr(path_), HasSubstr("line 4: "), HasSubstr(why)))
        << line;
  };
  const std::string hash(kHash);
  expect(hash, "1 words; expected 2");
  expect(hash + " alice smith", "3 words; expected 2");
  expect(hash.substr(1) + " alice", "63 characters");
  expect(hash + "0 alice", "65 characters");
  expect(hash.substr(1) + "g alice", "64 characters that are not a SHA-256");
  expect(TokenLine("x", "alice"), "it has the hash of line 2");
  expect(hash + " \x80", "valid UTF-8");
  expect(hash + " a\x01", "control characters");
  expect(hash + " " + std::string(257, 'a'), "257 bytes");
  EXPECT_EQ(Load(hash + " " + std::string(256, 'a'))->TenantOf(kToken),
            std::string(256, 'a'));
}

TEST_F(TokenTableTest, DoesNotRepeatATokenThatIsThereByMistake) {
  EXPECT_THAT(ErrorOf("my-secret alice"), Not(HasSubstr("my-secret")));
}

TEST_F(TokenTableTest, AFileWithoutATokenLetsNobodyIn) {
  for (const char* contents : {"", "\n", "# none\n"}) {
    EXPECT_EQ(Load(contents)->TenantOf("x"), std::nullopt);
  }
}

TEST_F(TokenTableTest, WantsAFile) {
  const std::string missing = dir_.path() + "/missing";
  const absl::Status status = TokenTable::Load(missing).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(missing));
}

TEST_F(TokenTableTest, FollowsTheFile) {
  const auto table = Load(TokenLine("x", "alice"));
  EXPECT_THAT(table->TenantOf("x"), Optional(std::string("alice")));
  // Written in place, with as many bytes.
  dir_.Write("tokens", TokenLine("y", "alice"));
  EXPECT_EQ(table->TenantOf("x"), std::nullopt);
  EXPECT_THAT(table->TenantOf("y"), Optional(std::string("alice")));
  // Replaced.
  const std::string next = dir_.Write("next", TokenLine("z", "alice"));
  std::filesystem::rename(next, path_);
  EXPECT_EQ(table->TenantOf("y"), std::nullopt);
  EXPECT_THAT(table->TenantOf("z"), Optional(std::string("alice")));
}

TEST_F(TokenTableTest, KeepsTheTableWhileTheFileIsWrong) {
  const auto table = Load(TokenLine("x", "alice"));
  const ErrorLog errors;
  const auto expect_old = [&] {
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(table->TenantOf("x"), Optional(std::string("alice")));
      EXPECT_EQ(table->TenantOf("y"), std::nullopt);
    }
  };
  dir_.Write("tokens", TokenLine("y", "bob") + "\nnonsense");
  expect_old();
  std::filesystem::remove(path_);
  expect_old();
  EXPECT_THAT(errors.messages(),
              ElementsAre(HasSubstr("line 2: "),
                          HasSubstr("No such file or directory")));
  dir_.Write("tokens", TokenLine("y", "bob"));
  EXPECT_EQ(table->TenantOf("x"), std::nullopt);
  EXPECT_THAT(table->TenantOf("y"), Optional(std::string("bob")));
  EXPECT_EQ(errors.messages().size(), 2u);
}

// Every look-up sees one of the tables whole, whatever the others do.
TEST_F(TokenTableTest, MayBeAskedByAllWhileItChanges) {
  const std::string tables[] = {
      TokenLine("x", "one") + "\n" + TokenLine("both", "tenant"),
      TokenLine("y", "two") + "\n" + TokenLine("both", "tenant")};
  const auto table = Load(tables[0]);
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done) {
        EXPECT_THAT(table->TenantOf("both"), Optional(std::string("tenant")));
        const auto x = table->TenantOf("x");
        EXPECT_TRUE(!x.has_value() || x == "one");
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    const std::string next = dir_.Write("next", tables[i % 2]);
    std::filesystem::rename(next, path_);
    EXPECT_EQ(table->TenantOf("x").has_value(), i % 2 == 0);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(TokenLine, HasTheHashAndTheTenant) {
  EXPECT_EQ(TokenLine(kToken, "alice"), absl::StrCat(kHash, " alice"));
}

TEST(NewToken, IsAnotherEachTime) {
  std::set<std::string> tokens;
  for (int i = 0; i < 1000; ++i) tokens.insert(NewToken());
  EXPECT_EQ(tokens.size(), 1000u);
  for (const std::string& token : tokens) {
    EXPECT_THAT(token, testing::MatchesRegex("[0-9a-f]+"));
    EXPECT_EQ(token.size(), 64u);
  }
}

TEST(CheckTenantName, RefusesWhatAFileCannotHold) {
  for (const char* good : {"a", "team-7", "#1", "b\u00f6b"}) {
    EXPECT_EQ(CheckTenantName(good), absl::OkStatus());
  }
  for (const char* bad : {"", "a b", "a\t", "a\n", "\x7f", "\xff"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckTenantName(bad))) << bad;
  }
}

}  // namespace
}  // namespace folio
