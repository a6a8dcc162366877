// Goal: every float of every dense array has one place in the blocks, whatever shard its block is
// in. Method: values that name their place; a planner says in which order the blocks are rows.
#include "worker/train/dense_blocks.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/dense_tables.h"
#include "scheduler/plan/plan.h"
#include "test/support/tiny_model.h"

namespace dt::worker {
namespace {

constexpr uint32_t kWorkers = 4;

// So wide that the trained parameters fill several blocks.
JobConfig WideJob() {
  using Ints = std::vector<int64_t>;
  JobConfig job = test::TinyJob({
      test::TinyNode("deep", "mlp", {"I1"}, {{"units", Ints{300, 20}}, {"batch_norm", true}}, 1),
      test::TinyNode("logit", "dense", {"deep"}, {{"units", int64_t{1}}}, 2),
  });
  job.model.tables.clear();
  job.train.staleness = 3;
  return job;
}
std::vector<ColumnSpec> Columns() {
  return {test::TinyColumn("label", ColumnType::kFloat, ColumnRole::kLabel),
          test::TinyColumn("I1", ColumnType::kFloat)};
}

class DenseBlocksTest : public ::testing::Test {
 protected:
  DenseBlocksTest() {
    const std::vector<DenseBlockTable> tables = blocks_.tables();
    std::vector<uint32_t> wire;
    for (const DenseBlockTable& table : tables) wire.push_back(table.wire);
    LookupPlanner(engine_->plan(), 8, wire, tables).FillFixed(plan_);
  }
  std::vector<Parameters::Array>& arrays() { return engine_->parameters().arrays(); }
  // Arrays of one kind, in the plan's order.
  std::vector<size_t> ArraysOf(bool trained) {
    std::vector<size_t> of;
    const std::vector<ParameterSpec>& parameters = engine_->plan().graph.parameters;
    for (size_t p = 0; p < parameters.size(); ++p) {
      if (trained ? parameters[p].pushed != kNone : !parameters[p].trained) of.push_back(p);
    }
    return of;
  }
  // Rows of both tables, as a pull gives them: value i of a table is first + i, in key order.
  std::vector<std::vector<float>> RowsFrom(float first) const {
    std::vector<std::vector<float>> rows;
    for (const std::vector<Key>& keys : plan_.tables) {
      std::vector<float>& values = rows.emplace_back();
      for (const Key key : keys) {
        for (uint32_t c = 0; c < kDenseBlockFloats; ++c) {
          values.push_back(first + static_cast<float>(key * kDenseBlockFloats + c));
        }
      }
    }
    return rows;
  }
  void Take(const std::vector<std::vector<float>>& rows) {
    const std::vector<std::span<const float>> spans(rows.begin(), rows.end());
    blocks_.Take(plan_, spans);
  }

  const JobConfig job_ = WideJob();
  TaskPool pool_{1};
  const std::unique_ptr<Engine> engine_ =
      Engine::Create(scheduler::MakePlan({job_, Columns(), 1}).value(), {.pool = pool_}).value();
  DenseBlocks blocks_{job_, *engine_};
  LookupPlan plan_;
};

TEST_F(DenseBlocksTest, TablesHaveAsManyBlocksAsTheirArraysFill) {
  const std::vector<DenseBlockTable> tables = blocks_.tables();
  ASSERT_EQ(tables.size(), 2u);
  for (const bool trained : {true, false}) {
    size_t floats = 0;
    for (const size_t a : ArraysOf(trained)) floats += arrays()[a].values.size();
    ASSERT_GT(floats, 0u);
    const DenseBlockTable& table = tables[trained ? 0 : 1];
    std::vector<Key> keys((floats + kDenseBlockFloats - 1) / kDenseBlockFloats);
    std::iota(keys.begin(), keys.end(), Key{0});
    EXPECT_EQ(table.keys, keys);
    EXPECT_EQ(table.dim, kDenseBlockFloats);
    EXPECT_EQ(table.wire, job_.model.tables.size() + (trained ? 0 : 1));
  }
  EXPECT_GT(tables[0].keys.size(), 4u);
  EXPECT_FALSE(std::ranges::is_sorted(plan_.tables[0])) << "rows are in the order of shards";
}

TEST_F(DenseBlocksTest, TakenValuesStandInTheArraysOneBehindTheOther) {
  Take(RowsFrom(100));
  for (const bool trained : {true, false}) {
    float next = 100;
    for (const size_t a : ArraysOf(trained)) {
      for (const float value : arrays()[a].values) ASSERT_EQ(value, next++) << arrays()[a].name;
    }
  }
}

TEST_F(DenseBlocksTest, OtherArraysStayAsTheyWere) {
  std::vector<size_t> on_servers = ArraysOf(true);
  for (const size_t a : ArraysOf(false)) on_servers.push_back(a);
  const std::vector<Parameters::Array> before = arrays();
  Take(RowsFrom(100));
  for (size_t a = 0; a < before.size(); ++a) {
    const bool taken = std::ranges::find(on_servers, a) != on_servers.end();
    EXPECT_EQ(arrays()[a].values == before[a].values, !taken) << before[a].name;
  }
}

TEST_F(DenseBlocksTest, ValuesGiveBackWhatWasTakenAndZeroesBehindTheLast) {
  const std::vector<std::vector<float>> rows = RowsFrom(1);
  Take(rows);
  const DenseBlocks::Rows values = blocks_.Values(plan_);
  for (const bool trained : {true, false}) {
    const size_t t = trained ? 0 : 1;
    size_t floats = 0, zeroes = 0;
    for (const size_t a : ArraysOf(trained)) floats += arrays()[a].values.size();
    ASSERT_EQ(values[t].size(), rows[t].size());
    for (size_t i = 0; i < rows[t].size(); ++i) {
      const bool filled_up = rows[t][i] > static_cast<float>(floats);
      ASSERT_EQ(values[t][i], filled_up ? 0.0f : rows[t][i]) << t << " " << i;
      zeroes += filled_up ? 1 : 0;
    }
    EXPECT_EQ(zeroes, values[t].size() - floats);
  }
}

// Servers subtract what is pushed; all workers together move a running value as one would.
TEST_F(DenseBlocksTest, ARunningValueChangesByTheWorkersShareOfItsDifference) {
  Take(RowsFrom(1));
  for (const size_t a : ArraysOf(false)) {
    for (float& value : arrays()[a].values) value -= 8;  // As a step would change it.
  }
  const DenseBlocks::Rows changes = blocks_.Changes(plan_, 1.0f / kWorkers);
  size_t floats = 0;
  for (const size_t a : ArraysOf(false)) floats += arrays()[a].values.size();
  EXPECT_EQ(std::ranges::count(changes[1], 8.0f / kWorkers), static_cast<ptrdiff_t>(floats));
  EXPECT_EQ(std::ranges::count(changes[1], 0.0f),
            static_cast<ptrdiff_t>(changes[1].size() - floats));
}

TEST_F(DenseBlocksTest, ATakeReplacesWhatChangesAreMeasuredFrom) {
  Take(RowsFrom(1));
  Take(RowsFrom(5));
  const DenseBlocks::Rows changes = blocks_.Changes(plan_, 1.0f / kWorkers);
  EXPECT_EQ(std::ranges::count(changes[1], 0.0f), static_cast<ptrdiff_t>(changes[1].size()));
}

}  // namespace
}  // namespace dt::worker
