// Method: the written trace is parsed again and read as a viewer would read it.
#include "common/metrics/timeline_trace.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/unit/common/metrics/hand_made_spans.h"

namespace dt {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

// For each thread name, the names of its events in the order of the file.
std::map<std::string, std::vector<std::string>> EventsByThread(const json& trace) {
  std::map<int, std::string> names;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name") {
      names[event["tid"]] = event["args"]["name"];
    }
  }
  std::map<std::string, std::vector<std::string>> events;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") events[names.at(event["tid"])].push_back(event["name"]);
  }
  return events;
}

TEST(TraceJsonTest, AnEventSaysWhatHappenedWhenAndOfWhat) {
  RecordedSpan span = SpanOf({Track::kCpu, "deep/\"hidden\"\n", "MatMul"}, 2, 5, 41);
  span.begin += std::chrono::nanoseconds(1007);
  span.slice = 3;
  span.bytes = 1ull << 40;
  const json trace = json::parse(TraceJson({.name = "worker 1 of ads", .pid = 2}, {&span, 1}));
  EXPECT_EQ(trace["displayTimeUnit"], "ms");
  const json& events = trace["traceEvents"];
  EXPECT_EQ(events[0], json::parse(R"({"ph": "M", "pid": 2, "tid": 0, "name": "process_name",
                                       "args": {"name": "worker 1 of ads"}})"));
  EXPECT_EQ(events[1], json({{"ph", "X"},
                             {"pid", 2},
                             {"tid", 1},
                             {"ts", 2001.007},
                             {"dur", 2998.993},
                             {"name", "deep/\"hidden\"\n"},
                             {"cat", "MatMul"},
                             {"args", {{"step", 41}, {"slice", 3}, {"bytes", 1ull << 40}}}}));
  EXPECT_EQ(events[2]["args"]["name"], "cpu");
  EXPECT_EQ(events[3]["name"], "thread_sort_index");
}

TEST(TraceJsonTest, WholeStepsBearTheirNumber) {
  const RecordedSpan span = WholeStep(12, 0, 1);
  const json trace = json::parse(TraceJson({}, {&span, 1}));
  EXPECT_EQ(trace["traceEvents"][1]["name"], "step 12");
}

TEST(TraceJsonTest, TextThatIsNoUtf8IsStillJson) {
  const RecordedSpan span = SpanOf({Track::kGpu, "caf\xe9"}, 0, 1);
  EXPECT_TRUE(json::accept(TraceJson({.name = "\xff"}, {&span, 1})));
}

TEST(TraceJsonTest, NoSpansAreATraceToo) { EXPECT_TRUE(json::accept(TraceJson({}, {}))); }

// Viewers drop or misplace an event that starts during another event of its thread and ends after
// it.
TEST(TraceJsonTest, SpansThatLieAcrossEachOtherGetThreadsOfTheirOwn) {
  const std::vector<RecordedSpan> spans = {
      SpanOf({Track::kTrain, "whole"}, 0, 100), SpanOf({Track::kPull, "a"}, 0, 10),
      SpanOf({Track::kTrain, "inner"}, 10, 90), SpanOf({Track::kPull, "b"}, 5, 15),
      SpanOf({Track::kPull, "c"}, 5, 20),       SpanOf({Track::kPull, "d"}, 10, 12),
      SpanOf({Track::kTrain, "next"}, 100, 110)};
  const auto events = EventsByThread(json::parse(TraceJson({}, spans)));
  EXPECT_EQ(events.size(), 4);
  EXPECT_THAT(events.at("train"), ElementsAre("whole", "inner", "next"));
  EXPECT_THAT(events.at("pull"), ElementsAre("a", "d"));
  EXPECT_THAT(events.at("pull 2"), ElementsAre("b"));
  EXPECT_THAT(events.at("pull 3"), ElementsAre("c"));
}

}  // namespace
}  // namespace dt
