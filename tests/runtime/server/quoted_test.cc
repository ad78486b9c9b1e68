// What messages repeat of what clients send.

#include "runtime/server/quoted.h"

#include <gtest/gtest.h>

#include <string>

namespace folio {
namespace {

TEST(Quoted, IsWholeUpTo100Bytes) {
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Quoted("folio"), "'folio'");
  EXPECT_EQ(Quoted(std::string(100, 'x')), "'" + std::string(100, 'x') + "'");
}

TEST(Quoted, CutsWhatIsLonger) {
  const std::string cut = "'" + std::string(100, 'x') + "...'";
  EXPECT_EQ(Quoted(std::string(101, 'x')), cut);
  EXPECT_EQ(Quoted(std::string(100000, 'x')), cut);
}

TEST(Quoted, CutsBetweenCharacters) {
  const std::string start(98, 'x');
  EXPECT_EQ(Quoted(start + "\u00e9y"), "'" + start + "\u00e9...'");
  // Three bytes, of which two would fit.
  EXPECT_EQ(Quoted(start + "\u20acy"), "'" + start + "...'");
}

}  // namespace
}  // namespace folio
