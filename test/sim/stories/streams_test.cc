// Goal: a job that trains on a stream trains each message once, whatever happens to its processes
// and to the brokers. Method: stories (story.h) of a topic that grows while they are told.
#include <gtest/gtest.h>

#include "test/sim/stories/stories.h"

namespace dt::sim {
namespace {

class Streams : public ::testing::TestWithParam<Mode> {};

INSTANTIATE_TEST_SUITE_P(All, Streams, ::testing::Values(Mode::kStream, Mode::kBoundedStream),
                         [](const auto& mode) {
                           return mode.param == Mode::kStream ? "Synchronous" : "Bounded";
                         });

TEST_P(Streams, BrokersThatAreAwayAreWaitedFor) {
  const Story::Tally all = TellAll(GetParam(), {.network = kBadNetwork,
                                                .lasting = seconds(20),
                                                .pause = 0.02,
                                                .cut = 0.02,
                                                .stop_brokers = 0.02});
  ExpectAtLeast(all.outages, 1);
  ExpectAtLeast(all.windows, 3);
  ExpectAtMost(all.restarts, 0);
}

// Servers and the scheduler are lost, too, and workers come back.
TEST_P(Streams, AllRolesJoinAndLeave) {
  const Story::Tally all = TellAll(GetParam(), {.network = kBadNetwork,
                                                .lasting = seconds(30),
                                                .from_step = 1,
                                                .pause = 0.02,
                                                .cut = 0.02,
                                                .kill_server = 0.02,
                                                .kill_scheduler = 0.03,
                                                .add_worker = 0.05,
                                                .release_worker = 0.03,
                                                .changes_max = 6,
                                                .lose_worker = 0.05,
                                                .worker_returns = 0.8,
                                                .stop_brokers = 0.01,
                                                .kills_max = 6});
  ExpectAtLeast(all.views, 1);
  ExpectAtLeast(all.successions, 0.3);
  ExpectAtMost(all.restarts, 0.15);
}

// The messages since the checkpoint are trained on again, by a model that has not seen them.
TEST_P(Streams, JobsReturnToTheirLastCheckpointByThemselves) {
  const Story::Tally all = TellAll(GetParam(), {.network = kBadNetwork,
                                                .lasting = seconds(30),
                                                .pause = 0.02,
                                                .cut = 0.02,
                                                .kill_and_start = 0.02,
                                                .stop_brokers = 0.01});
  ExpectAtLeast(all.returns, 0.5);
  ExpectAtMost(all.restarts, 0.1);
}

TEST_P(Streams, KilledAndStoppedJobsGoOnFromTheirCheckpoints) {
  const Story::Tally all = TellAll(
      GetParam(),
      {.network = kBadNetwork, .lasting = seconds(30), .pause = 0.02, .kill = 0.02, .stop = 0.02});
  ExpectAtLeast(all.restarts, 0.8);
}

}  // namespace
}  // namespace dt::sim
