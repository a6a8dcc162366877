#include "common/rows/rows_reader.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "test/support/push_maker.h"
#include "test/support/scratch_folder.h"
#include "test/support/tiered_shards.h"

namespace dt::server {
namespace {

constexpr uint32_t kShards = 8;
constexpr Key kKeys = 300;

std::vector<TableSpec> Tables() {
  std::vector<TableSpec> tables = {test::SimpleTable("item", 3, OptimizerKind::kAdam),
                                   test::SimpleTable("user", 1, OptimizerKind::kSgd)};
  tables[0].life.expiry_steps = 10;
  tables[1].life.admission_pushes = 3;
  tables[1].life.sketch_bytes = 4096;
  return tables;
}

// All gradients are 0, so SGD keeps the first values of a row.
std::vector<float> ValuesOf(const TableSpec& table, Key key) {
  std::vector<float> values(table.dim);
  InitialRows(table.init, table.seed, table.id).Fill(key, values);
  return values;
}

class RowsReader : public ::testing::Test {
 protected:
  // Saves a checkpoint of `servers` servers at step 20. "item" has the even keys, because the odd
  // ones have expired; in "user" all keys were pushed twice and the first hundred a third time.
  void Save(uint32_t servers) {
    for (uint32_t i = 0; i < servers; ++i) {
      std::vector<ShardId> shards;
      for (uint32_t s = i; s < kShards; s += servers) shards.emplace_back(s);
      test::TieredShards set(tables_, kShards, shards, folder_ / "tier", 1 << 30);
      for (Step step = 5; step < 20; step += 7) Push(set.shards(), step);
      for (Shard& shard : set.shards().shards()) shard.table(0).expiry().MoveClock(20);
      const auto saved = set.Save(20, {folder_.path(), ProcessId(i), 0});
      ASSERT_TRUE(saved.ok()) << saved.status();
    }
  }
  void Push(ShardSet& set, Step step) const {
    for (uint32_t t = 0; t < 2; ++t) {
      for (Key key = 0; key < kKeys; ++key) {
        if (t == 0 ? (step != 5 && key % 2 == 1) : (step == 19 && key >= 100)) continue;
        for (Shard& shard : set.shards()) {
          if (ShardOf(tables_[t].id, key, kShards) != shard.id()) continue;
          shard.table(t).Push({&key, 1}, std::vector<float>(tables_[t].dim, 0.0f), {.step = step});
        }
      }
    }
  }
  std::vector<std::pair<std::string, Key>> Read() const {
    const auto header = ReadRowsHeader(folder_.path());
    EXPECT_TRUE(header.ok()) << header.status();
    std::vector<std::pair<std::string, Key>> rows;
    const Status read = ForEachRow(folder_.path(), [&](const SavedRow& row) -> Status {
      const auto table = std::ranges::find(header->tables, row.table, &RowsHeader::Table::id);
      EXPECT_NE(table, header->tables.end());
      EXPECT_EQ(row.shard, ShardOf(row.table, row.key, kShards));
      std::vector<float> values(table->dim);
      DT_TRY_STATUS(SavedValues(*table).Read(row.record, values));
      const TableSpec& spec = tables_[table->name == "item" ? 0 : 1];
      EXPECT_TRUE(spec.name != "user" || values == ValuesOf(spec, row.key)) << row.key;
      rows.emplace_back(table->name, row.key);
      return OkStatus();
    });
    EXPECT_TRUE(read.ok()) << read;
    return rows;
  }

