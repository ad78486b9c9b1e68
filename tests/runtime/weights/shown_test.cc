#include "runtime/weights/shown.h"

#include <gtest/gtest.h>

namespace folio {
namespace {

TEST(Shown, QuotesPlainText) {
  EXPECT_EQ(Shown(""), "''");
  EXPECT_EQ(Shown("model.layers.0 \"x\""), "'model.layers.0 \"x\"'");
  EXPECT_EQ(Shown("\u00e9\u20ac\U0001F600"), "'\u00e9\u20ac\U0001F600'");
}

TEST(Shown, EscapesWhatATerminalOrReaderCouldTrip) {
  EXPECT_EQ(Shown("a\nb\x1b[31m\x7F"), "'a\\x0ab\\x1b[31m\\x7f'");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Shown("\xFF\xC3"), "'\\xff\\xc3'");
  EXPECT_EQ(Shown("\xE2\x82x"), "'\\xe2\\x82x'");
  // U+009B begins a control sequence; U+00A0 is text.
  EXPECT_EQ(Shown("\u009b\u00a0"), "'\\xc2\\x9b\u00a0'");
}

TEST(Shown, CutsAfter200BytesOfWholeCharacters) {
  EXPECT_EQ(Shown(std::string(200, 'k')), "'" + std::string(200, 'k') + "'");
  EXPECT_EQ(Shown(std::string(201, 'k')), "'" + std::string(200, 'k') + "...'");
  EXPECT_EQ(Shown(std::string(199, 'k') + "\u00e9"),
            "'" + std::string(199, 'k') + "...'");
  EXPECT_EQ(Printable("abcd", 3), "abc...");
  EXPECT_EQ(Printable("abc", 3), "abc");
}

}  // namespace
}  // namespace folio
