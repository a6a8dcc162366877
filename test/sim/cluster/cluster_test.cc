// Goal: whatever happens to a job, it comes to the end of a job that nothing happened to: the same
// bits, every sample once in every epoch; one owner for each shard, and clocks that never go back.
// Method: the real scheduler, servers, logs, checkpoints and workers on virtual time, with what a
// seed brings upon them; a failing seed is printed and replays.
#include <gtest/gtest.h>

#include "test/sim/cluster/story.h"
#include "test/support/sim_seeds.h"

namespace dt::sim {
namespace {

constexpr uint64_t kSeeds = 80;  // Of each story.
constexpr NetworkFaults kBadNetwork = {
    .drop = 0.03, .duplicate = 0.03, .late = 0.01, .delay_max = milliseconds(20)};

// Servers with a log are killed and meet full disks.
constexpr Misfortunes kKilledServers = {.network = kBadNetwork,
                                        .lasting = seconds(12),
                                        .pause = 0.02,
                                        .cut = 0.03,
                                        .kill_server = 0.06,
                                        .full_disk = 0.03};

// What befell all of them together.
Story::Tally TellAll(Mode mode, const Misfortunes& misfortunes) {
  Story::Tally all;
  for (const uint64_t seed : SimSeeds(kSeeds)) {
    SCOPED_TRACE(Repeat(seed));
    Story story(seed, JobOf(mode));
    ExpectAsPromised(mode, misfortunes, story);
    all += story.tally();
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "what befell it:\n" << story.text();
      break;
    }
  }
  return all;
}

// A simulation in which little happens shows little. `shares`: of the number of seeds.
void ExpectAtLeast(uint32_t count, double share) {
  EXPECT_GE(count, share * static_cast<double>(SimSeeds(kSeeds).size()) - 1);
}

TEST(Cluster, ALogChangesNoBits) {
  EXPECT_EQ(Undisturbed(Mode::kLog), Undisturbed(Mode::kSynchronous));
}

TEST(Cluster, CopiesChangeNoBits) {
  EXPECT_EQ(Undisturbed(Mode::kChains), Undisturbed(Mode::kSynchronous));
}

// Every message of a story, to the nanosecond.
TEST(Cluster, ASeedReplays) {
  for (const Mode mode : {Mode::kSynchronous, Mode::kLog, Mode::kBounded, Mode::kUnbounded,
                          Mode::kBoundedLog, Mode::kChains, Mode::kBoundedChains}) {
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

// Shards go to servers that join, and leave servers that are drained, while training goes on.
TEST(Cluster, ServersJoinAndAreDrained) {
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
    EXPECT_LE(all.restarts, SimSeeds(kSeeds).size() / 4) << NameOf(mode);
    if (HasFailure()) return;
  }
}

// Servers that are lost; the others have all that was acknowledged. Others take their places.
TEST(Cluster, ChainsOutliveTheirServers) {
  for (const Mode mode : {Mode::kChains, Mode::kBoundedChains}) {
    const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                            .lasting = seconds(12),
                                            .pause = 0.02,
                                            .cut = 0.03,
                                            .kill_server = 0.05,
                                            .kill_scheduler = 0.02,
                                            .kills_max = 2});
    ExpectAtLeast(all.removals, 0.8);
    EXPECT_LE(all.suspects, SimSeeds(kSeeds).size() / 16) << "whoever is of use is not suspected";
    EXPECT_LE(all.restarts, SimSeeds(kSeeds).size() / 4) << NameOf(mode);
    if (HasFailure()) return;
  }
}

// A server that still sends heartbeats is lost all the same when one of its threads hangs.
TEST(Cluster, ServersThatHangAreNoticed) {
  for (const Mode mode : {Mode::kChains, Mode::kBoundedChains}) {
    const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                            .lasting = seconds(12),
                                            .pause = 0.02,
                                            .cut = 0.03,
                                            .hang_server = 0.05,
                                            .kills_max = 2});
    ExpectAtLeast(all.suspects, 0.8);
    EXPECT_LE(all.restarts, SimSeeds(kSeeds).size() / 8) << NameOf(mode);
    if (HasFailure()) return;
  }
}

// A server that the scheduler hears, and nobody else reaches.
TEST(Cluster, ServersThatNobodyReachesAreNoticed) {
  for (const Mode mode : {Mode::kChains, Mode::kBoundedChains}) {
    const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                            .lasting = seconds(12),
                                            .pause = 0.02,
                                            .cut = 0.03,
                                            .isolate_server = 0.05,
                                            .kills_max = 2});
    ExpectAtLeast(all.suspects, 0.6);
    EXPECT_LE(all.restarts, SimSeeds(kSeeds).size() / 8) << NameOf(mode);
    if (HasFailure()) return;
  }
}

// A process that has the addresses of a server shows that the server is gone.
TEST(Cluster, ServersThatAreRestartedAreNoticedBeforeTheirLeasesEnd) {
  for (const Mode mode : {Mode::kChains, Mode::kBoundedChains}) {
    const Story::Tally all = TellAll(mode, {.network = kBadNetwork,
                                            .lasting = seconds(12),
                                            .pause = 0.02,
                                            .cut = 0.03,
                                            .restart_server = 0.05,
                                            .kills_max = 2});
    ExpectAtLeast(all.removals, 0.8);
    ExpectAtLeast(all.quick, 0.6);
    EXPECT_LE(all.restarts, SimSeeds(kSeeds).size() / 8) << NameOf(mode);
    if (HasFailure()) return;
  }
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
    EXPECT_LE(all.restarts, SimSeeds(kSeeds).size() / 8) << NameOf(mode);
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
