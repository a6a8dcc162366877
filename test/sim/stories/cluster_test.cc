// Goal: whatever happens to a job, it comes to the end of a job that nothing happened to: the same
// bits, every sample once in every epoch; one owner for each shard, and clocks that never go back.
// Method: the real scheduler, servers, logs, checkpoints and workers on virtual time, with what a
// seed brings upon them; a failing seed is printed and replays.
#include <gtest/gtest.h>

#include "test/sim/stories/stories.h"

namespace dt::sim {
namespace {

// Servers with a log are killed and meet full disks.
constexpr Misfortunes kKilledServers = {.network = kBadNetwork,
                                        .lasting = seconds(12),
                                        .pause = 0.02,
                                        .cut = 0.03,
                                        .kill_server = 0.06,
                                        .full_disk = 0.03};

TEST(Cluster, ALogChangesNoBits) {
  EXPECT_EQ(Undisturbed(Mode::kLog), Undisturbed(Mode::kSynchronous));
}

TEST(Cluster, CopiesChangeNoBits) {
  EXPECT_EQ(Undisturbed(Mode::kChains), Undisturbed(Mode::kSynchronous));
  EXPECT_EQ(Undisturbed(Mode::kLoggedChains), Undisturbed(Mode::kSynchronous));
}

// Every message of a story, to the nanosecond.
TEST(Cluster, ASeedReplays) {
  for (const Mode mode :
       {Mode::kSynchronous, Mode::kLog, Mode::kBounded, Mode::kUnbounded, Mode::kBoundedLog,
        Mode::kChains, Mode::kBoundedChains, Mode::kLoggedChains, Mode::kBoundedLoggedChains}) {
    std::map<uint64_t, int> digests;
    for (int time = 0; time < 3; ++time) {
      Story story(7, JobOf(mode));
      const Misfortunes misfortunes = {.network = kBadNetwork,
                                       .lasting = seconds(12),
                                       .pause = 0.03,
                                       .cut = 0.03,
                                       .kill = 0.01,
                                       .kill_server = HasLog(mode) || HasChains(mode) ? 0.05 : 0};
      ASSERT_TRUE(story.Tell(misfortunes).has_value()) << NameOf(mode);
      ++digests[story.cluster().wires().digest()];
    }
    EXPECT_EQ(digests.size(), 1u) << NameOf(mode);
  }
}

TEST(Cluster, KilledAndStoppedJobsGoOnFromTheirCheckpoints) {
  const Story::Tally all = TellAll(Mode::kSynchronous, {.network = kBadNetwork,
                                                        .lasting = seconds(12),
                                                        .pause = 0.02,
                                                        .cut = 0.03,
                                                        .kill = 0.03,
                                                        .stop = 0.02});
  ExpectAtLeast(all.kills, 0.5);
  ExpectAtLeast(all.stops, 0.3);
  ExpectAtLeast(all.restarts, 0.8);
}

// Without their user. Of servers that join late, too, after a checkpoint was loaded.
TEST(Cluster, JobsReturnToTheirLastCheckpointByThemselves) {
  for (const Mode mode : {Mode::kSynchronous, Mode::kBounded, Mode::kUnbounded, Mode::kLog,
                          Mode::kChains, Mode::kTablesOnWorkers, Mode::kBoundedChains}) {
    const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                            .lasting = seconds(20),
                                            .pause = 0.02,
                                            .cut = 0.03,
                                            .kill_and_start = 0.03});
    ExpectAtLeast(all.returns, 0.5);
    ExpectAtMost(all.restarts, 0.05);
    if (HasFailure()) return;
  }
}

TEST(Cluster, ServersThatKeepALogComeBack) {
  const Story::Tally all = TellAll(Mode::kLog, kKilledServers);
  ExpectAtLeast(all.kills, 0.8);
  ExpectAtLeast(all.full_disks, 0.5);
  ExpectAtLeast(all.recoveries, 0.5);
}

