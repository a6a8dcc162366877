// Goal: servers that have copies of shards may be lost, hang, join and be drained, and the job
// comes to the end of a job that nothing happened to. Method: that of cluster_test.cc.
#include <gtest/gtest.h>

#include "test/sim/stories/stories.h"

namespace dt::sim {
namespace {

// Shards go to servers that join, and leave servers that are drained, while training goes on.
TEST(Chains, ServersJoinAndAreDrained) {
  for (const Mode mode : {Mode::kSynchronous, Mode::kBounded, Mode::kChains}) {
    const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                            .lasting = seconds(12),
                                            .pause = 0.02,
                                            .cut = 0.03,
                                            .kill_scheduler = 0.02,
                                            .add_server = 0.06,
                                            .drain_server = 0.06});
    ExpectAtLeast(all.changes, 1.5);
    ExpectAtLeast(all.moves, 1);
    ExpectAtLeast(all.givers, 1);
    ExpectAtMost(all.restarts, 0.25);
    if (HasFailure()) return;
  }
}

// Servers that are lost; the others have all that was acknowledged. Others take their places.
TEST(Chains, ChainsOutliveTheirServers) {
  for (const Mode mode : {Mode::kChains, Mode::kBoundedChains}) {
    const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                            .lasting = seconds(12),
                                            .pause = 0.02,
                                            .cut = 0.03,
                                            .kill_server = 0.05,
                                            .kill_scheduler = 0.02,
                                            .kills_max = 2});
    ExpectAtLeast(all.removals, 0.8);
    ExpectAtMost(all.suspects, 0.0625);  // whoever is of use is not suspected
    ExpectAtMost(all.restarts, 0.25);
    if (HasFailure()) return;
  }
}

// A job is at its end when its last checkpoint is written and its servers have reported.
TEST(Chains, ServersAreLostAtTheEndOfTheJob) {
  for (const Mode mode : {Mode::kChains, Mode::kBoundedChains, Mode::kLoggedChains}) {
    const Story::Tally all = TellAll(mode, {.network = kFairNetwork,
                                            .lasting = seconds(60),
                                            .from_step = 9,
                                            .kill_server = 0.2,
                                            .kill_scheduler = 0.1,
                                            .hang_server = 0.05,
                                            .restart_server = 0.05,
                                            .add_server = 0.1,
                                            .drain_server = 0.1,
                                            .kills_max = 2});
    ExpectAtLeast(all.removals, 0.3);
    ExpectAtMost(all.restarts, 0.25);
    if (HasFailure()) return;
  }
}

// What was copied of the last model is nothing of the best one.
TEST(Chains, TheBestIsRestoredWhileShardsMove) {
  for (const Mode mode : {Mode::kRestoredChains, Mode::kBoundedRestoredChains}) {
    const Story::Tally all = TellAll(mode, {.network = kFairNetwork,
                                            .lasting = seconds(60),
                                            .from_step = 7,
                                            .kill_server = 0.02,
                                            .kill_scheduler = 0.02,
                                            .add_server = 0.3,
                                            .drain_server = 0.3,
                                            .changes_max = 12,
                                            .kills_max = 2});
    ExpectAtLeast(all.changes, 3);
    ExpectAtLeast(all.moves, 1);
    ExpectAtMost(all.restarts, 0.25);
    if (HasFailure()) return;
  }
}

// Whoever fails has answered the order to save, and its rows are not waited for.
TEST(Chains, ServersFailInTheMiddleOfCheckpoints) {
  for (const Mode mode : {Mode::kChains, Mode::kBoundedChains}) {
    const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                            .lasting = seconds(12),
                                            .pause = 0.05,
                                            .cut = 0.05,
                                            .fail_server = 0.5,
                                            .kills_max = 2});
    ExpectAtLeast(all.removals, 0.1);
    ExpectAtMost(all.restarts, 0.25);
    if (HasFailure()) return;
  }
}

// Servers that keep a log as well: all members of a chain may be lost at once.
TEST(Chains, ChainsWithLogsOutliveAllTheirServers) {
  for (const Mode mode : {Mode::kLoggedChains, Mode::kBoundedLoggedChains}) {
    const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                            .lasting = seconds(12),
                                            .pause = 0.02,
                                            .cut = 0.03,
                                            .kill_server = 0.08,
                                            .kill_scheduler = 0.02,
                                            .full_disk = 0.02,
                                            .kills_max = 5});
    ExpectAtLeast(all.removals, 0.8);
    ExpectAtLeast(all.recoveries, 0.2);
    ExpectAtMost(all.restarts, 0.125);
    if (HasFailure()) return;
  }
}

// What is copied is in the log of the server that gets it before the other lets go.
TEST(Chains, ServersThatKeepALogJoinAndAreDrained) {
  for (const Mode mode : {Mode::kLog, Mode::kBoundedLog, Mode::kLoggedChains}) {
    const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                            .lasting = seconds(12),
                                            .pause = 0.02,
                                            .cut = 0.03,
                                            .kill_server = 0.04,
                                            .kill_scheduler = 0.02,
                                            .add_server = 0.06,
                                            .drain_server = 0.06});
    ExpectAtLeast(all.changes, 1.5);
    ExpectAtLeast(all.moves, 1);
    ExpectAtMost(all.restarts, 0.25);
    if (HasFailure()) return;
  }
}

// A server that still sends heartbeats is lost all the same when one of its threads hangs.
TEST(Chains, ServersThatHangAreNoticed) {
  for (const Mode mode : {Mode::kChains, Mode::kBoundedChains}) {
    const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                            .lasting = seconds(12),
                                            .pause = 0.02,
                                            .cut = 0.03,
                                            .hang_server = 0.05,
                                            .kills_max = 2});
    ExpectAtLeast(all.suspects, 0.8);
    ExpectAtMost(all.restarts, 0.125);
    if (HasFailure()) return;
  }
}

// A server that the scheduler hears, and nobody else reaches.
TEST(Chains, ServersThatNobodyReachesAreNoticed) {
  for (const Mode mode : {Mode::kChains, Mode::kBoundedChains}) {
    const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                            .lasting = seconds(12),
                                            .pause = 0.02,
                                            .cut = 0.03,
                                            .isolate_server = 0.05,
                                            .kills_max = 2});
    ExpectAtLeast(all.suspects, 0.6);
    ExpectAtMost(all.restarts, 0.125);
    if (HasFailure()) return;
  }
}

// A process that has the addresses of a server shows that the server is gone.
TEST(Chains, ServersThatAreRestartedAreNoticedBeforeTheirLeasesEnd) {
  for (const Mode mode : {Mode::kChains, Mode::kBoundedChains}) {
    const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                            .lasting = seconds(12),
                                            .pause = 0.02,
                                            .cut = 0.03,
                                            .restart_server = 0.05,
                                            .kills_max = 2});
    ExpectAtLeast(all.removals, 0.8);
    ExpectAtLeast(all.quick, 0.6);
    ExpectAtMost(all.restarts, 0.125);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace dt::sim
