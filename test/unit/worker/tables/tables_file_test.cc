// Goal: workers and servers can both read a worker's saved tables. Method: a checkpoint with one
// table of a server and another table of a worker.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "common/rows/rows_reader.h"
#include "test/support/scratch_folder.h"
#include "test/support/tiered_shards.h"
#include "worker/tables/worker_tables.h"

namespace dt::worker {
namespace {

constexpr uint32_t kShards = 4;
constexpr Step kStep = 6;

TableConfig ConfigOf(const std::string& name, uint32_t dim) {
  TableConfig table;
  table.name = name;
  table.id = TableIdOf(name);
  table.dim = dim;
  table.init = {InitKind::kUniform, 1.0f};
  return table;
}

server::TableSpec SpecOf(const TableConfig& table) {
  server::TableSpec spec = test::SimpleTable(table.name, table.dim);
  spec.init = table.init;
  spec.optimizer = table.optimizer;
  spec.on_worker = table.on_worker();
  return spec;
}

class TablesFile : public ::testing::Test {
 protected:
  TablesFile() {
    job_.model.tables = {ConfigOf("item", 3), ConfigOf("user", 2)};
    job_.model.tables[0].device = Device::kCpu;
  }

  // A plan with "item" on the worker.
  Plan PlanOf() const {
    Plan plan;
    plan.seed = test::SimpleTable("item", 3).seed;
    plan.graph.AddValue({.name = "table(item)", .kind = ValueKind::kTable});
    plan.graph.AddValue({.name = "rows(item)"});
    plan.graph.tables = {
        {.name = "item", .id = TableIdOf("item"), .dim = 3, .rows = 1, .store = 0}};
    Node update;
    update.op = "update_rows";
    update.inputs = {0};
    plan.graph.nodes = {update};
    return plan;
  }
  std::unique_ptr<WorkerTables> Tables() const {
    return WorkerTables::Create(PlanOf(), job_, 0, nullptr).value();
  }
  test::TieredShards Servers(const std::string& name) const {
    std::vector<server::TableSpec> specs;
    for (const TableConfig& table : job_.model.tables) specs.push_back(SpecOf(table));
    std::vector<ShardId> ids;
    for (uint32_t s = 0; s < kShards; ++s) ids.emplace_back(s);
    return {std::move(specs), kShards, std::move(ids), folder_ / name, 64 << 20};
  }
  // Saves rows of "user" on the server and rows of "item" here.
  std::vector<CheckpointFile> Save(WorkerTables& tables) {
    test::TieredShards servers = Servers("live");
    for (Step step = 0; step < kStep; ++step) {
      EXPECT_TRUE(servers.Push(1, step, {{step, {1.0f, 2.0f}}}));
    }
    EXPECT_TRUE(servers.Save(kStep, {checkpoint_, ProcessId(1), 0}).ok());
    LookupPlan slice;
    slice.batch.step = 4;
    slice.tables = {{7, 8, ~uint64_t{0}, 1'000'000'007}};
    EXPECT_TRUE(tables.Bind(slice, LookupFor::kTrain).ok());
    auto files = tables.Save({checkpoint_, 0, kStep, kShards});
    EXPECT_TRUE(files.ok()) << files.status();
    return files.value_or(std::vector<CheckpointFile>());
  }

  const test::ScratchFolder folder_;
  const std::string checkpoint_ = folder_ / "checkpoint";
  JobConfig job_;
};

TEST_F(TablesFile, IsReadByWorkers) {
  const auto tables = Tables();
  const std::vector<CheckpointFile> files = Save(*tables);
  ASSERT_FALSE(files.empty());
  for (const CheckpointFile& file : files) {
    EXPECT_TRUE(file.name.starts_with("worker-0/rows-0/"));
    EXPECT_EQ(std::filesystem::file_size(checkpoint_ + "/" + file.name), file.bytes);
  }
  EXPECT_FALSE(std::filesystem::exists(checkpoint_ + "/worker-0/draft"));
  const auto copy = Tables();
  ASSERT_TRUE(copy->Load(checkpoint_, kStep).ok());
  const TableReport want = tables->Reports().value()[0], got = copy->Reports().value()[0];
  EXPECT_EQ(got.rows, 4u);
  EXPECT_EQ(got.checksum_low, want.checksum_low);
  EXPECT_EQ(got.checksum_high, want.checksum_high);
}

TEST_F(TablesFile, IsReadByServersAndByPeople) {
  const auto tables = Tables();
  Save(*tables);
  size_t items = 0, users = 0;
  ASSERT_TRUE(ForEachRow(checkpoint_, [&](const SavedRow& row) {
                ++(row.table == TableIdOf("item") ? items : users);
                return OkStatus();
              }).ok());
  EXPECT_EQ(items, 4u);
  EXPECT_EQ(users, kStep);

  // With "item" on the worker, a server has only the other table; with "item" on servers it has
  // both.
  test::TieredShards beside = Servers("beside");
  ASSERT_TRUE(beside.Load(checkpoint_, kStep).ok());
  job_.model.tables[0].device = Device::kPs;
  test::TieredShards both = Servers("both");
  ASSERT_TRUE(both.Load(checkpoint_, kStep).ok());
  uint64_t own = 0, all = 0;
  for (uint32_t s = 0; s < kShards; ++s) {
    own += beside.shards().shards()[s].table(0).rows();
    all += both.shards().shards()[s].table(0).rows();
  }
  EXPECT_EQ(own, 0u);
  EXPECT_EQ(all, 4u);
  std::vector<float> initial(3);
  InitialRows(job_.model.tables[0].init, test::SimpleTable("item", 3).seed, TableIdOf("item"))
      .Fill(8, initial);
  // The row was created on the worker but never updated, so it is not in the checkpoint.
  EXPECT_EQ(both.Pull(0, 8), initial);
}

TEST_F(TablesFile, WhatDoesNotFitIsRefused) {
  const auto tables = Tables();
  Save(*tables);
  EXPECT_EQ(tables->Load(checkpoint_, kStep + 1).code(), StatusCode::kDataLoss);
  job_.model.tables[0].dim = 4;
  const Status other = Tables()->Load(checkpoint_, kStep);
  EXPECT_EQ(other.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(ToText(other).find("table item was saved with dim 3"), std::string::npos) << other;
  for (const auto& file : std::filesystem::directory_iterator(checkpoint_ + "/worker-0/rows-0")) {
    if (file.path().extension() == ".sst") std::ofstream(file.path()) << "nothing";
  }
  EXPECT_FALSE(tables->Load(checkpoint_, kStep).ok());
}

}  // namespace
}  // namespace dt::worker
