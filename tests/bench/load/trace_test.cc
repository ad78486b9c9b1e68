#include "bench/load/trace.h"

#include <cmath>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "bench/load/random.h"
#include "bench/load/synthetic.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kGood[] =
    R"({"arrival_s": 0.25, "prompt_tokens": 100, "output_tokens": 206, "token_seed": 18446744073709551615})";

TEST(ParseTraceTest, ReadsEachLine) {
  const auto requests = ParseTrace(
      absl::StrCat(
          kGood, "\n\n",
          R"({"token_seed":0,"output_tokens":1,"prompt_tokens":16777216,"arrival_s":0})",
          "\r\n"),
      "t");
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_THAT(*requests, SizeIs(2));
  const LoadRequest first{.arrival = absl::Milliseconds(250),
                          .prompt_tokens = 100,
                          .output_tokens = 206,
                          .token_seed = UINT64_MAX};
  EXPECT_EQ((*requests)[0], first);
  // It stands below, and arrives before.
  const LoadRequest second{.prompt_tokens = kMaxTokens};
  EXPECT_EQ((*requests)[1], second);
}

TEST(ParseTraceTest, ReadsWhatIsOptional) {
  const auto requests = ParseTrace(
      R"({"arrival_s": 1, "prompt": "Grüße\n", "output_tokens": 2, "tenant": "a", "priority": -2147483648, "n": 4})"
      "\n"
      R"({"previous": 0, "think_s": 0.5, "prompt": "Go on", "output_tokens": 3, "deadline_s": 0, "cancel_s": 1e6})"
      "\n"
      R"({"arrival_s": 2, "prompt_tokens": 5, "token_seed": 6, "output_tokens": 7, "prefix_tokens": 8, "prefix_seed": 9, "read_delay_s": 0.001})",
      "t");
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_THAT(*requests, SizeIs(3));
  const LoadRequest text{.arrival = absl::Seconds(1),
                         .output_tokens = 2,
                         .prompt_text = "Gr\u00fc\u00dfe\n",
                         .tenant = "a",
                         .priority = INT32_MIN,
                         .n = 4};
  EXPECT_EQ((*requests)[0], text);
  const LoadRequest turn{.output_tokens = 3,
                         .prompt_text = "Go on",
                         .deadline = absl::ZeroDuration(),
                         .cancel_after = absl::Seconds(1000000),
                         .previous = 0,
                         .think_time = absl::Milliseconds(500)};
  EXPECT_EQ((*requests)[1], turn);
  const LoadRequest prefix{.arrival = absl::Seconds(2),
                           .prompt_tokens = 5,
                           .output_tokens = 7,
                           .token_seed = 6,
                           .prefix_seed = 9,
                           .prefix_tokens = 8,
                           .read_delay = absl::Milliseconds(1)};
  EXPECT_EQ((*requests)[2], prefix);
}

// The message for a bad second line.
std::string MessageOf(const std::string& line) {
  const auto requests = ParseTrace(absl::StrCat(kGood, "\n", line), "a.jsonl");
  EXPECT_EQ(requests.status().code(), absl::StatusCode::kInvalidArgument)
      << line;
  return std::string(requests.status().message());
}

// A good line with another value for one field, or one more.
std::string LineWith(const std::string& field, const std::string& value) {
  std::string line = absl::StrCat("{\"", field, "\": ", value);
  for (const char* name :
       {"arrival_s", "prompt_tokens", "output_tokens", "token_seed"}) {
    if (field != name) absl::StrAppend(&line, ", \"", name, "\": 1");
  }
  return line + "}";
}

void ExpectRefused(const std::string& field, const std::string& value,
                   const std::string& allowed) {
  EXPECT_THAT(MessageOf(LineWith(field, value)),
              AllOf(HasSubstr(absl::StrCat("a.jsonl:2: ", field, " is ")),
                    EndsWith(absl::StrCat("; it must be ", allowed))));
}

TEST(ParseTraceTest, NamesFileLineAndField) {
  for (const char* field : {"prompt_tokens", "output_tokens"}) {
    for (const char* value :
         {"0", "-3", "2.5", "16777217", "2147483648", "\"7\"", "null"}) {
      ExpectRefused(field, value, "a whole number from 1 to 16777216");
      EXPECT_THAT(MessageOf(LineWith(field, value)),
                  HasSubstr(absl::StrCat(field, " is ", value, ";")));
    }
  }
  for (const char* field :
       {"arrival_s", "deadline_s", "cancel_s", "read_delay_s"}) {
    for (const char* value :
         {"-1", "1000001", "1e300", "\"0\"", "[]", "true"}) {
      ExpectRefused(field, value, "a number of seconds from 0 to 1000000");
    }
  }
  for (const char* field : {"token_seed", "prefix_seed"}) {
    for (const char* value : {"-1", "0.5", "18446744073709551616"}) {
      ExpectRefused(field, value,
                    "a whole number from 0 to 18446744073709551615");
    }
  }
  for (const char* value : {"0", "-3", "2.5", "2147483648"}) {
    ExpectRefused("n", value, "a whole number from 1 to 2147483647");
  }
  for (const char* value : {"-1", "0.5", "2147483648"}) {
    ExpectRefused("prefix_tokens", value, "a whole number from 0 to 16777216");
    ExpectRefused("previous", value, "a whole number from 0 to 2147483647");
  }
  for (const char* value : {"-2147483649", "2147483648", "1.5", "\"high\""}) {
    ExpectRefused("priority", value,
                  "a whole number from -2147483648 to 2147483647");
  }
  for (const char* field : {"prompt", "tenant"}) {
    for (const char* value : {"\"\"", "7", "null", "[\"a\"]"}) {
      ExpectRefused(field, value, "a text that is not empty");
    }
  }
}

