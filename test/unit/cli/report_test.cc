#include "cli/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dt::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Report, WhatIsNoResultIsRefused) {
  EXPECT_FALSE(RenderReport(Json::array(), Json()).ok());
  EXPECT_FALSE(RenderReport(Json::object(), Json()).ok());
}

TEST(Report, HoldsTheResultAndTheBestPossible) {
  const Json truth = {{"test", {{"auc", 0.875}}}};
  const Result<std::string> page = RenderReport({{"job", "j"}, {"steps", 7}}, truth);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, HasSubstr(R"("steps":7)"));
  EXPECT_THAT(*page, HasSubstr(R"("best_possible":{"auc":0.875})"));
}

TEST(Report, ATextOfTheJobStaysAText) {
  const Result<std::string> page = RenderReport({{"job", "</script><img src=x>"}}, Json());
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, HasSubstr(R"(\u003c/script>\u003cimg src=x>)"));
  EXPECT_THAT(*page, Not(HasSubstr("<img")));
}

}  // namespace
}  // namespace dt::cli
