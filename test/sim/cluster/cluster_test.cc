// Goal: whatever happens to a job, it comes to the end of a job that nothing happened to: the same
// bits, every sample once in every epoch; one owner for each shard, and clocks that never go back.
// Method: the real scheduler, servers, logs, checkpoints and workers on virtual time, with what a
// seed brings upon them; a failing seed is printed and replays.
#include <gtest/gtest.h>

#include "common/base/log.h"
#include "test/sim/cluster/story.h"
#include "test/support/sim_seeds.h"

namespace dt::sim {
namespace {

constexpr uint64_t kSeeds = 75;  // Of each story.

const SimJob& JobOf(Mode mode) {
  static std::map<Mode, std::unique_ptr<SimJob>> jobs;
  std::unique_ptr<SimJob>& job = jobs[mode];
  if (jobs.size() == 1) InitLog({.level = LogLevel::kOff});
  if (job == nullptr) job = std::make_unique<SimJob>(mode);
  return *job;
}

const Ending& Undisturbed(Mode mode) {
  static std::map<Mode, Ending> endings;
  if (!endings.contains(mode)) {
    Story story(0, JobOf(mode));
    std::optional<Ending> ending = story.Tell({});
    EXPECT_TRUE(ending.has_value());
    endings[mode] = ending.value_or(Ending());
  }
  return endings[mode];
}

constexpr NetworkFaults kBadNetwork = {
    .drop = 0.03, .duplicate = 0.03, .late = 0.01, .delay_max = milliseconds(20)};

void TellAll(Mode mode, const Misfortunes& misfortunes, bool same_bits) {
  const Ending& undisturbed = Undisturbed(mode);
  for (const uint64_t seed : SimSeeds(kSeeds)) {
    SCOPED_TRACE(Repeat(seed));
    Story story(seed, JobOf(mode));
    const std::optional<Ending> ending = story.Tell(misfortunes);
    if (ending.has_value()) {
      ExpectEverySampleOnce(*ending);
      if (same_bits) {
        EXPECT_EQ(ending->checksums, undisturbed.checksums);
        EXPECT_EQ(ending->history, undisturbed.history);
        EXPECT_EQ(ending->counts, undisturbed.counts);
      }
    }
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "what befell it:\n" << story.text();
      return;
    }
  }
}

TEST(Cluster, UndisturbedJobsTrainEverySampleOnce) {
  for (const Mode mode : {Mode::kSynchronous, Mode::kLog, Mode::kBounded, Mode::kUnbounded}) {
    SCOPED_TRACE(NameOf(mode));
    ExpectEverySampleOnce(Undisturbed(mode));
  }
  EXPECT_EQ(Undisturbed(Mode::kLog).checksums, Undisturbed(Mode::kSynchronous).checksums);
}

TEST(Cluster, KilledAndStoppedJobsGoOnFromTheirCheckpoints) {
  TellAll(Mode::kSynchronous,
          {.network = kBadNetwork,
           .lasting = seconds(12),
           .pause = 0.02,
           .cut = 0.03,
           .kill = 0.03,
           .stop = 0.02},
          true);
}

TEST(Cluster, ServersThatKeepALogComeBack) {
  TellAll(Mode::kLog,
          {.network = kBadNetwork,
           .lasting = seconds(12),
           .pause = 0.02,
           .cut = 0.03,
           .kill_server = 0.06,
           .full_disk = 0.03},
          true);
}

TEST(Cluster, AsynchronousWorkersTrainEverySampleOnce) {
  TellAll(
      Mode::kBounded,
      {.network = kBadNetwork, .lasting = seconds(12), .pause = 0.02, .cut = 0.03, .stop = 0.02},
      false);
}

TEST(Cluster, WorkersWithoutABoundTrainEverySampleOnce) {
  TellAll(
      Mode::kUnbounded,
      {.network = kBadNetwork, .lasting = seconds(12), .pause = 0.02, .cut = 0.03, .stop = 0.02},
      false);
}

}  // namespace
}  // namespace dt::sim