TEST(Cluster, AsynchronousWorkersTrainEverySampleOnce) {
  const Story::Tally all = TellAll(
      Mode::kBounded,
      {.network = kBadNetwork, .lasting = seconds(12), .pause = 0.03, .cut = 0.03, .stop = 0.02});
  ExpectAtLeast(all.pauses, 0.5);
  ExpectAtLeast(all.stops, 0.2);
}

TEST(Cluster, AsynchronousServersThatKeepALogComeBack) {
  const Story::Tally all = TellAll(Mode::kBoundedLog, kKilledServers);
  ExpectAtLeast(all.kills, 0.8);
  ExpectAtLeast(all.recoveries, 0.5);
}

TEST(Cluster, MoreWorkersChangeNoBits) {
  EXPECT_EQ(Undisturbed(Mode::kManyWorkers), Undisturbed(Mode::kSynchronous));
}

// Three of four workers may be lost; the last one ends the job with the bits of all.
void TrainingGoesOnWithoutWorkers(Mode mode) {
  const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                          .lasting = seconds(20),
                                          .from_step = 1,
                                          .pause = 0.02,
                                          .cut = 0.02,
                                          .lose_worker = 0.08,
                                          .kills_max = 6});
  ExpectAtLeast(all.views, 1);
  ExpectAtMost(all.restarts, 0.05);
}

TEST(Cluster, SynchronousTrainingGoesOnWithoutWorkers) {
  TrainingGoesOnWithoutWorkers(Mode::kManyWorkers);
}
// All that the lost ones were to do counts once, too.
TEST(Cluster, AsynchronousTrainingGoesOnWithoutWorkers) {
  TrainingGoesOnWithoutWorkers(Mode::kBoundedManyWorkers);
  TrainingGoesOnWithoutWorkers(Mode::kUnboundedManyWorkers);
}

// While servers and schedulers are lost, too.
TEST(Cluster, WorkersServersAndSchedulersAreLostTogether) {
  for (const Mode mode :
       {Mode::kManyWorkers, Mode::kBoundedManyWorkers, Mode::kUnboundedManyWorkers}) {
    const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                            .lasting = seconds(20),
                                            .from_step = 1,
                                            .pause = 0.02,
                                            .cut = 0.02,
                                            .kill_server = 0.02,
                                            .kill_scheduler = 0.03,
                                            .lose_worker = 0.06,
                                            .kills_max = 6});
    ExpectAtLeast(all.views, 0.8);
    ExpectAtLeast(all.successions, 0.3);
    ExpectAtLeast(all.removals, 0.1);
    ExpectAtMost(all.restarts, 0.1);
    if (HasFailure()) return;
  }
}

// Whole jobs, too: the next one may lose a worker while it loads the checkpoint.
TEST(Cluster, WorkersAreLostInJobsThatAreStartedAgain) {
  const Story::Tally all = TellAll(Mode::kManyWorkers, {.network = kBadNetwork,
                                                        .lasting = seconds(20),
                                                        .kill = 0.03,
                                                        .lose_worker = 0.08,
                                                        .stop = 0.02,
                                                        .kills_max = 6});
  ExpectAtLeast(all.views, 0.5);
  ExpectAtLeast(all.restarts, 0.8);
}

// The scheduler hears all of them. One of two that do not reach each other leaves, and one whose
// thread hangs, after a while.
void OneLeavesThatHoldsOthersUp(Mode mode, const Misfortunes& holding, double times) {
  Misfortunes all_that = holding;
  all_that.network = kBadNetwork;
  all_that.lasting = seconds(200);
  all_that.from_step = 1;
  all_that.pause = all_that.cut = 0.01;
  const Story::Tally all = TellAll(mode, all_that);
  ExpectAtLeast(all.in_the_way, times);
  ExpectAtMost(all.restarts, 0);
}

TEST(Cluster, WorkersThatDoNotReachEachOtherPart) {
  OneLeavesThatHoldsOthersUp(Mode::kManyWorkers, {.part_workers = 0.3, .kills_max = 1}, 0.8);
}

