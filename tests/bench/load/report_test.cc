#include "bench/load/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace folio {
namespace {

using ::nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kOpen =
    "<script type=\"application/json\" id=\"document\">";

// As a browser finds it: up to the next "</script".
std::string EmbeddedTextOf(const std::string& page) {
  const size_t begin = page.find(kOpen);
  EXPECT_NE(begin, page.npos);
  const size_t from = begin + kOpen.size();
  return page.substr(from, page.find("</script", from) - from);
}

int Count(const std::string& text, std::string_view part) {
  int count = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(Report, HoldsTheDocument) {
  const json document = {{"format", "folio-load 1"},
                         {"runs", json::array({{{"name", "a run"}}})}};
  EXPECT_EQ(json::parse(EmbeddedTextOf(RenderReport(document))), document);
}

TEST(Report, NoStringBreaksOut) {
  const std::string usual = RenderReport({{"runs", json::array()}});
  for (const std::string bad :
       {"</script><script>alert(1)</script>", "</SCRIPT >", "<!--<script>",
        "]]>", "<!--folio:script-->", "<!--folio:style-->", "\\u003c/script>",
        "a\u2028b\u2029c", "\"quoted\\\"", "$& $1 $$", "\x01\t\n"}) {
    const json document = {{"runs", json::array({{{bad, bad}}})}};
    const std::string page = RenderReport(document);
    const std::string text = EmbeddedTextOf(page);
    EXPECT_EQ(json::parse(text), document) << bad;
    EXPECT_THAT(text, Not(HasSubstr("<")));
    EXPECT_THAT(text, Not(HasSubstr("\u2028")));
    EXPECT_THAT(text, Not(HasSubstr("\u2029")));
    // All else of the page is as ever.
    EXPECT_EQ(page.size() - text.size(),
              usual.size() - EmbeddedTextOf(usual).size());
  }
}

TEST(Report, TakesBytesThatAreNotUtf8) {
  const std::string text =
      EmbeddedTextOf(RenderReport({{"name", "caf\xe9 \xff"}}));
  EXPECT_EQ(json::parse(text)["name"], "caf\uFFFD \uFFFD");
}

TEST(Report, LoadsNothing) {
  const std::string page = RenderReport({{"runs", json::array()}});
  // The one address is a name: that of SVG's elements.
  EXPECT_EQ(Count(page, "://"), Count(page, "http://www.w3.org/2000/svg"));
  const std::regex loads(
      R"((\ssrc\s*=|<link(?! rel="icon" href="data:,">)|@import|url\(|fetch\(|XMLHttpRequest|import\())");
  std::smatch found;
  EXPECT_FALSE(std::regex_search(page, found, loads)) << found.str();
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_EQ(Count(page, "<!--folio:"), 0);
  // Text of the document becomes nodes in one way, which makes no markup.
  for (const std::string_view markup :
       {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
        "eval("}) {
    EXPECT_EQ(Count(page, markup), 0) << markup;
  }
}

// 500 requests of 200 tokens, and 4000 rows of batches: the most that a run
// keeps of them.
json LargeRun() {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> up_to_100_s(0, 100000);
  std::uniform_int_distribution<int> gap(100, 9999);
  const auto thousandths = [&] { return int64_t(up_to_100_s(random) * 1000); };
  const auto time = [&] { return static_cast<double>(thousandths()) / 1000; };
  json requests;
  for (int i = 0; i < 500; ++i) {
    requests["name"].push_back("request-" + std::to_string(i));
    requests["tenant"].push_back("tenant");
    for (const char* key :
         {"arrival_ms", "sent_ms", "first_token_ms", "end_ms", "queue_ms"}) {
      requests[key].push_back(time());
    }
    requests["prompt_tokens"].push_back(gap(random));
    requests["output_tokens"].push_back(200);
    requests["status"].push_back("OK");
    json gaps;
    for (int token = 1; token < 200; ++token) gaps.push_back(gap(random));
    requests["gaps"].push_back(std::move(gaps));
  }
  json columns;
  for (const char* key :
       {"start_ms", "duration_ms", "forward_ms", "steps", "prefill_tokens",
        "decode_tokens", "running", "waiting", "preempted", "evicted",
        "pages_free", "pages_in_use", "pages_cached", "pages_shared",
        "tokens_held", "waste_bytes"}) {
    const bool is_time = std::string_view(key).ends_with("_ms");
    for (int row = 0; row < 4000; ++row) {
      columns[key].push_back(is_time ? json(time()) : json(gap(random)));
    }
  }
  json maps = json::array();
  for (int i = 0; i < 40; ++i) {
    json map = {{"step", i}};
    for (int sequence = 0; sequence < 256; ++sequence) {
      map["sequences"].push_back(
          {"request-" + std::to_string(sequence), 100, 10, gap(random)});
    }
    maps.push_back(std::move(map));
  }
  return {{"requests", requests},
          {"batches", {{"columns", columns}, {"maps", maps}}}};
}

TEST(Report, HundredThousandTokensTakeLessThanFiveMegabytes) {
  const std::string page = RenderReport({{"runs", json::array({LargeRun()})}});
  EXPECT_GT(page.size(), 500'000u);  // It is all there.
  EXPECT_LT(page.size(), 5'000'000u);
}

}  // namespace
}  // namespace folio
