// Goal: a table on the worker equals the table that servers would have, whatever device its rows
// are on. Method: the same keys and gradients for both, updated here by the update node of plans;
// then records (values, optimizer state and last update) are compared bit by bit.
#include "worker/tables/worker_table.h"

#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/device/emulated_accelerator.h"
#include "common/rows/row_record.h"
#include "ops/kernel.h"
#include "ops/update/attrs.h"
#include "ops/update/update.h"
#include "test/support/one_table.h"
#include "test/support/push_maker.h"

namespace dt::worker {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kDim = 5;
constexpr uint64_t kSeed = 5;

TableConfig ConfigWith(OptimizerKind kind) {
  TableConfig table;
  table.name = "item";
  table.id = TableIdOf(table.name);
  table.dim = kDim;
  table.init = {InitKind::kNormal, 0.5f};
  table.optimizer = {
      .kind = kind, .lr = 0.1f, .weight_decay = 0.01f, .l2 = 0.02f, .clip_row_norm = 1.5f};
  table.device = Device::kGpu;
  return table;
}

server::TableSpec TableSpecOf(const TableConfig& table) {
  server::TableSpec spec = test::SimpleTable(table.name, table.dim);
  spec.optimizer = table.optimizer;
  spec.init = table.init;
  spec.seed = kSeed;
  return spec;
}

// A table, and the accelerator that holds it, if any.
struct Placed {
  std::unique_ptr<EmulatedAccelerator> device;
  std::unique_ptr<WorkerTable> table;

