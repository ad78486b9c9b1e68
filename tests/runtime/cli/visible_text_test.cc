// What of others' text may reach a terminal.

#include "runtime/cli/visible_text.h"

#include <gtest/gtest.h>

#include <string>

namespace folio {
namespace {

TEST(WithVisibleControls, LeavesTextAlone) {
  const std::string text = "caf\u00e9 ~ \u00a0\u20ac \U0001f600";
  EXPECT_EQ(WithVisibleControls(text), text);
  EXPECT_EQ(WithVisibleControls(""), "");
}

TEST(WithVisibleControls, ShowsControls) {
  EXPECT_EQ(WithVisibleControls("\x1b[2Ja\r\n\x7f"),
            "\\x1b[2Ja\\x0d\\x0a\\x7f");
  // CSI of ISO 8859, which some terminals obey; C1 ends at U+009F.
  EXPECT_EQ(WithVisibleControls("\u0080\u009b2J\u009f\u00a0"),
            "\\xc2\\x80\\xc2\\x9b2J\\xc2\\x9f\u00a0");
  EXPECT_EQ(WithVisibleControls(std::string("\0", 1)), "\\x00");
}

TEST(WithVisibleControls, ShowsBytesThatAreNoText) {
  EXPECT_EQ(WithVisibleControls("\x9b"
                                "2J\xe2\x82"),
            "\\x9b2J\\xe2\\x82");
}

TEST(WithVisibleControls, KeepsWhatItIsTold) {
  EXPECT_EQ(WithVisibleControls("a\n\tb\r", /*keep=*/"\n\t"), "a\n\tb\\x0d");
}

}  // namespace
}  // namespace folio
