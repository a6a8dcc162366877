// Goal: the figures that are compared between machines are the medians of what was measured, and
// print as what they are. Method: made-up runs whose mean, median and ratio of medians differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/bench/bench.h"
#include "common/storage/json_file.h"

namespace dt::cli {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

std::string Printed(const std::vector<BenchCase>& cases, bool json) {
  testing::internal::CaptureStdout();
  PrintBench(cases, json);
  return testing::internal::GetCapturedStdout();
}
Json JsonOf(const BenchCase& bench) {
  const Result<Json> all = ParseJson(Printed({bench}, true), "bench");
  EXPECT_TRUE(all.ok()) << all.status();
  EXPECT_FALSE(TextOf(*all, "machine").empty());
  return all->at("cases").at(0);
}

TEST(Median, IsTheMiddleOrTheMeanOfBothMiddles) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({100, 1, 2}), 2);
  EXPECT_EQ(Median({100, 1, 2, 4}), 3);
}

TEST(MeasureRate, TheFirstRunIsAWarmUpAndDoesNotCount) {
  int runs = 0;
  const std::vector<double> rates = MeasureRate(10, 3, [&] { ++runs; });
  EXPECT_EQ(runs, 4);
  EXPECT_THAT(rates, SizeIs(3));
  EXPECT_THAT(rates, Each(Gt(0.0)));
}

TEST(MeasurePairs, BothAreRunInTurnsAndToldTheNumberOfThePair) {
  BenchCase bench;
  std::vector<std::string> runs;
  MeasurePairs(
      bench, 1, 2, [&](int pair) { runs.push_back("case " + std::to_string(pair)); },
      [&](int pair) { runs.push_back("reference " + std::to_string(pair)); });
  EXPECT_THAT(
      runs, ElementsAre("case 0", "reference 0", "case 1", "reference 1", "case 2", "reference 2"));
  EXPECT_THAT(bench.runs, SizeIs(2)) << "pair 0 is the warm-up";
  EXPECT_THAT(bench.reference_runs, SizeIs(2));
}

TEST(PrintBench, ACaseAloneHasNoRatio) {
  const Json json = JsonOf({.name = "a.b", .what = "in words", .unit = "GB/s", .runs = {3, 1, 10}});
  EXPECT_EQ(TextOf(json, "name"), "a.b");
  EXPECT_EQ(TextOf(json, "what"), "in words");
  EXPECT_EQ(TextOf(json, "unit"), "GB/s");
  EXPECT_EQ(NumberOf(json, "median"), 3);
  EXPECT_EQ(NumberOf(json, "min"), 1);
  EXPECT_EQ(NumberOf(json, "max"), 10);
  EXPECT_EQ(CountOf(json, "runs"), 3u);
  for (const char* absent : {"reference", "reference_median", "ratio"}) {
    EXPECT_TRUE(json.at(absent).is_null()) << absent;
  }
}

// What disturbs the machine disturbs both runs of a pair: 1/2, 4/2, 9/3, not 4/2.
TEST(PrintBench, TheRatioIsTheMedianOfThePairsRatios) {
  BenchCase bench{.name = "a",
                  .unit = "GB/s",
                  .runs = {1, 9, 4, 30, 5},
                  .reference = "bare memory",
                  .reference_runs = {2, 3, 8, 10, 1}};
  Json json = JsonOf(bench);
  EXPECT_EQ(NumberOf(json, "ratio"), 3) << "of 0.5, 3, 0.5, 3 and 5; medians would give 5 / 3";
  EXPECT_EQ(NumberOf(json, "reference_median"), 3);
  EXPECT_EQ(TextOf(json, "reference"), "bare memory");
  bench.reference_runs = {2, 5};  // Not measured in turns.
  EXPECT_EQ(NumberOf(JsonOf(bench), "ratio"), 5 / 3.5);
}

TEST(PrintBench, DetailsAreFiguresOfTheirOwn) {
  const BenchCase bench{
      .name = "a", .unit = "GB/s", .runs = {1}, .details = {{"p99_us", 12.5}, {"cpus", 2}}};
  EXPECT_EQ(NumberOf(JsonOf(bench), "p99_us"), 12.5);
  EXPECT_EQ(NumberOf(JsonOf(bench), "cpus"), 2);
  EXPECT_THAT(Printed({bench}, false), HasSubstr("\n  p99_us 12.5  cpus 2\n"));
}

TEST(PrintBench, PeopleReadALineForEachCase) {
  const std::string text = Printed(
      {{.name = "first", .what = "words", .unit = "GB/s", .runs = {2}},
       {.name = "second", .unit = "GB/s", .runs = {6}, .reference = "bare", .reference_runs = {3}}},
      false);
  EXPECT_THAT(text, HasSubstr("\nfirst: words "));
  EXPECT_THAT(text, HasSubstr(" 2.000 GB/s "));
  EXPECT_THAT(text, HasSubstr("(2.000 to 2.000, 1 runs)\n"));
  EXPECT_THAT(text, HasSubstr("\nsecond  "));
  EXPECT_THAT(text, HasSubstr("  2.00 x bare (3.000)\n"));
  EXPECT_THAT(text, Not(HasSubstr("null")));
}

TEST(PrintBench, NoNameSteersTheTerminal) {
  const BenchCase bench{.name = "a\x1b[2J", .unit = "GB/s", .runs = {1}};
  for (const bool json : {true, false}) {
    EXPECT_EQ(Printed({bench}, json).find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace dt::cli
