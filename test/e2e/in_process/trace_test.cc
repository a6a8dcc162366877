// Goal: observe.trace writes a complete trace of the chosen steps, whatever the shape of the job.
// Method: tiny jobs in this process; their files are parsed and events are counted.
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/in_process/in_process_job.h"

namespace dt {
namespace {

using nlohmann::json;
using test::ExpectCompleted;
using test::JobShape;
using test::RunJob;
using ::testing::HasSubstr;
using Steps = std::set<uint64_t>;

constexpr const char* kTrace = "observe: {http: off, trace: 7-9}";

// Names of a job's trace files, without extension.
std::vector<std::string> TracesOf(const test::TempFolder& folder, const std::string& job) {
  std::vector<std::string> names;
  std::error_code absent;
  const std::string path = folder.path() + "/runs/" + job + "/trace";
  for (const auto& entry : std::filesystem::directory_iterator(path, absent)) {
    const std::string file = entry.path().filename().string();
    EXPECT_FALSE(file.ends_with(".part")) << file;
    if (!file.ends_with(".json")) continue;
    names.push_back(fmt::format("runs/{}/trace/{}", job, entry.path().stem().string()));
  }
  return names;
}

// The steps that have spans on each track. Further threads of a track count as that track.
std::map<std::string, Steps> StepsByTrack(const json& trace) {
  std::map<int, std::string> names;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] != "thread_name") continue;
    const std::string name = event["args"]["name"];
    names[event["tid"]] = name.substr(0, name.find_first_of("0123456789") - 1);
  }
  std::map<std::string, Steps> steps;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") steps[names.at(event["tid"])].insert(uint64_t{event["args"]["step"]});
  }
  return steps;
}

// Number of events of this name.
size_t CountOf(const json& trace, const std::string& name) {
  size_t count = 0;
  for (const json& event : trace["traceEvents"]) count += event["name"] == name;
  return count;
}

TEST(TraceTest, EveryStageOfTheChosenStepsIsThereAndNoOther) {
  const test::TempFolder folder;
  ExpectCompleted(RunJob(folder, "one", {.slices = 2, .more = kTrace}));
  const std::vector<std::string> traces = TracesOf(folder, "one");
  ASSERT_EQ(traces.size(), 1);
  const json trace = json::parse(folder.Read(traces[0] + ".json"));
  const Steps chosen = {7, 8, 9};
  const std::map<std::string, Steps> steps = StepsByTrack(trace);
  for (const char* track : {"train", "reader", "pull", "push", "exchange"}) {
    ASSERT_TRUE(steps.contains(track)) << track;
    EXPECT_EQ(steps.at(track), chosen) << track;
  }
  for (const auto& [track, seen] : steps) EXPECT_EQ(seen, chosen) << track;
  // Three traced steps of two slices each, one server.
  EXPECT_EQ(CountOf(trace, "run slice"), 6);
  EXPECT_EQ(CountOf(trace, "gather samples"), 6);
  EXPECT_GE(CountOf(trace, "pull"), 6);
  EXPECT_GE(CountOf(trace, "push"), 6);
  EXPECT_EQ(CountOf(trace, "exchange"), 3);
  EXPECT_EQ(CountOf(trace, "update"), 3);
  for (const uint64_t step : chosen) EXPECT_EQ(CountOf(trace, fmt::format("step {}", step)), 1);
  const std::string text = folder.Read(traces[0] + ".txt");
  EXPECT_THAT(text, HasSubstr(" of one\n\nsteps 7 to 9: 3 recorded"));
  EXPECT_THAT(text, HasSubstr("the train thread waits for"));
}

TEST(TraceTest, EveryWorkerWritesItsOwn) {
  const test::TempFolder folder;
  ExpectCompleted(RunJob(folder, "two", {.workers = 2, .slices = 2, .more = kTrace}));
  const std::vector<std::string> traces = TracesOf(folder, "two");
  ASSERT_EQ(traces.size(), 2);
  std::set<int> processes;
  for (const std::string& name : traces) {
    const json trace = json::parse(folder.Read(name + ".json"));
    EXPECT_EQ(StepsByTrack(trace)["exchange"], Steps({7, 8, 9}));
    EXPECT_EQ(CountOf(trace, "run slice"), 3);
    processes.insert(int{trace["traceEvents"][0]["pid"]});
  }
  EXPECT_EQ(processes.size(), 2);  // The two numbers differ, so both files can be opened together.
}

TEST(TraceTest, WorkersThatRunApartAreTracedToo) {
  const test::TempFolder folder;
  ExpectCompleted(RunJob(folder, "apart", {.staleness = "2", .more = kTrace}));
  const std::vector<std::string> traces = TracesOf(folder, "apart");
  ASSERT_EQ(traces.size(), 1);
  const json trace = json::parse(folder.Read(traces[0] + ".json"));
  for (const auto& [track, seen] : StepsByTrack(trace)) {
    EXPECT_EQ(seen, Steps({7, 8, 9})) << track;
  }
  EXPECT_EQ(CountOf(trace, "run slice"), 3);
  EXPECT_EQ(CountOf(trace, "send push"), 3);
}

TEST(TraceTest, StepsBeyondTheEndAreCutThere) {
  const test::TempFolder folder;
  const JobShape shape{.epochs = 1, .more = "observe: {http: off, trace: 10-5000}"};
  ExpectCompleted(RunJob(folder, "end", shape));
  const std::vector<std::string> traces = TracesOf(folder, "end");
  ASSERT_EQ(traces.size(), 1);
  const json trace = json::parse(folder.Read(traces[0] + ".json"));
  EXPECT_EQ(StepsByTrack(trace)["exchange"], Steps({10, 11}));
  EXPECT_EQ(CountOf(trace, "run slice"), 2);
}

TEST(TraceTest, FilesOfAnEarlierRunAreNotTakenForThisOnes) {
  const test::TempFolder folder;
  const std::string trace = "runs/short/trace";
  std::filesystem::create_directories(folder.path() + "/" + trace);
  // Files of an earlier run are removed, whatever the number of their process.
  for (const char* file : {"/worker-1.json", "/worker-2.txt", "/worker-77.json"}) {
    folder.Write(trace + file, "{}");
  }
  folder.Write(trace + "/notes.txt", "mine");
  const JobShape shape{.epochs = 1, .more = "observe: {http: off, trace: 5000-5009}"};
  ::testing::internal::CaptureStderr();
  ExpectCompleted(RunJob(folder, "short", shape));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("worker.trace_empty"));
  EXPECT_TRUE(TracesOf(folder, "short").empty());
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/" + trace + "/worker-2.txt"));
  EXPECT_EQ(folder.Read(trace + "/notes.txt"), "mine");
}

TEST(TraceTest, OffWritesNothing) {
  const test::TempFolder folder;
  ExpectCompleted(RunJob(folder, "off", {.epochs = 1}));
  EXPECT_TRUE(TracesOf(folder, "off").empty());
}

}  // namespace
}  // namespace dt
