#include "runtime/tokenizer/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Texts as they are, tokens as "#id".
std::vector<std::string> SectionsOf(const AddedTokens& added,
                                    const std::string& text,
                                    bool parse_special = true) {
  std::vector<std::string> sections;
  const absl::Status status =
      added.ForEachSection(text, parse_special, [&](const Section& section) {
        sections.push_back(section.token == kNoToken
                               ? std::string(section.text)
                               : absl::StrCat("#", section.token));
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return sections;
}

TEST(AddedTokens, TakesTheLeftmostAndLongest) {
  const AddedTokens added({{.id = 1, .content = "<a>"},
                           {.id = 2, .content = "<a>b"},
                           {.id = 3, .content = "a>bc"},
                           {.id = 4, .content = "bb"}});
  EXPECT_THAT(SectionsOf(added, "x<a>y"), ElementsAre("x", "#1", "y"));
  EXPECT_THAT(SectionsOf(added, "<a>bc"), ElementsAre("#2", "c"));
  EXPECT_THAT(SectionsOf(added, "<<a>"), ElementsAre("<", "#1"));
  EXPECT_THAT(SectionsOf(added, "bbb"), ElementsAre("#4", "b"));
  EXPECT_THAT(SectionsOf(added, "abbbb"), ElementsAre("a", "#4", "#4"));
  EXPECT_THAT(SectionsOf(added, "<a"), ElementsAre("<a"));
  EXPECT_THAT(SectionsOf(added, ""), IsEmpty());
  EXPECT_THAT(SectionsOf(AddedTokens(), "<a>"), ElementsAre("<a>"));
}

TEST(AddedTokens, SpecialOnesAreTextUnlessAskedFor) {
  const AddedTokens added({{.id = 1, .content = "<s>", .special = true},
                           {.id = 2, .content = "<s>x"},
                           {.id = 3, .content = "<t>"}});
  EXPECT_THAT(SectionsOf(added, "a<s>b<t>", true),
              ElementsAre("a", "#1", "b", "#3"));
  EXPECT_THAT(SectionsOf(added, "a<s>b<t>", false), ElementsAre("a<s>b", "#3"));
  EXPECT_THAT(SectionsOf(added, "<s>x", false), ElementsAre("#2"));
}

TEST(AddedTokens, SingleWordsStandAlone) {
  const AddedTokens added({{.id = 1, .content = "no", .single_word = true}});
  EXPECT_THAT(SectionsOf(added, "no"), ElementsAre("#1"));
  EXPECT_THAT(SectionsOf(added, "(no)"), ElementsAre("(", "#1", ")"));
  EXPECT_THAT(SectionsOf(added, "no no"), ElementsAre("#1", " ", "#1"));
  for (const char* inside :
       {"know", "nos", "no1", "_no", "\u00E9no", "no\u0301"}) {
    EXPECT_THAT(SectionsOf(added, inside), ElementsAre(inside));
  }
  EXPECT_THAT(SectionsOf(added, "\u2014no\u2014"),
              ElementsAre("\u2014", "#1", "\u2014"));
}

TEST(AddedTokens, TakesWhiteSpaceAlong) {
  const AddedTokens left({{.id = 1, .content = "<m>", .lstrip = true}});
  EXPECT_THAT(SectionsOf(left, "a \t\u3000<m> b"),
              ElementsAre("a", "#1", " b"));
  EXPECT_THAT(SectionsOf(left, "  <m>"), ElementsAre("#1"));
  const AddedTokens right({{.id = 1, .content = "<m>", .rstrip = true}});
  EXPECT_THAT(SectionsOf(right, "a <m> \nb"), ElementsAre("a ", "#1", "b"));
  EXPECT_THAT(SectionsOf(right, "<m>  "), ElementsAre("#1"));
  // White space that one token took is not there for the next.
  const AddedTokens both(
      {{.id = 1, .content = "<m>", .lstrip = true, .rstrip = true}});
  EXPECT_THAT(SectionsOf(both, "<m>  <m>"), ElementsAre("#1", "#1"));
}

TEST(AddedTokens, TheFirstOfEqualContentsCounts) {
  const AddedTokens added({{.id = 1, .content = "x"},
                           {.id = 2, .content = "x"},
                           {.id = 3, .content = ""}});
  EXPECT_THAT(SectionsOf(added, "ax"), ElementsAre("a", "#1"));
}

TEST(AddedTokens, AVisitorsErrorEndsIt) {
  const AddedTokens added({{.id = 1, .content = "x"}});
  int visits = 0;
  const absl::Status status =
      added.ForEachSection("xxx", true, [&](const Section&) {
        return ++visits == 2 ? absl::CancelledError("") : absl::OkStatus();
      });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(visits, 2);
}

}  // namespace
}  // namespace folio
