// The examples are those of the standard, or made by its rules by hand.

#include "bench/load/sse_parser.h"

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {

bool operator==(const SseMessage& a, const SseMessage& b) {
  return a.type == b.type && a.data == b.data;
}

void PrintTo(const SseMessage& message, std::ostream* out) {
  *out << '{' << testing::PrintToString(message.type) << ", "
       << testing::PrintToString(message.data) << '}';
}

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Messages = std::vector<SseMessage>;

void Take(SseParser& parser, Messages& messages) {
  while (const auto message = parser.Next()) messages.push_back(*message);
}

Messages Parse(const std::vector<std::string_view>& pieces) {
  SseParser parser;
  Messages messages;
  for (const std::string_view piece : pieces) {
    parser.Append(piece);
    Take(parser, messages);
  }
  return messages;
}

TEST(SseParserTest, LinesOfDataAreJoined) {
  EXPECT_THAT(Parse({"data: YHOO\ndata: +2\ndata: 10\n\n"}),
              ElementsAre(SseMessage{"", "YHOO\n+2\n10"}));
}

TEST(SseParserTest, CommentsAndUnknownFieldsArePassedOver) {
  EXPECT_THAT(Parse({": keep-alive\n\n:\n\nid: 1\nretry: 10\nerror: {}\n\n"
                     "data: first\nDATA: no\n data: no\n\n"}),
              ElementsAre(SseMessage{"", "first"}));
}

TEST(SseParserTest, OneSpaceAfterTheColonIsNoData) {
  EXPECT_THAT(
      Parse({"data:test\n\ndata: test\n\ndata:  test\n\ndata: a: b\n\n"}),
      ElementsAre(SseMessage{"", "test"}, SseMessage{"", "test"},
                  SseMessage{"", " test"}, SseMessage{"", "a: b"}));
}

TEST(SseParserTest, EmptyDataIsAMessageButNoDataIsNone) {
  // The last one lacks its empty line.
  EXPECT_THAT(Parse({"data\n\ndata\ndata\n\nevent: x\n\ndata:"}),
              ElementsAre(SseMessage{"", ""}, SseMessage{"", "\n"}));
}

TEST(SseParserTest, ATypeIsThatOfItsMessageAlone) {
  EXPECT_THAT(Parse({"event: add\nevent: error\ndata: 1\n\nevent: lost\n\n"
                     "data: 2\n\ndata: 3\nevent\n\n"}),
              ElementsAre(SseMessage{"error", "1"}, SseMessage{"", "2"},
                          SseMessage{"", "3"}));
}

TEST(SseParserTest, AMessageIsThereWithItsLastByte) {
  SseParser parser;
  parser.Append("data: a\n");
  EXPECT_FALSE(parser.Next().has_value());
  // Whether a line feed follows must not be waited for.
  parser.Append("\r");
  EXPECT_EQ(parser.Next(), (SseMessage{"", "a"}));
  parser.Append("\ndata: b\r\n\r");
  EXPECT_EQ(parser.Next(), (SseMessage{"", "b"}));
  EXPECT_FALSE(parser.Next().has_value());
}

TEST(SseParserTest, OnlyTheFirstByteOrderMarkIsSkipped) {
  EXPECT_THAT(Parse({"\xEF\xBB\xBF"
                     "data: a\n\n\xEF\xBB\xBF"
                     "data: b\n\n"}),
              ElementsAre(SseMessage{"", "a"}));
  EXPECT_THAT(Parse({"\xEF", "\xBB",
                     "\xBF"
                     "data: a\n\n"}),
              ElementsAre(SseMessage{"", "a"}));
  EXPECT_THAT(Parse({"\xEF", "data: a\n\n"}), IsEmpty());
}

class SseSplitTest : public testing::TestWithParam<std::string_view> {};

// Everything that matters at a cut: a mark, each kind of line end alone and
// doubled, fields with and without value, characters of several bytes.
TEST_P(SseSplitTest, CutsChangeNothing) {
  const std::string text = absl::StrReplaceAll(
      "\xEF\xBB\xBF: note\n\ndata: {\"a\": 1}\n\nevent: error\ndata:x\n"
      "data: \xE2\x82\xAC\n\ndata\n\n\n\ndata: [DONE]\n\ndata: lost\n",
      {{"\n", std::string(GetParam())}});
  const Messages expected = {{"", "{\"a\": 1}"},
                             {"error", "x\n\xE2\x82\xAC"},
                             {"", ""},
                             {"", "[DONE]"}};
  const std::string_view all = text;
  std::vector<std::string_view> bytes;
  for (size_t i = 0; i < all.size(); ++i) {
    bytes.push_back(all.substr(i, 1));
    for (size_t j = i; j < all.size(); ++j) {
      EXPECT_EQ(Parse({all.substr(0, i), all.substr(i, j - i), all.substr(j)}),
                expected)
          << "cut at " << i << " and " << j;
    }
  }
  EXPECT_EQ(Parse(bytes), expected);
}

INSTANTIATE_TEST_SUITE_P(LineEnds, SseSplitTest,
                         testing::Values("\n", "\r", "\r\n"));

TEST(SseParserTest, MixedLineEnds) {
  EXPECT_THAT(
      Parse({"data: a\r\rdata: b\n\r\ndata: c\r\n\ndata: d\r\n\r"
             "data: e\n\r"}),
      ElementsAre(SseMessage{"", "a"}, SseMessage{"", "b"}, SseMessage{"", "c"},
                  SseMessage{"", "d"}, SseMessage{"", "e"}));
}

TEST(SseParserTest, MessagesThatWaitKeepTheirOrder) {
  SseParser parser;
  parser.Append("data: 1\n\ndata: 2\n\nda");
  EXPECT_EQ(parser.Next(), (SseMessage{"", "1"}));
  parser.Append("ta: 3\n\n");
  EXPECT_EQ(parser.Next(), (SseMessage{"", "2"}));
  EXPECT_EQ(parser.Next(), (SseMessage{"", "3"}));
  EXPECT_FALSE(parser.Next().has_value());
}

}  // namespace
}  // namespace folio
