#include "runtime/weights/json_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/base/utf8.h"
#include "tests/support/bytes.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Nested(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += i % 2 == 0 ? "[" : "{\"k\":";
  text += "1";
  for (int i = depth - 1; i >= 0; --i) text += i % 2 == 0 ? "]" : "}";
  return text;
}

TEST(ParseJson, AgreesWithTheLibraryOnGoodDocuments) {
  for (const std::string& text : {
           std::string("null"),
           std::string("true"),
           std::string("-12"),
           std::string("18446744073709551615"),
           std::string("1.5e-3"),
           std::string("\"a\\u00e9\\n\""),
           std::string("[]"),
           std::string("{}"),
           std::string(" [1, [2, {\"a\": [3, {}]}], \"x\", false, null] "),
           std::string("{\"a\": {\"a\": 1, \"b\": [{\"a\": 2}, {\"a\": 3}]}, "
                       "\"b\": {\"a\": 4}, \"c\": []}"),
           Nested(kMaxJsonDepth),
       }) {
    const auto parsed = ParseJson(text, "text");
    ASSERT_TRUE(parsed.ok()) << text << ": " << parsed.status();
    EXPECT_EQ(*parsed, nlohmann::json::parse(text)) << text;
    EXPECT_EQ(parsed->dump(), nlohmann::json::parse(text).dump());
  }
}

TEST(ParseJson, SaysWhatIsWrongAndWhere) {
  const struct {
    std::string text;
    const char* why;
  } kCases[] = {
      {"", "byte 1: "},
      {"{\n  \"a\": 1,\n  oops\n}", "line 3, column 3"},
      {"[1, 2", "byte 6: "},
      {"[1] 2", "line 1, column 5"},
      {"{\"a\": 1e999}", "1e999"},
      {"\"\xFF\"", "ill-formed UTF-8"},
      {"{\"a\": 1, \"b\": {}, \"a\": 2}", "the key \"a\" twice"},
      {"[{\"x\": {\"k\": 1, \"k\": 1}}]", "the key \"k\" twice"},
      {"{\"a\": 1, \"\\u0061\": 2}", "the key \"a\" twice"},
      {Nested(kMaxJsonDepth + 1), "more than 64 levels"},
      {std::string(1'000'000, '['), "more than 64 levels"},
  };
  for (const auto& [text, why] : kCases) {
    SCOPED_TRACE(text.substr(0, 60));
    const auto parsed = ParseJson(text, "'my.json'");
    ASSERT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(parsed.status().message()),
                StartsWith("'my.json': "));
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(why));
    EXPECT_THAT(std::string(parsed.status().message()),
                ::testing::Not(HasSubstr("json.exception")));
  }
}

TEST(ParseJson, RefusesEveryPrefixOfADocument) {
  const std::string text =
      "{\"name\": [1, -2.5e3, true, null], \"\\u20ac\": {\"x\": \"y\"}}";
  ASSERT_TRUE(ParseJson(text, "whole").ok());
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ParseJson(text.substr(0, size), "cut").ok()) << size;
  }
}

TEST(ReadJsonFile, ReadsAndNamesFiles) {
  const TempDir dir;
  const auto good = ReadJsonFile(dir.Write("good.json", "{\"a\": [1]}"));
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(*good, nlohmann::json({{"a", {1}}}));

  const std::string bad = dir.Write("bad.json", "{\"a\": }");
  EXPECT_THAT(std::string(ReadJsonFile(bad).status().message()),
              StartsWith("'" + bad + "': byte 7"));
  const std::string missing = dir.path() + "/missing.json";
  EXPECT_EQ(ReadJsonFile(missing).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(ReadJsonFile(missing).status().message()),
              HasSubstr(missing));
}

TEST(ReadJsonFile, RefusesHugeFilesUnread) {
  const TempDir dir;
  const std::string path = dir.Write("huge.json", "");
  std::filesystem::resize_file(path, kMaxJsonFileBytes + 1);  // A hole.
  EXPECT_THAT(std::string(ReadJsonFile(path).status().message()),
              HasSubstr("268435457 bytes; a JSON file may have 268435456"));
}

TEST(ParseJson, ReadsAFileInMemory) {
  const std::string text = "[1, 2]";
  const auto file = MappedFile::OfMemory("some/list.json", AsBytes(text));
  EXPECT_EQ(ParseJson(*file).value(), nlohmann::json({1, 2}));
  const auto cut = MappedFile::OfMemory("cut.json", AsBytes(text).first(3));
  EXPECT_THAT(std::string(ParseJson(*cut).status().message()),
              StartsWith("'cut.json': byte 4"));
}

TEST(ParseJson, MessagesCanBePrinted) {
  const std::string long_key(5000, 'k');
  for (const std::string& text :
       {std::string("{\"a\xFF\": 1}"), std::string("[\x01\x1b[31m]"),
        "{\"" + long_key + "\": 1, \"" + long_key + "\": 2}",
        "[\"" + long_key + "\n\"]"}) {
    const std::string message(ParseJson(text, "text").status().message());
    EXPECT_TRUE(IsValidUtf8(message)) << message;
    EXPECT_LT(message.size(), 500u);
    EXPECT_EQ(message.find('\x1b'), message.npos);
  }
}

TEST(ShownJson, IsAsciiAndCutShort) {
  EXPECT_EQ(ShownJson({{"a", "\u00e9\n"}}), "{\"a\":\"\\u00e9\\n\"}");
  EXPECT_EQ(ShownJson(std::string(100, 'x')),
            "\"" + std::string(79, 'x') + "...");
}

}  // namespace
}  // namespace folio
