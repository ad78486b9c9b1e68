#include "runtime/base/status_macros.h"

#include <gtest/gtest.h>

#include <memory>

namespace folio {
namespace {

absl::StatusOr<std::unique_ptr<int>> Half(int number) {
  if (number % 2 != 0) return absl::InvalidArgumentError("odd");
  return std::make_unique<int>(number / 2);
}

absl::StatusOr<int> Quarter(int number) {
  FOLIO_ASSIGN_OR_RETURN(std::unique_ptr<int> half, Half(number));
  FOLIO_ASSIGN_OR_RETURN(half, Half(*half));
  return *half;
}

absl::Status Check(int number, int& calls) {
  FOLIO_RETURN_IF_ERROR((++calls, Quarter(number).status()));
  ++calls;
  return absl::OkStatus();
}

TEST(StatusMacros, MoveTheValueOrReturnTheStatus) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(3).status(), absl::InvalidArgumentError("odd"));
  EXPECT_EQ(Quarter(6).status(), absl::InvalidArgumentError("odd"));
}

TEST(StatusMacros, EvaluateOnce) {
  int calls = 0;
  EXPECT_TRUE(Check(4, calls).ok());
  EXPECT_EQ(calls, 2);
  EXPECT_FALSE(Check(5, calls).ok());
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace folio
