// Goal: a predicted step includes every process that shares a machine's cores, and the messages
// between processes. Method: the terms of one small model, with more and more processes.
#include <gtest/gtest.h>

#include "scheduler/plan/plan.h"
#include "test/support/tiny_model.h"

namespace dt::scheduler {
namespace {

constexpr uint32_t kCores = 2;
constexpr double kLatency = 1e-4;

PlacementReport PlannedOn(uint32_t servers, uint32_t workers, const MachineShare& machine,
                          bool overlap = true) {
  JobConfig job = test::TinyJob(test::TinyDeepFm());
  job.train.batch_size = 1 << 14;
  job.parallel.overlap = overlap;
  PlacementReport report;
  DeviceProfile profile = DefaultEmulatedProfile(kCores);
  profile.server.latency_seconds = kLatency;
  const PlanRequest request{.job = job,
                            .columns = test::TinyColumns(),
                            .slices = workers,
                            .profile = profile,
                            .servers = servers,
                            .workers = workers,
                            .machine = machine,
                            .report = &report};
  const Result<Plan> plan = MakePlan(request);
  EXPECT_TRUE(plan.ok()) << ToText(plan.status());
  return report;
}

TEST(StepTime, ProcessesOfAMachineShareItsCores) {
  const PlacementReport one = PlannedOn(1, 1, {1, 1, kCores});
  const PlacementReport three = PlannedOn(2, 3, {2, 3, kCores});
  // Each worker has a third of the batch, but all share the same cores: nothing is gained, and
  // there are messages.
  EXPECT_LT(three.step.worker, one.step.worker / 2);
  EXPECT_GT(three.step.machine, 3 * three.placement.prediction.computing[kOnCpu]);
  EXPECT_GE(three.step.step, three.step.machine + three.step.messages);
  EXPECT_GT(three.step.step, one.step.step);
  // Each worker is on its own machine, so other processes need none of its cores.
  const PlacementReport spread = PlannedOn(2, 3, {0, 1, kCores});
  EXPECT_EQ(spread.step.worker, three.step.worker);
  EXPECT_LT(spread.step.machine, three.step.machine / 2);
  EXPECT_LT(spread.step.step, three.step.step);
}

TEST(StepTime, MessagesTakeTheirTimeAndTheCores) {
  const PlacementReport one = PlannedOn(1, 1, {1, 1, kCores});
  EXPECT_DOUBLE_EQ(one.step.messages, 3 * kLatency) << "pull, push, complete";
  const PlacementReport three = PlannedOn(2, 3, {2, 3, kCores});
  EXPECT_DOUBLE_EQ(three.step.messages, 5 * kLatency) << "and two rounds with the other workers";
  const double work = three.step.machine - 3 * three.placement.prediction.computing[kOnCpu];
  EXPECT_GE(work, (3 * 2 * 3 + 2 * 3 * 2) * kLatency / kCores);
}

TEST(StepTime, WithoutOverlapWorkersWaitForServers) {
  const StepTime time = PlannedOn(1, 1, {1, 1, kCores}, false).step;
  EXPECT_GE(time.step, time.worker + time.servers + time.messages);
}

}  // namespace
}  // namespace dt::scheduler
