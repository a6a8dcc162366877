#include "common/base/status.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Invalid("{} is odd", n);
  return n / 2;
}
Result<int> Quarter(int n) {
  DT_TRY(const int half, Half(n));
  DT_TRY(const int quarter, Half(half));
  return quarter;
}
Status CheckEven(int n) {
  DT_TRY_STATUS(Half(n).status());
  return OkStatus();
}

TEST(Status, TryBindsOrReturnsTheError) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(MessageOf(Quarter(6).status()), "3 is odd");
  EXPECT_TRUE(CheckEven(2).ok());
  EXPECT_EQ(MessageOf(CheckEven(1)), "1 is odd");
}

TEST(Status, PlaceAndAdviceAreKeptOnceGiven) {
  Status status = WithHint(WithWhere(Unavailable("disk full"), "/data"), "free 3 GiB");
  status = WithHint(WithWhere(Prefixed(status, "checkpoint 7"), "elsewhere"), "other");
  EXPECT_EQ(ToText(status), "checkpoint 7: disk full (/data); free 3 GiB");
  const Problem problem = ProblemOf(status);
  EXPECT_EQ(problem.what, "checkpoint 7: disk full");
  EXPECT_EQ(problem.where, "/data");
  EXPECT_EQ(problem.hint, "free 3 GiB");
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
}

TEST(Status, OkStaysOk) {
  EXPECT_TRUE(WithHint(WithWhere(Prefixed(OkStatus(), "a"), "b"), "c").ok());
}

TEST(Status, CodesDecideTheExit) {
  EXPECT_EQ(ExitCodeOf(OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(Invalid("x")), 2);
  EXPECT_EQ(ExitCodeOf(NotYet("x")), 2);
  EXPECT_EQ(ExitCodeOf(Malformed("x")), 3);
  EXPECT_EQ(ExitCodeOf(Timeout("x")), 1);
  EXPECT_EQ(ExitCodeOf(Internal("x")), 1);
}

}  // namespace
}  // namespace dt