TEST(ParseTraceTest, KnowsItsFields) {
  EXPECT_THAT(MessageOf(R"({"arrival": 1, "prompt_tokens": 1})"),
              AllOf(HasSubstr("a.jsonl:2: there is a field \"arrival\""),
                    HasSubstr("arrival_s, prompt_tokens, output_tokens")));
  for (const char* missing :
       {"arrival_s", "prompt_tokens", "output_tokens", "token_seed"}) {
    std::string line = "{\"n\": 1";
    for (const char* field :
         {"arrival_s", "prompt_tokens", "output_tokens", "token_seed"}) {
      if (field != missing) absl::StrAppend(&line, ", \"", field, "\": 1");
    }
    EXPECT_THAT(MessageOf(line + "}"),
                HasSubstr(absl::StrCat("a.jsonl:2: ", missing,
                                       " is missing; each line needs ")));
  }
  EXPECT_THAT(MessageOf(R"({"arrival_s": 1, "prompt": "a"})"),
              HasSubstr("a.jsonl:2: output_tokens is missing"));
  EXPECT_THAT(MessageOf(R"({"prompt": "a", "output_tokens": 1})"),
              HasSubstr("a.jsonl:2: arrival_s is missing"));
  EXPECT_THAT(MessageOf(R"({"previous": 0, "output_tokens": 1})"),
              HasSubstr("a.jsonl:2: prompt_tokens is missing"));
}

TEST(ParseTraceTest, NeedsAnObjectALine) {
  for (const char* line :
       {"[1]", "{\"arrival_s\": 1", "x", "{} {}", "7", "\xFF"}) {
    EXPECT_THAT(MessageOf(line),
                HasSubstr(absl::StrCat(
                    "a.jsonl:2: this is not a JSON object: ", line, "; ")));
  }
  // A long line is cut, between characters: at 200 bytes one would end after
  // 201.
  std::string umlauts = "x";
  for (int i = 0; i < 5000; ++i) umlauts += "\u00fc";
  EXPECT_THAT(MessageOf(umlauts),
              HasSubstr(absl::StrCat(": ", umlauts.substr(0, 199), "...; ")));
}

TEST(ParseTraceTest, RefusesFieldsThatContradictEachOther) {
  EXPECT_THAT(
      MessageOf(
          R"({"arrival_s": 1, "prompt": "a", "prefix_tokens": 3, "output_tokens": 1})"),
      HasSubstr("a.jsonl:2: prefix_tokens is 3; it must be 0 or absent where "
                "there is a prompt"));
  ExpectRefused("think_s", "1", "absent where there is no previous");
}

TEST(ParseTraceTest, ATurnGoesOnFromOneAbove) {
  ExpectRefused("previous", "1",
                "the number of a request above this one, which is number 1 "
                "(from 0)");
  EXPECT_THAT(
      MessageOf(R"({"previous": 0, "prompt": "a", "output_tokens": 1})"),
      HasSubstr("a.jsonl:2: previous is 0; it must be a request whose prompt "
                "is of the same kind"));
  constexpr char kTurn[] =
      R"({"previous": 0, "prompt_tokens": 1, "token_seed": 1, "output_tokens": 1})";
  EXPECT_TRUE(ParseTrace(absl::StrCat(kGood, "\n", kTurn), "t").ok());
  EXPECT_THAT(ParseTrace(absl::StrCat(kGood, "\n", kTurn, "\n", kTurn), "t")
                  .status()
                  .message(),
              HasSubstr("t:3: previous is 0; it must be a request that no line "
                        "above goes on from"));
  EXPECT_THAT(ParseTrace(kTurn, "t").status().message(),
              HasSubstr("t:1: previous is 0; it must be the number of a "
                        "request above this one, which is number 0"));
}

TEST(ParseTraceTest, NeedsARequest) {
  for (const char* text : {"", "\n \n"}) {
    EXPECT_THAT(ParseTrace(text, "a.jsonl").status().message(),
                HasSubstr("a.jsonl: there is no request in it"));
  }
}