  Placed(const TableConfig& config, bool on_device, uint64_t memory = 1 << 26) {
    if (on_device) device = EmulatedAccelerator::Create({.memory_bytes = memory}).value();
    table =
        WorkerTable::Create({.table = config, .seed = kSeed, .accelerator = device.get()}).value();
  }
  // The rows as a kernel sees them.
  TensorView View() const {
    const TableView view = table->view();
    void* const rows = device != nullptr ? device->Real(view.rows) : view.rows;
    return {DType::kF32, {view.room, kDim + int64_t{table->state()}}, rows};
  }
  std::vector<float> Values() const {
    const TensorView rows = View();
    std::vector<float> values;
    for (const uint32_t number : table->view().numbers) {
      const float* const row = static_cast<const float*>(rows.data) + number * rows.shape[1];
      values.insert(values.end(), row, row + kDim);
    }
    return values;
  }
  void Update(const std::vector<float>& grads, Step step) const {
    const TableView view = table->view();
    const auto count = static_cast<int64_t>(view.numbers.size());
    Node node;
    node.op = "update_rows";
    node.attrs = RowOptimizerAttrs(table->config().optimizer, true);
    const std::vector<TensorView> inputs = {
        View(),
        {DType::kU32, {count}, const_cast<uint32_t*>(view.numbers.data())},
        {DType::kF32, {count, kDim}, const_cast<float*>(grads.data())},
        {DType::kU32, {count}, const_cast<uint32_t*>(view.steps_since_update.data())}};
    TaskPool pool(1);
    std::vector<std::byte> scratch;
    const RunInfo run{.step = step, .lr_scale = 0.5f};
    KernelContext context{node, inputs, {}, run, pool, scratch};
    FindKernel("update_rows")(context);
  }
};

std::map<Key, std::vector<std::byte>> RecordsOf(WorkerTable& table) {
  std::vector<uint32_t> numbers(table.rows());
  std::iota(numbers.begin(), numbers.end(), 0u);
  std::map<Key, std::vector<std::byte>> records;
  const Status visited = table.VisitRows(numbers, [&](Key key, std::span<const std::byte> bytes) {
    records[key] = {bytes.begin(), bytes.end()};
    return OkStatus();
  });
  EXPECT_TRUE(visited.ok()) << visited;
  return records;
}

std::map<Key, std::vector<std::byte>> RecordsOf(const test::OneTable& table) {
  std::map<Key, std::vector<std::byte>> records;
  for (const server::KeyRow& row : table.SortedRows()) records[row.key] = table.Record(row);
  return records;
}

std::vector<Key> SomeKeys(std::mt19937_64& random, size_t count, uint64_t of) {
  std::vector<Key> keys;
  while (keys.size() < count) {
    const Key key = random() % of * 0x9e3779b97f4a7c15ull;
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

class WorkerTableTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(OnDevice, WorkerTableTest, ::testing::Bool());

// The table grows several times, and some keys are not updated for a while.
TEST_P(WorkerTableTest, HoldsWhatAServerWould) {
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kRowwiseAdagrad,
                                   OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    const TableConfig config = ConfigWith(kind);
    const Placed own(config, GetParam());
    test::OneTable server(TableSpecOf(config));
    std::mt19937_64 random(3);
    for (Step step = 2; step < 40; ++step) {
      const std::vector<Key> keys = SomeKeys(random, 150, 4000);
      ASSERT_TRUE(own.table->Bind(keys, step, LookupFor::kTrain).ok());
      std::vector<float> pulled(keys.size() * kDim);
      server.Pull(keys, pulled);
      ASSERT_EQ(own.Values(), pulled) << "step " << step;
      std::vector<float> grads;
      for (size_t i = 0; i < pulled.size(); ++i) {
        grads.push_back(static_cast<float>(random() % 2001) / 1000.0f - 1.0f);
      }
      own.Update(grads, step);
      server.Push(keys, grads, {.step = step, .lr_scale = 0.5f});
    }
    EXPECT_GT(own.table->rows(), 2000u);  // More than there was room for at first.
    EXPECT_EQ(RecordsOf(*own.table), RecordsOf(server)) << static_cast<int>(kind);
  }
}

TEST_P(WorkerTableTest, EvaluationMakesNoRow) {
  TableConfig config = ConfigWith(OptimizerKind::kAdam);
  const Placed own(config, GetParam());
  std::mt19937_64 random(9);
  const std::vector<Key> known = SomeKeys(random, 900, 1'000'000);
  ASSERT_TRUE(own.table->Bind(known, 0, LookupFor::kTrain).ok());
  const std::vector<float> before = own.Values();
  std::vector<Key> all = SomeKeys(random, 700, 1'000'000);
  ASSERT_TRUE(own.table->Bind(all, 1, LookupFor::kEvaluate).ok());
  EXPECT_EQ(own.table->rows(), 900u);
  EXPECT_TRUE(own.table->view().steps_since_update.empty());
  std::vector<float> initial(kDim);
  InitialRows(config.init, kSeed, config.id).Fill(all[0], initial);
  std::vector<float> first = own.Values();
  first.resize(kDim);
  EXPECT_EQ(first, initial);
  ASSERT_TRUE(own.table->Bind(known, 1, LookupFor::kEvaluate).ok());
  EXPECT_EQ(own.Values(), before);

  config.eval_default = EvalDefault::kZeros;
  const Placed zeros(config, GetParam());
  ASSERT_TRUE(zeros.table->Bind(all, 1, LookupFor::kEvaluate).ok());
  EXPECT_EQ(zeros.Values(), std::vector<float>(all.size() * kDim, 0.0f));
}

// If a step has several slices, rows are created and steps since the last update counted by the
// step only.
TEST_P(WorkerTableTest, SlicesOfAJoinedStepMakeNoRow) {
  const TableConfig config = ConfigWith(OptimizerKind::kAdam);
  Placed own(config, GetParam());
  own.table =
      WorkerTable::Create(
          {.table = config, .seed = kSeed, .updated = false, .accelerator = own.device.get()})
          .value();
  test::OneTable server(TableSpecOf(config));
  std::mt19937_64 random(6);
  for (Step step = 1; step < 12; ++step) {
    const std::vector<Key> keys = SomeKeys(random, 300, 2000);
    const uint32_t before = own.table->rows();
    for (const size_t first : {0, 100}) {
      const std::span<const Key> slice = std::span(keys).subspan(first, 200);
      ASSERT_TRUE(own.table->Bind(slice, step, LookupFor::kTrain).ok());
      std::vector<float> pulled(slice.size() * kDim);
      server.Pull(slice, pulled);
      EXPECT_EQ(own.Values(), pulled);
    }
    EXPECT_EQ(own.table->rows(), before);
    EXPECT_TRUE(own.table->view().steps_since_update.empty());
    // A step that is given up changes nothing.
    ASSERT_TRUE(own.table->BindStep(keys, step + 7).ok());
    EXPECT_EQ(own.table->rows(), before);
    ASSERT_TRUE(own.table->BindStep(keys, step).ok());
    own.table->BeginUpdate();
    const std::vector<float> grads(keys.size() * kDim, 0.125f);
    own.Update(grads, step);
    server.Push(keys, grads, {.step = step, .lr_scale = 0.5f});
  }
  EXPECT_EQ(RecordsOf(*own.table), RecordsOf(server));
  EXPECT_EQ(own.table->Report()->rows_touched, 11u * 400u);
}

TEST_P(WorkerTableTest, RestoredRowsAreTheSame) {
  const TableConfig config = ConfigWith(OptimizerKind::kAdagrad);
  const Placed own(config, GetParam()), copy(config, !GetParam());
  std::mt19937_64 random(4);
  for (const Step step : {5, 7}) {
    const std::vector<Key> keys = SomeKeys(random, 1500, 2500);
    ASSERT_TRUE(own.table->Bind(keys, step, LookupFor::kTrain).ok());
    own.Update(std::vector<float>(keys.size() * kDim, 0.25f), step);
  }
  ASSERT_TRUE(copy.table->Bind(SomeKeys(random, 10, 100), 1, LookupFor::kTrain).ok());
  copy.table->Clear();
  const auto records = RecordsOf(*own.table);
  for (const auto& [key, record] : records) ASSERT_TRUE(copy.table->Restore(key, record).ok());
  ASSERT_TRUE(copy.table->FinishRestore().ok());
  EXPECT_EQ(RecordsOf(*copy.table), records);
  const TableReport a = own.table->Report().value(), b = copy.table->Report().value();
  EXPECT_EQ(a.checksum_low, b.checksum_low);
  EXPECT_EQ(a.checksum_high, b.checksum_high);
  EXPECT_EQ(a.rows, records.size());
  EXPECT_EQ(a.bytes, own.table->bytes());
  const auto& [key, record] = *records.begin();
  EXPECT_EQ(copy.table->Restore(key, record).code(), StatusCode::kDataLoss);
  EXPECT_EQ(copy.table->Restore(77, std::span(record).first(9)).code(), StatusCode::kDataLoss);
}

TEST(WorkerTable, SaysWhatDoesNotFitAndWhatWouldHelp) {
  const TableConfig config = ConfigWith(OptimizerKind::kAdam);
  const auto device = EmulatedAccelerator::Create({.memory_bytes = 1 << 20}).value();
  const Status said =
      WorkerTable::Create(
          {.table = config, .seed = kSeed, .expected_rows = 100'000, .accelerator = device.get()})
          .status();
  EXPECT_EQ(said.code(), StatusCode::kUnavailable);
  EXPECT_THAT(ToText(said), HasSubstr("table item on gpu needs room for 100000 rows of 60 bytes"));
  EXPECT_THAT(ToText(said), HasSubstr("set model.tables.item.device to cpu or ps"));

  // At first twice the memory does not fit but the needed memory does; in the end not even that.
  const Placed own(config, true, 1 << 20);
  std::mt19937_64 random(1);
  Status bound;
  for (Step step = 0; bound.ok() && step < 100; ++step) {
    bound = own.table->Bind(SomeKeys(random, 400, 1'000'000), step, LookupFor::kTrain);
  }
  EXPECT_THAT(ToText(bound), HasSubstr("needs room for"));
  EXPECT_GT(own.table->rows(), 4000u);
}

}  // namespace
}  // namespace dt::worker
