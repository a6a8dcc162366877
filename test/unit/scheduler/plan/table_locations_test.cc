// Goal: tables without a rule are placed where the predicted step is shortest, within the workers'
// memory; tables of unknown size are on servers. Method: the choice is compared with all others,
// written as tags of the tables.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "scheduler/plan/plan.h"
#include "test/support/tiny_model.h"

namespace dt::scheduler {
namespace {

using test::TinyAccelerator;
using test::TinyColumns;
using test::TinyNode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A job with a lookup in each of `tables` tables, whose sum is the logit.
JobConfig JobWith(uint32_t tables) {
  std::vector<NodeConfig> nodes;
  std::vector<std::string> names;
  for (uint32_t t = 0; t < tables; ++t) {
    names.push_back(fmt::format("e{}", t));
    nodes.push_back(TinyNode(names.back(), t % 2 == 0 ? "lookup" : "bag",
                             {t % 2 == 0 ? "C1" : "tags"}, {{"table", fmt::format("t{}", t)}}));
  }
  nodes.push_back(TinyNode("logit", "mlp", names, {{"units", std::vector<int64_t>{8, 1}}}));
  JobConfig job = test::TinyJob(std::move(nodes));
  job.model.tables.clear();
  for (uint32_t t = 0; t < tables; ++t) {
    TableConfig table;
    table.name = fmt::format("t{}", t);
    table.id = TableIdOf(table.name);
    table.dim = 4 + 12 * (t % 3);
    table.expected_rows = 1000 << t;
    job.model.tables.push_back(table);
  }
  job.train.batch_size = 512;
  job.cluster.devices = AcceleratorChoice::kEmulated;
  return job;
}

DeviceProfile WithServers(double row_seconds) {
  DeviceProfile profile = DefaultEmulatedProfile(1);
  profile.server = {"", 1e-6, row_seconds, 1e10};
  return profile;
}

struct Planned {
  Graph graph;
  PlacementReport report;

