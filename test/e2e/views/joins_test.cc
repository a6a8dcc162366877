// Goal: workers join and leave a job while it trains, by `dovetail scale` and by themselves, with
// the bits of an undisturbed job; those that cannot take part hear why. Method: real processes.
#include <csignal>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/launched_job.h"

namespace dt::test {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Joins : public LaunchedJob {
 protected:
  ProgramEnd Scale(const std::string& role, int count) {
    return RunProgram(folder_.path(), {"scale", role, std::to_string(count), job_, "--set", mark_});
  }
  // The numbers of workers in all views but the first. REQUIRES: the job has ended.
  std::vector<int> Views() const {
    const nlohmann::json result = nlohmann::json::parse(folder_.Read("launched.json"));
    std::vector<int> views;
    for (const nlohmann::json& event : result["events"]) {
      if (event["kind"] == "view") views.push_back(event["workers"].get<int>());
    }
    return views;
  }
  bool HasWorkers(size_t count) {
    return Eventually(seconds(20), [&] { return Workers().size() == count; });
  }
  // One to four to two workers; further arguments for every program.
  void OneToFourToTwo(const std::vector<std::string>& more) {
    Launch("one-to-four-to-two", more);
    ASSERT_TRUE(Reaches(100)) << launch_->Output();
    const ProgramEnd scaled = Scale("workers", 4);
    EXPECT_EQ(scaled.exit_code, 0) << scaled.output;
    ASSERT_TRUE(HasWorkers(4)) << launch_->Output();
    const uint64_t joined = StepOf(CheckpointsOf(folder_, name_).back());
    ASSERT_TRUE(Reaches(joined + 200)) << launch_->Output();
    EXPECT_EQ(Scale("workers", 2).exit_code, 0);
    EXPECT_TRUE(HasWorkers(2));
    ExpectEnd();
    const std::vector<int> views = Views();
    ASSERT_FALSE(views.empty());
    EXPECT_EQ(*std::ranges::max_element(views), 4);
    EXPECT_EQ(views.back(), 2);
    EXPECT_EQ(EventsOf("worker_released"), 2U);
  }
};

constexpr const char* kEvery100 = "checkpoint: {every: 100}";
const TinyJobOptions kOne = {
    .epochs = 100, .slices = 4, .servers = 2, .workers = 1, .more = kEvery100};

TEST_F(Joins, OneToFourToTwoWorkersChangesNoBit) {
  WriteJob(kOne);
  OneToFourToTwo({});
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

TEST_F(Joins, AsynchronousOnesToo) {
  WriteJob(kOne);
  OneToFourToTwo({"--set", "train.staleness=2", "--set", "train.slices=auto"});
  EXPECT_EQ(EventsOf("returned"), 0U);
}

TEST_F(Joins, WithoutABoundToo) {
  WriteJob(kOne);
  OneToFourToTwo({"--set", "train.staleness=unbounded", "--set", "train.slices=auto"});
  EXPECT_EQ(EventsOf("returned"), 0U);
}

// Each worker reads only the stripes of its slices; one that joins, or is left, reads others.
const std::vector<std::string> kParts = {
    "--set", "data.read=part", "--set",
    "data.columns=[{name: label, role: label}, {name: features, type: ids, length: 6}]"};

TEST_F(Joins, OfWorkersThatReadPartsOfTheData) {
  WriteJob(kOne);
  OneToFourToTwo(kParts);
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed(kParts));
  std::vector<std::string> all = kParts;
  all[1] = "data.read=all";
  all.insert(all.end(), {"--set", "data.shuffle.by=slices"});
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed(all));
}

TEST_F(Joins, AKilledWorkersPartIsReadByTheOthers) {
  WriteJob({.epochs = 100, .slices = 4, .servers = 1, .workers = 3, .more = kEvery100});
  std::vector<std::string> arguments = kParts;
  arguments.insert(arguments.end(), {"--set", "cluster.restarts=0"});
  Launch("part-of-the-lost", arguments);
  ASSERT_TRUE(Reaches(100)) << launch_->Output();
  kill(Workers()[1], SIGKILL);
  ExpectEnd();
  EXPECT_THAT(Views(), ElementsAre(2));
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed(kParts));
}

TEST_F(Joins, WithTablesOnWorkers) {
  WriteJob(kOne);
  const std::vector<std::string> on_workers = {"--set", "model.tables.deep.device=cpu"};
  OneToFourToTwo(on_workers);
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed(on_workers));
}

TEST_F(Joins, OnTheEmulatedAccelerator) {
  WriteJob(kOne);
  const std::vector<std::string> emulated = {"--set", "cluster.devices=emulated",
                                             "--set", "optimizer.device=gpu",
                                             "--set", "model.tables.deep.device=gpu"};
  OneToFourToTwo(emulated);
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed(emulated));
}

