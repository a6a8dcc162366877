// Goal: strategies are read as they are written, and nothing else is taken for one.
#include <gtest/gtest.h>

#include "common/specs/strategy.h"

namespace dt {
namespace {

TEST(StrategyText, IsReadBack) {
  for (const Strategy& strategy :
       {Strategy{{{2}, {4}}, {{4}, {1}}}, Strategy{{{2, 3}, {1}}}, Strategy{{}, {{7}}}}) {
    EXPECT_EQ(ParseStrategy(TextOf(strategy)), strategy) << TextOf(strategy);
  }
  EXPECT_EQ(ParseStrategy(" ( (2, 4) , (4,1), ) "), (Strategy{{{2}, {4}}, {{4}, {1}}}));
}

TEST(StrategyText, NothingElseIsAStrategy) {
  for (const char* const text :
       {"", "auto", "2", "(2,4)", "((2,4)", "((2,4)))", "((2,,4))", "((0,4))", "((-1))", "((2;4))",
        "(([],1))", "(([2,3],1)", "((2,4))x", "((99999999999))"}) {
    EXPECT_FALSE(ParseStrategy(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace dt