  const test::ScratchFolder folder_;
  const std::vector<TableSpec> tables_ = Tables();
};

TEST_F(RowsReader, EveryRowOnceInOneOrder) {
  Save(3);
  const auto rows = Read();
  const std::set<std::pair<std::string, Key>> different(rows.begin(), rows.end());
  EXPECT_EQ(different.size(), rows.size());
  std::map<std::string, uint64_t> counts;
  for (const auto& [table, key] : rows) ++counts[table];
  EXPECT_EQ(counts["item"], kKeys / 2) << "those that are gone are not among them";
  EXPECT_GE(counts["user"], 100u);
  EXPECT_LE(counts["user"], 110u) << "those not admitted neither";
  std::filesystem::remove_all(folder_ / "server-0");
  std::filesystem::remove_all(folder_ / "server-1");
  std::filesystem::remove_all(folder_ / "server-2");
  Save(1);
  EXPECT_EQ(Read(), rows) << "whoever held them";
}

TEST_F(RowsReader, RowsReadAsTheyAreAtTheStepOfTheCheckpoint) {
  std::vector<TableSpec> tables = {test::SimpleTable("item", 3, OptimizerKind::kAdam)};
  tables[0].optimizer.scope = UpdateScope::kDense;
  test::TieredShards set(tables, 1, test::AllShards(1), folder_ / "tier", 1 << 30);
  EmbeddingTable& table = set.shards().shards()[0].table(0);
  const Key key = 5;
  table.Push({&key, 1}, std::vector<float>(3, 0.5f), {.step = 7});
  ASSERT_TRUE(set.Save(20, {folder_.path(), ProcessId(0), 0}).ok());
  std::vector<float> pushed(3), now(3);
  table.Pull({&key, 1}, pushed, 8);
  table.Pull({&key, 1}, now, 20);
  EXPECT_LT(now[0], pushed[0]) << "momentum moves it after its push";

  const auto header = ReadRowsHeader(folder_.path());
  ASSERT_TRUE(header.ok()) << header.status();
  const SavedValues saved(header->tables[0]);
  const Status read = ForEachRow(folder_.path(), [&](const SavedRow& row) -> Status {
    std::vector<float> values(3);
    DT_TRY_STATUS(saved.Read(row.record, values));
    EXPECT_EQ(values, now);
    std::vector<float> state(saved.table().state);
    DT_TRY_STATUS(saved.ReadPushed(row.record, values, state));
    EXPECT_EQ(values, pushed);
    return OkStatus();
  });
  ASSERT_TRUE(read.ok()) << read;
  ShardSet again(test::SetOf(tables, 1, 1, test::AllShards(1)));
  ASSERT_TRUE(LoadRows({folder_.path(), 20, Generation(1)}, again).ok());
  std::vector<float> loaded(3), later(3);
  again.shards()[0].table(0).Pull({&key, 1}, loaded, 33);
  table.Pull({&key, 1}, later, 33);
  EXPECT_EQ(loaded, later) << "and go on as if nothing had been saved";
}

TEST_F(RowsReader, NothingComesBackInAJobThatBringsRowsUpToDate) {
  Save(2);
  std::vector<TableSpec> tables = tables_;
  tables[0].optimizer.scope = UpdateScope::kDense;
  ShardSetOptions options = test::SetOf(tables, 1, kShards, test::AllShards(kShards));
  options.steps_before = 20;
  ShardSet set(std::move(options));
  const TakenParts item{.tables = {{tables[0].id, false, ""}}};
  ASSERT_TRUE(LoadRows({folder_.path(), 0, Generation(1), item}, set).ok());
  uint64_t items = 0;
  for (const Shard& shard : set.shards()) items += shard.table(0).SortedRows().size();
  EXPECT_EQ(items, kKeys / 2);
}

TEST_F(RowsReader, NothingComesBackInOtherShards) {
  Save(2);
  ShardSet set(test::SetOf(tables_, 1, 2 * kShards, test::AllShards(2 * kShards)));
  ASSERT_TRUE(LoadRows({folder_.path(), 20, Generation(1)}, set).ok());
  uint64_t items = 0;
  for (const Shard& shard : set.shards()) items += shard.table(0).rows();
  EXPECT_EQ(items, kKeys / 2);
  // Also without any rule of admission or expiry.
  std::vector<TableSpec> plain = tables_;
  plain[0].life = plain[1].life = {};
  for (const uint32_t shards : {kShards, 2 * kShards}) {
    ShardSet other(test::SetOf(plain, 1, shards, test::AllShards(shards)));
    ASSERT_TRUE(LoadRows({folder_.path(), 20, Generation(1)}, other).ok());
    items = 0;
    for (const Shard& shard : other.shards()) items += shard.table(0).SortedRows().size();
    EXPECT_EQ(items, kKeys / 2);
  }
}

TEST_F(RowsReader, WhatIsMissingIsNamed) {
  EXPECT_EQ(ReadRowsHeader(folder_.path()).status().code(), StatusCode::kDataLoss);
  Save(2);
  std::filesystem::remove_all(folder_ / "server-1");
  const Status status = ForEachRow(folder_.path(), [](const SavedRow&) { return OkStatus(); });
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(MessageOf(status).find("the rows of shard 1 are missing"), std::string::npos) << status;
}

TEST_F(RowsReader, ErrorsOfTheVisitorEndIt) {
  Save(1);
  int visits = 0;
  const Status status = ForEachRow(folder_.path(), [&](const SavedRow&) {
    ++visits;
    return Cancelled("enough");
  });
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(visits, 1);
}

}  // namespace
}  // namespace dt::server