// `launch` starts it again, and it joins.
TEST_F(Joins, AKilledWorkerComesBack) {
  WriteJob({.epochs = 60, .slices = 6, .servers = 2, .workers = 3, .more = kEvery100});
  Launch("worker-comes-back");
  ASSERT_TRUE(Reaches(100)) << launch_->Output();
  ASSERT_EQ(Workers().size(), 3U);
  kill(Workers()[1], SIGKILL);
  ExpectEnd();
  EXPECT_THAT(Views(), ElementsAre(2, 3));
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

// It hears that the job has gone on without it, ends, and is started again.
TEST_F(Joins, AWorkerThatSleptComesBack) {
  WriteJob({.epochs = 300, .slices = 6, .servers = 2, .workers = 3, .more = kEvery100});
  Launch("sleeper-comes-back");
  ASSERT_TRUE(Reaches(100)) << launch_->Output();
  const std::vector<pid_t> workers = Workers();
  ASSERT_EQ(workers.size(), 3U);
  kill(workers[2], SIGSTOP);
  const uint64_t stopped = StepOf(CheckpointsOf(folder_, name_).back());
  ASSERT_TRUE(Reaches(stopped + 300)) << launch_->Output();
  kill(workers[2], SIGCONT);
  ExpectEnd();
  EXPECT_THAT(Views(), ElementsAre(2, 3));
}

TEST_F(Joins, OneBeyondTheSlicesWaitsAndTakesTheNextPlace) {
  WriteJob({.epochs = 100, .slices = 2, .servers = 1, .workers = 2, .more = kEvery100});
  Launch("spare", {"--set", "cluster.restarts=0"});
  ASSERT_TRUE(Reaches(100)) << launch_->Output();
  const std::vector<pid_t> workers = Workers();
  const nlohmann::json run = nlohmann::json::parse(folder_.Read("runs/" + name_ + "/run.json"));
  Program spare(folder_.path(), {"worker", job_, "--set", mark_, "--set", "cluster.restarts=0",
                                 "--scheduler", run["scheduler"].get<std::string>()});
  const auto status = [&] {
    return RunProgram(folder_.path(), {"status", job_, "--set", mark_}).output;
  };
  EXPECT_TRUE(Eventually(seconds(20), [&] { return status().find("spare") != std::string::npos; }));
  kill(workers[0], SIGKILL);
  const ProgramEnd end = launch_->Wait(seconds(90));
  ASSERT_EQ(end.exit_code, 0) << end.output;
  const ProgramEnd spare_end = spare.Wait(seconds(30));  // It is not one that `launch` waits for.
  EXPECT_EQ(spare_end.exit_code, 0) << spare_end.output;
  EXPECT_THAT(folder_.Read("launched.json"), HasSubstr("waits as a spare"));
  EXPECT_THAT(Views(), ElementsAre(2));
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

TEST_F(Joins, OneThatReadsOtherDataIsRefusedAndTheJobGoesOn) {
  WriteJob({.epochs = 100, .slices = 4, .servers = 1, .workers = 1, .more = kEvery100});
  const TempFolder elsewhere;
  WriteTinyJob(elsewhere, {.rows = 2000, .epochs = 100, .slices = 4, .more = kEvery100});
  Launch("other-data");
  ASSERT_TRUE(Reaches(100)) << launch_->Output();
  const nlohmann::json run = nlohmann::json::parse(folder_.Read("runs/" + name_ + "/run.json"));
  const ProgramEnd refused =
      RunProgram(elsewhere.path(),
                 {"worker", "tiny.yaml", "--set", mark_, "--set",
                  "security.curve.key=" + folder_.path() + "/runs/" + name_ + "/keys/job.key",
                  "--scheduler", run["scheduler"].get<std::string>()});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output,
              AllOf(HasSubstr("read different data"), HasSubstr("3000 and 2000 training samples")));
  ExpectEnd();
  EXPECT_TRUE(Views().empty());
}

TEST_F(Joins, WhatCannotBeIsRefusedWithASentence) {
  WriteJob(kOne);
  Launch("scale-mistakes", {"--set", "train.epochs=2000"});
  ASSERT_TRUE(Reaches(100)) << launch_->Output();
  const auto told = [&](const std::string& role, int count, const std::string& words) {
    const ProgramEnd end = Scale(role, count);
    EXPECT_EQ(end.exit_code, 2) << end.output;
    EXPECT_THAT(end.output, HasSubstr(words));
  };
  told("workers", 5, "a step has 4 slices: 1 of 5 workers would have nothing to do");
  told("workers", 0, "a job needs at least one worker");
  told("servers", 0, "the job needs at least 1 server, for its replicas, and has use for 16");
  told("servers", 17, "the job needs at least 1 server, for its replicas, and has use for 16");
  launch_->Signal(SIGTERM);
  launch_->Wait(seconds(30));
}

TEST_F(Joins, ServersAreScaledToo) {
  WriteJob(kOne);
  Launch("servers-scale");
  ASSERT_TRUE(Reaches(100)) << launch_->Output();
  const auto servers = [&](size_t count) {
    return Eventually(seconds(20), [&] { return ProcessesWith(mark_, "server").size() == count; });
  };
  EXPECT_EQ(Scale("servers", 3).exit_code, 0);
  EXPECT_TRUE(servers(3));
  EXPECT_EQ(Scale("servers", 1).exit_code, 0);
  EXPECT_TRUE(servers(1));
  ExpectEnd();
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

}  // namespace
}  // namespace dt::test