TEST(Cluster, AWorkerThatHangsLeaves) {
  for (const Mode mode :
       {Mode::kManyWorkers, Mode::kBoundedManyWorkers, Mode::kUnboundedManyWorkers}) {
    OneLeavesThatHoldsOthersUp(mode, {.hang_worker = 0.3, .kills_max = 1}, 0.8);
    if (HasFailure()) return;
  }
}

// Workers come and go, and those that were lost come back.
void WorkersJoinAndLeave(Mode mode) {
  const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                          .lasting = seconds(20),
                                          .from_step = 1,
                                          .pause = 0.02,
                                          .cut = 0.02,
                                          .add_worker = 0.05,
                                          .release_worker = 0.05,
                                          .changes_max = 6,
                                          .lose_worker = 0.05,
                                          .worker_returns = 0.8});
  ExpectAtLeast(all.changes, 2);
  // Asynchronous workers that join get no values from others.
  if (IsSynchronous(mode)) ExpectAtLeast(all.newcomers, 0.8);
  ExpectAtLeast(all.views, 1.5);
  ExpectAtMost(all.restarts, 0.1);
}

TEST(Cluster, WorkersJoinAndLeave) { WorkersJoinAndLeave(Mode::kManyWorkers); }
TEST(Cluster, AsynchronousWorkersJoinAndLeave) {
  WorkersJoinAndLeave(Mode::kBoundedManyWorkers);
  WorkersJoinAndLeave(Mode::kUnboundedManyWorkers);
}
TEST(Cluster, WorkersWithTablesJoinAndLeave) {
  EXPECT_EQ(Undisturbed(Mode::kTablesOnWorkers), Undisturbed(Mode::kSynchronous));
  WorkersJoinAndLeave(Mode::kTablesOnWorkers);
}

// While servers and schedulers come, go and are lost, too.
void AllRolesJoinAndLeave(Mode mode) {
  const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                          .lasting = seconds(20),
                                          .from_step = 1,
                                          .pause = 0.02,
                                          .cut = 0.02,
                                          .kill_server = 0.02,
                                          .kill_scheduler = 0.03,
                                          .add_server = 0.03,
                                          .drain_server = 0.02,
                                          .add_worker = 0.05,
                                          .release_worker = 0.03,
                                          .changes_max = 8,
                                          .lose_worker = 0.05,
                                          .worker_returns = 0.8,
                                          .kills_max = 5});
  if (IsSynchronous(mode)) ExpectAtLeast(all.newcomers, 0.5);
  ExpectAtLeast(all.successions, 0.2);
  ExpectAtMost(all.restarts, 0.15);
}

TEST(Cluster, AllRolesJoinAndLeave) { AllRolesJoinAndLeave(Mode::kManyWorkers); }
TEST(Cluster, AllRolesOfAsynchronousJobsJoinAndLeave) {
  AllRolesJoinAndLeave(Mode::kBoundedManyWorkers);
  AllRolesJoinAndLeave(Mode::kUnboundedManyWorkers);
}

// The processes go on with what they have, and tell the next scheduler what it must know.
TEST(Cluster, SchedulersThatAreKilledAreSucceeded) {
  for (const Mode mode : {Mode::kSynchronous, Mode::kLog, Mode::kBounded, Mode::kUnbounded}) {
    const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                            .lasting = seconds(12),
                                            .pause = 0.02,
                                            .cut = 0.03,
                                            .kill_server = HasLog(mode) ? 0.03 : 0,
                                            .kill_scheduler = 0.06});
    ExpectAtLeast(all.successions, 0.8);
    ExpectAtMost(all.restarts, 0.125);
    if (HasFailure()) return;
  }
}

TEST(Cluster, WorkersWithoutABoundTrainEverySampleOnce) {
  const Story::Tally all = TellAll(
      Mode::kUnbounded,
      {.network = kBadNetwork, .lasting = seconds(12), .pause = 0.03, .cut = 0.03, .stop = 0.02});
  ExpectAtLeast(all.pauses, 0.5);
  ExpectAtLeast(all.stops, 0.2);
}

}  // namespace
}  // namespace dt::sim