TEST(ReadTraceTest, NamesAFileThatIsNotThere) {
  const auto requests = ReadTrace("/nowhere/a.jsonl");
  EXPECT_EQ(requests.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(requests.status().message(), HasSubstr("'/nowhere/a.jsonl'"));
}

TEST(ReadTraceTest, ReadsTheSharedTrace) {
  const std::string path =
      absl::StrCat(FOLIO_SHARED_DIR, "/traces/chat-steady-long-prompts.jsonl");
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << "There is no trace at " << path;
  }
  const auto requests = ReadTrace(path);
  ASSERT_TRUE(requests.ok()) << requests.status();
  // Its README says so.
  EXPECT_THAT(*requests, SizeIs(40));
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  for (const LoadRequest& request : *requests) {
    prompt_tokens += request.prompt_tokens;
    output_tokens += request.output_tokens;
  }
  EXPECT_EQ(prompt_tokens, 19520);
  EXPECT_EQ(output_tokens, 4447);
}

TEST(WriteTraceTest, LeavesOutWhatIsTakenForGranted) {
  const LoadRequest requests[] = {{.arrival = absl::Milliseconds(250),
                                   .prompt_tokens = 100,
                                   .output_tokens = 206,
                                   .token_seed = UINT64_MAX},
                                  {.output_tokens = 2,
                                   .prompt_text = "a \"b\"\n",
                                   .deadline = absl::ZeroDuration()},
                                  {.previous = 0}};
  EXPECT_EQ(
      WriteTrace(requests),
      R"({"arrival_s":0.25,"prompt_tokens":100,"output_tokens":206,"token_seed":18446744073709551615})"
      "\n"
      R"({"arrival_s":0.0,"prompt":"a \"b\"\n","output_tokens":2,"deadline_s":0.0})"
      "\n"
      R"({"prompt_tokens":1,"output_tokens":1,"token_seed":0,"previous":0})"
      "\n");
}

// Draws requests of every sort.
class RequestDrawer {
 public:
  explicit RequestDrawer(uint64_t seed) : seed_(seed) {}

  LoadRequest Draw(const std::vector<LoadRequest>& above) {
    LoadRequest request{.arrival = Seconds(),
                        .prompt_tokens = Whole(1),
                        .output_tokens = Whole(1),
                        .token_seed = Seed()};
    if (Coin()) request.tenant = Text();
    if (Coin()) request.priority = Whole(INT32_MIN);
    if (Coin()) request.n = Whole(1);
    if (Coin()) request.deadline = Seconds();
    if (Coin()) request.cancel_after = Seconds();
    if (Coin()) request.read_delay = Seconds();
    const bool is_turn = !above.empty() && Coin();
    if (is_turn) {
      request.previous = static_cast<int32_t>(above.size()) - 1;
      request.think_time = Seconds();
      if (Coin()) request.arrival = absl::ZeroDuration();
    }
    if (is_turn ? !above.back().prompt_text.empty() : Coin()) {
      request.prompt_text = Text();
      if (Coin()) request.prompt_tokens = 1;
      if (Coin()) request.token_seed = 0;
    } else if (Coin()) {
      request.prefix_seed = Seed();
      request.prefix_tokens = Whole(0);
    }
    return request;
  }

 private:
  double Uniform() { return UniformDouble(seed_, 0, position_++); }
  bool Coin() { return Uniform() < 0.5; }
  uint64_t Seed() {
    const PhiloxBlock block = PhiloxAt(seed_, 1, position_++);
    return uint64_t{block[0]} << 32 | block[1];
  }
  int32_t Whole(int32_t least) {
    const double span = double{kMaxTokens} - least;
    return static_cast<int32_t>(least + Uniform() * span);
  }
  // Of every size up to 1e6 s, to the quarter of a nanosecond.
  absl::Duration Seconds() {
    const double most = std::pow(10, Uniform() * 15 - 9);
    return Uniform() * absl::Seconds(most);
  }
  std::string Text() {
    constexpr const char* kCharacters[] = {
        "a", "\"", "\\", "\n", "\t", "\u00fc", "\U0001F600", "\x01"};
    std::string text;
    for (int i = DrawBelow(20, seed_, 2, position_++); i >= 0; --i) {
      text += kCharacters[DrawBelow(8, seed_, 3, position_++)];
    }
    return text;
  }

  const uint64_t seed_;
  uint64_t position_ = 0;
};

TEST(WriteTraceTest, ParsesToTheSameLoad) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RequestDrawer drawer(seed);
    std::vector<LoadRequest> load;
    for (int i = 0; i < 30; ++i) load.push_back(drawer.Draw(load));
    const std::string text = WriteTrace(load);
    const auto parsed = ParseTrace(text, "t");
    ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
    EXPECT_EQ(*parsed, load) << text;
  }
}

TEST(WriteTraceTest, AMadeUpLoadIsReadFromItsFile) {
  const std::vector<LoadRequest> load = MakeLoad(
      {.count = 200,
       .arrivals = {.process = Arrivals::Process::kGamma, .burstiness = 0.3},
       .shared_prefix_tokens = 100,
       .prefix_groups = 3,
       .turns = 3,
       .think_ms = UniformLength{1, 5000},
       .n = 2,
       .tenants = 4,
       .cancel_share = 0.5,
       .deadline_share = 0.5,
       .slow_reader_share = 0.5});
  const TempDir dir;
  const auto read = ReadTrace(dir.Write("load.jsonl", WriteTrace(load)));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, load);
}

}  // namespace
}  // namespace folio
