// Goal: a worker may be killed at every stage of a step and of an order, and while the workers
// change: steps go on within seconds, with the bits of an undisturbed job. Method: real processes
// under `launch`, which starts the killed one again; failpoints (common/base/failpoint.h) kill it.
#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/launched_job.h"

namespace dt::test {
namespace {

struct Stage {
  const char* place;
  uint64_t number;
};

class StagesTest : public LaunchedJob, public testing::WithParamInterface<Stage> {
 protected:
  ~StagesTest() override { unsetenv("DOVETAIL_FAILPOINT"); }
  std::string Marker() const { return folder_.path() + "/died"; }
  void KillWorkerAt(const Stage& stage) {
    const std::string text = fmt::format("worker 4:{}:{}:{}", stage.place, stage.number, Marker());
    setenv("DOVETAIL_FAILPOINT", text.c_str(), 1);
  }
  void ExpectDeathsAndEnd(size_t deaths) {
    ExpectEnd();
    EXPECT_EQ(access(Marker().c_str(), F_OK), 0) << "nobody has died";
    EXPECT_EQ(EventsOf("worker_lost"), deaths);
    const nlohmann::json result = nlohmann::json::parse(folder_.Read("launched.json"));
    size_t views = 0;
    for (const nlohmann::json& event : result["events"]) {
      if (event["kind"] != "view") continue;
      ++views;
      EXPECT_LT(event["seconds"].get<double>(), 5) << event;
    }
    EXPECT_GE(views, 1U);
  }
};

// 12 steps are an epoch; an epoch is evaluated, and saved.
const TinyJobOptions kThree = {.epochs = 4,
                               .slices = 6,
                               .servers = 2,
                               .workers = 3,
                               .more = "checkpoint: {every: 20}\nparallel: {overlap: true}"};

TEST_P(StagesTest, AKillChangesNoBit) {
  WriteJob(kThree);
  static const std::string undisturbed = Undisturbed();
  KillWorkerAt(GetParam());
  Launch(std::string("dies-at-") + GetParam().place);
  ExpectDeathsAndEnd(1);
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), undisturbed);
}

std::string NameOfStage(const testing::TestParamInfo<Stage>& of) { return of.param.place; }

INSTANTIATE_TEST_SUITE_P(Step, StagesTest,
                         testing::Values(Stage{"pull", 17}, Stage{"slice", 17}, Stage{"push", 17},
                                         Stage{"pushed", 17}, Stage{"exchange", 17},
                                         Stage{"join", 17}, Stage{"barrier", 17},
                                         Stage{"complete", 17}, Stage{"update", 17},
                                         Stage{"updated", 17}),
                         NameOfStage);
INSTANTIATE_TEST_SUITE_P(Order, StagesTest,
                         testing::Values(Stage{"evaluate", 24}, Stage{"save", 20},
                                         Stage{"finish", 48}, Stage{"done", 24}),
                         NameOfStage);

TEST_F(StagesTest, AKillWhileACheckpointIsLoadedChangesNoBit) {
  WriteJob(kThree);
  const std::string undisturbed = Undisturbed();
  Launch("dies-at-load", {"--set", "train.epochs=2"});
  ExpectEnd();
  KillWorkerAt({"load", 0});
  Launch("dies-at-load", {"--resume", "auto"});
  ExpectDeathsAndEnd(1);
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), undisturbed);
}

// Its process lives, and sends heartbeats. The others wait for it for a minute; then the job goes
// on without it, and it ends itself, so that `launch` starts another.
TEST_F(StagesTest, AWorkerThatHangsForAMinuteIsReplaced) {
  WriteJob(kThree);
  const std::string undisturbed = Undisturbed();
  const std::string text = fmt::format("worker 4:slice:17:{}:hangs", Marker());
  setenv("DOVETAIL_FAILPOINT", text.c_str(), 1);
  Launch("hangs");
  ExpectEnd(std::chrono::minutes(3));
  EXPECT_EQ(EventsOf("worker_lost"), 1U);
  EXPECT_NE(folder_.Read("launched.json").find("holds "), std::string::npos);
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), undisturbed);
}

// Another one dies at a stage of a step, and this one while the view without it is formed.
TEST_F(StagesTest, AKillWhileAViewIsFormedChangesNoBit) {
  TinyJobOptions job = kThree;
  job.epochs = 40;
  WriteJob(job);
  const std::string undisturbed = Undisturbed();
  for (const char* place : {"view", "view begins"}) {
    std::remove(Marker().c_str());
    KillWorkerAt({place, 2});
    Launch(std::string(place) == "view" ? "dies-reporting" : "dies-as-it-begins");
    ASSERT_TRUE(Reaches(20)) << launch_->Output();
    const std::vector<pid_t> workers = Workers();
    ASSERT_EQ(workers.size(), 3U);
    kill(workers[0], SIGKILL);
    ExpectDeathsAndEnd(2);
    EXPECT_EQ(ChecksumOf(folder_, "launched.json"), undisturbed) << place;
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace dt::test
