// Goal: a worker that is killed, paused or stopped while a job trains does not end it: the others
// go on within seconds, and a synchronous job ends with the bits of an undisturbed one.
// Method: real processes under `launch`.
#include <signal.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/launched_job.h"

namespace dt::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class Views : public LaunchedJob {
 protected:
  // `launch` starts no lost process again.
  void Launch(const std::string& name, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--set", "cluster.restarts=0"});
    LaunchedJob::Launch(name, more);
  }
  void ExpectViews(size_t views) {
    ExpectEnd();
    const nlohmann::json result = nlohmann::json::parse(folder_.Read("launched.json"));
    size_t found = 0;
    for (const nlohmann::json& event : result["events"]) {
      if (event["kind"] != "view") continue;
      ++found;
      EXPECT_LT(event["seconds"].get<double>(), 5) << event;
      EXPECT_EQ(event["workers"], 3 - found) << event;
    }
    EXPECT_EQ(found, views) << result["events"];
  }
};

constexpr const char* kEvery100 = "checkpoint: {every: 100}";
const TinyJobOptions kThree = {
    .epochs = 30, .slices = 6, .servers = 2, .workers = 3, .more = kEvery100};

TEST_F(Views, KilledWorkersChangeNoBit) {
  WriteJob(kThree);
  Launch("workers-die");
  for (const uint64_t step : {100, 200}) {
    ASSERT_TRUE(Reaches(step)) << launch_->Output();
    const std::vector<pid_t> workers = Workers();
    ASSERT_FALSE(workers.empty());
    kill(workers[step % workers.size()], SIGKILL);
    ASSERT_TRUE(Eventually(seconds(5), [&] { return Workers().size() < workers.size(); }));
  }
  ExpectViews(2);
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

// Others do once all that a lost worker was to do.
TEST_F(Views, AsynchronousTrainingGoesOnToo) {
  for (const char* staleness : {"2", "unbounded"}) {
    WriteJob({.epochs = 30, .servers = 2, .workers = 3, .staleness = staleness, .more = kEvery100});
    Launch(fmt::format("asynchronous-{}", staleness));
    ASSERT_TRUE(Reaches(100)) << launch_->Output();
    const std::vector<pid_t> workers = Workers();
    ASSERT_EQ(workers.size(), 3U);
    kill(workers[1], SIGKILL);
    ExpectViews(1);
    Undisturbed();
    const auto samples = [&](const char* result) {
      return nlohmann::json::parse(folder_.Read(result))["samples"].get<uint64_t>();
    };
    EXPECT_EQ(samples("launched.json"), samples("calm.json")) << staleness;
    if (HasFailure()) return;
  }
}

// At instants that the processes do not choose.
TEST_F(Views, AtAnyInstant) {
  WriteJob(
      {.epochs = 12, .slices = 6, .servers = 2, .workers = 3, .more = "checkpoint: {every: 40}"});
  const std::string undisturbed = Undisturbed();
  for (const int ms : {3, 17, 41, 90, 160, 230}) {
    Launch(fmt::format("worker-dies-after-{}", ms));
    ASSERT_TRUE(Reaches(40)) << launch_->Output();
    test::Eventually(milliseconds(ms), [] { return false; });
    const std::vector<pid_t> workers = Workers();
    ASSERT_EQ(workers.size(), 3U);
    kill(workers[static_cast<size_t>(ms) % 3], SIGKILL);
    ExpectViews(1);
    EXPECT_EQ(ChecksumOf(folder_, "launched.json"), undisturbed) << ms;
    if (HasFailure()) return;
  }
}

TEST_F(Views, AWorkerThatWakesHearsThatItIsGone) {
  WriteJob(kThree);
  Launch("worker-sleeps");
  ASSERT_TRUE(Reaches(100)) << launch_->Output();
  const std::vector<pid_t> workers = Workers();
  ASSERT_EQ(workers.size(), 3U);
  kill(workers[1], SIGSTOP);
  ASSERT_TRUE(Reaches(250)) << launch_->Output();
  kill(workers[1], SIGCONT);
  ExpectViews(1);
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

TEST_F(Views, AWorkerThatIsStoppedLeaves) {
  WriteJob(kThree);
  Launch("worker-leaves", {"--set", "cluster.lease=20s"});
  ASSERT_TRUE(Reaches(100)) << launch_->Output();
  const std::vector<pid_t> workers = Workers();
  ASSERT_EQ(workers.size(), 3U);
  kill(workers[0], SIGTERM);
  ExpectViews(1);
  EXPECT_THAT(folder_.Read("launched.json"), HasSubstr("was stopped"));
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

// The job ends if it cannot go on without the worker, and names it.
TEST_F(Views, TheLastWorkerEndsTheJob) {
  WriteJob({.epochs = 100000, .slices = 2, .servers = 1, .workers = 2, .more = kEvery100});
  Launch("all-workers-die", {"--set", "cluster.lease=20s"});
  ASSERT_TRUE(Reaches(100)) << launch_->Output();
  for (const pid_t worker : Workers()) kill(worker, SIGKILL);
  const ProgramEnd end = launch_->Wait(seconds(15));
  EXPECT_EQ(end.exit_code, 1) << end.output;
  EXPECT_THAT(end.output, HasSubstr("was killed by signal 9"));
  EXPECT_THAT(end.output, HasSubstr("--resume auto goes on from"));
}

}  // namespace
}  // namespace dt::test