  double seconds() const {
    return std::max(report.step.worker + report.step.exchange, report.step.servers);
  }
  std::vector<std::string> on_worker() const {
    std::vector<std::string> names;
    for (const TableUse& table : graph.tables) {
      if (table.store != kNone) names.push_back(table.name);
    }
    return names;
  }
};

Planned PlannedOf(PlanRequest request) {
  Planned made;
  request.report = &made.report;
  const Result<Plan> plan = MakePlan(request);
  EXPECT_TRUE(plan.ok()) << ToText(plan.status());
  if (plan.ok()) made.graph = plan->graph;
  return made;
}

Planned PlannedOf(const JobConfig& job, const DeviceProfile& profile, uint32_t slices = 1) {
  PlanRequest request{job, TinyColumns(), slices};
  request.accelerator = TinyAccelerator();
  request.profile = profile;
  request.servers = job.cluster.servers;
  request.workers = job.cluster.workers;
  return PlannedOf(request);
}

// The shortest predicted step of all ways to tag the tables.
double BestTagged(JobConfig job, const DeviceProfile& profile, std::vector<Device> devices) {
  double best = 1e9;
  const size_t count = job.model.tables.size();
  std::vector<size_t> choice(count, 0);
  while (true) {
    for (size_t t = 0; t < count; ++t) job.model.tables[t].device = devices[choice[t]];
    best = std::min(best, PlannedOf(job, profile).seconds());
    size_t t = 0;
    while (t < count && ++choice[t] == devices.size()) choice[t++] = 0;
    if (t == count) return best;
  }
}

TEST(TableLocations, TheChoiceIsTheBestByTheModel) {
  size_t there = 0, here = 0;
  for (const double row_seconds : {1e-9, 2e-8, 1e-7, 1e-6}) {
    for (const uint32_t tables : {1u, 2u, 3u}) {
      const JobConfig job = JobWith(tables);
      const Planned chosen = PlannedOf(job, WithServers(row_seconds));
      const double best =
          BestTagged(job, WithServers(row_seconds), {Device::kPs, Device::kCpu, Device::kGpu});
      EXPECT_NEAR(chosen.seconds(), best, 1e-9 * best) << tables << " tables, " << row_seconds;
      here += chosen.on_worker().size();
      there += tables - chosen.on_worker().size();
    }
  }
  EXPECT_GT(there, 0u);
  EXPECT_GT(here, 0u);
}

TEST(TableLocations, OfManyTablesItIsNeverWorseThanAllHereOrAllThere) {
  for (const double row_seconds : {1e-9, 2e-8, 5e-8, 1e-6}) {
    JobConfig job = JobWith(7);
    const double chosen = PlannedOf(job, WithServers(row_seconds)).seconds();
    EXPECT_LE(chosen, BestTagged(job, WithServers(row_seconds), {Device::kPs, Device::kCpu}) * 1.05)
        << row_seconds;
    for (const Device device : {Device::kPs, Device::kCpu}) {
      for (TableConfig& table : job.model.tables) table.device = device;
      EXPECT_LE(chosen, PlannedOf(job, WithServers(row_seconds)).seconds() * (1 + 1e-9));
    }
  }
}

TEST(TableLocations, WhoseRowsNobodyKnowsStayOnServers) {
  JobConfig job = JobWith(2);
  for (TableConfig& table : job.model.tables) table.expected_rows = 0;
  PlanRequest request{job, TinyColumns()};
  request.profile = WithServers(1);
  const Planned unknown = PlannedOf(request);
  EXPECT_THAT(unknown.on_worker(), IsEmpty());
  EXPECT_THAT(unknown.report.table_why.at("t0"), HasSubstr("nobody says how many rows"));

  // The numbers of rows are known from the data, or from the job file.
  request.data_stats = {{"C1", {.distinct = 50}}, {"C2", {.distinct = 7}}};
  const Planned counted = PlannedOf(request);
  EXPECT_THAT(counted.on_worker(), ElementsAre("t0"));
  EXPECT_EQ(counted.graph.tables[0].expected_rows, 50u);
  EXPECT_EQ(counted.graph.tables[1].expected_rows, 0u);
  job.model.tables[1].keys_end = 9;
  EXPECT_THAT(PlannedOf(request).on_worker(), ElementsAre("t0", "t1"));
}

TEST(TableLocations, WhatOnlyServersDoStaysThere) {
  const auto why = [](auto change) {
    JobConfig job = JobWith(2);
    change(job);
    const Planned planned = PlannedOf(job, WithServers(1));
    EXPECT_EQ(std::ranges::count(planned.on_worker(), "t1"), 0);
    return planned.report.table_why.at("t1");
  };
  EXPECT_EQ(why([](JobConfig& job) { job.model.tables[1].life.admission_pushes = 3; }),
            "auto, for its admission");
  EXPECT_EQ(why([](JobConfig& job) { job.model.tables[1].life.expiry_steps = 3; }),
            "auto, for its expiry");
  EXPECT_EQ(why([](JobConfig& job) { job.model.tables[1].dtype = FloatFormat::kBf16; }),
            "auto, for its dtype");
  EXPECT_EQ(why([](JobConfig& job) { job.model.tables[1].wire = FloatFormat::kBf16; }),
            "auto, for its wire");
  EXPECT_EQ(why([](JobConfig& job) { job.train.staleness = 2; }),
            "auto, with train.staleness above 0");
  EXPECT_THAT(why([](JobConfig& job) { job.model.tables[1].expected_rows = uint64_t{1} << 40; }),
              HasSubstr("more than"));
}

TEST(TableLocations, WorkersMemoryIsNotExceeded) {
  JobConfig job = JobWith(2);  // Tables of 1,000 rows of 12 floats and 2,000 rows of 48.
  job.cluster.devices = AcceleratorChoice::kCpu;
  job.cluster.worker.memory_bytes = 400'000;
  const Planned both = PlannedOf(job, WithServers(1));
  EXPECT_THAT(both.on_worker(), ElementsAre("t1"));
  EXPECT_THAT(both.report.table_why.at("t0"), HasSubstr("does not fit on the worker"));
  job.cluster.worker.memory_bytes = 100'000;
  const Planned small = PlannedOf(job, WithServers(1));
  EXPECT_THAT(small.on_worker(), ElementsAre("t0"));
  EXPECT_EQ(small.report.table_why.at("t1"),
            "auto: its 375 KiB are more than cluster.worker.memory, 97.7 KiB");
}

// Exchanges between workers may cost more than requests to servers.
TEST(TableLocations, RowsThatWorkersExchangeCount) {
  JobConfig job = JobWith(1);
  DeviceProfile profile = WithServers(1e-7);
  profile.server.bytes = 1e8;
  EXPECT_THAT(PlannedOf(job, profile).on_worker(), ElementsAre("t0"));
  job.cluster.workers = 8;
  job.cluster.servers = 8;
  EXPECT_THAT(PlannedOf(job, profile, 8).on_worker(), IsEmpty());
  EXPECT_EQ(PlannedOf(job, profile, 8).report.step.exchange, 0);
  job.model.tables[0].device = Device::kCpu;
  // There are 512 rows of 4 floats, of which each worker receives seven eighths.
  EXPECT_NEAR(PlannedOf(job, profile, 8).report.step.exchange, 512 * 16 * 7 / 8 / 1e8, 1e-9);
}

TEST(TableLocations, TagsHold) {
  JobConfig job = JobWith(2);
  job.model.tables[0].device = Device::kPs;
  job.model.tables[1].device = Device::kGpu;
  const Planned planned = PlannedOf(job, WithServers(1));
  EXPECT_THAT(planned.on_worker(), ElementsAre("t1"));
  EXPECT_THAT(planned.report.table_why, IsEmpty());
}

}  // namespace
}  // namespace dt::scheduler
