// Goal: the engine, which reuses memory and packs exchanged values, gives the same bits as the
// reference interpreter, which has separate memory for every value. Method: one rank runs all
// slices of a few steps; the interpreter gets exactly the same inputs.
#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "common/rows/initial_rows.h"
#include "common/rows/row_record.h"
#include "ops/update/update.h"
#include "scheduler/plan/plan.h"
#include "test/support/interpreter.h"
#include "test/support/tiny_model.h"
#include "worker/engine/engine.h"
#include "worker/lookup/lookup_planner.h"
#include "worker/tables/worker_tables.h"

namespace dt::worker {
namespace {

constexpr uint32_t kMatchSlices = 2;
constexpr uint32_t kSamples = 12;

// Keys are less than this. On the worker, key k is row k of the interpreter's table.
constexpr uint32_t kKeys = 9;

JobConfig TestJob(std::vector<NodeConfig> nodes, Device tables) {
  JobConfig job = test::TinyJob(std::move(nodes));
  job.optimizer.clip_norm = 5;
  job.train.batch_size = kMatchSlices * kSamples;
  for (TableConfig& table : job.model.tables) {
    table.device = tables;
    table.init = {InitKind::kNormal, 0.5f};
  }
  return job;
}

Plan MatchPlan(const JobConfig& job) {
  Result<Plan> plan = scheduler::MakePlan({job, test::TinyColumns(), kMatchSlices});
  DT_CHECK_MSG(plan.ok(), "{}", ToText(plan.status()));
  return *std::move(plan);
}

Batch MatchBatch(const Plan& plan, Step step, SliceIndex slice) {
  Batch batch;
  batch.step = step;
  batch.slice = slice;
  batch.samples = kSamples;
  batch.step_samples = kMatchSlices * kSamples;
  batch.first_sample = slice * kSamples;
  for (size_t c = 0; c < plan.columns.size(); ++c) {
    const ColumnSpec& spec = plan.columns[c];
    BatchColumn& column = batch.columns.emplace_back();
    column.offsets.assign(spec.is_ragged() ? 1 : 0, 0);
    for (uint32_t b = 0; b < kSamples; ++b) {
      const PhiloxBlock draw = Philox(c, step, batch.first_sample + b);
      const float number =
          spec.role == ColumnRole::kLabel ? static_cast<float>(draw[0] % 2) : ToUniform(draw[0]);
      if (!spec.is_keys()) column.floats.push_back(number);
      const uint32_t length = !spec.is_keys() ? 0 : spec.is_ragged() ? draw[1] % 3 : spec.length;
      for (uint32_t i = 0; i < length; ++i) column.keys.push_back(draw[2 + i] % kKeys);
      if (spec.is_ragged()) column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
    }
  }
  return batch;
}

template <class T>
std::vector<std::byte> BytesOf(const std::vector<T>& values) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

struct Slice {
  LookupPlan plan;
  std::vector<std::vector<float>> rows;
};

// The bytes of one input, made from the definition in common/graph/graph.h.
std::vector<std::byte> InputBytes(const InputSpec& spec, const Slice& slice) {
  switch (spec.kind) {
    case InputKind::kLookupIndex:
      return BytesOf(slice.plan.lookups[spec.lookup].index);
    case InputKind::kLookupWeights:
      return BytesOf(slice.plan.lookups[spec.lookup].weights);
    case InputKind::kLookupEnds:
      return BytesOf(slice.plan.lookups[spec.lookup].ends);
    case InputKind::kRowEnds:
      return BytesOf(slice.plan.lookups[spec.lookup].row_ends);
    case InputKind::kRowOrder:
      return BytesOf(slice.plan.lookups[spec.lookup].row_order);
    case InputKind::kRows:
      return BytesOf(slice.rows[spec.table]);
    case InputKind::kRowNumbers: {
      const std::vector<Key>& keys = slice.plan.tables[spec.table];
      return BytesOf(std::vector<uint32_t>(keys.begin(), keys.end()));
    }
    default:
      break;
  }
  std::vector<float> joined;
  for (uint32_t b = 0; b < kSamples; ++b) {
    for (const uint32_t c : spec.columns) joined.push_back(slice.plan.batch.columns[c].floats[b]);
  }
  return BytesOf(joined);
}

test::SliceData DataOf(const Graph& graph, const Slice& slice) {
  test::SliceData data{.samples = kSamples,
                       .first_sample = slice.plan.batch.first_sample,
                       .sizes = {{kBatch, kSamples}},
                       .inputs = {}};
  for (SymbolIndex s = kBatch + 1; s < graph.symbols.size(); ++s) {
    for (size_t l = 0; l < graph.lookups.size(); ++l) {
      if (graph.symbols[s] != "N." + graph.lookups[l].name) continue;
      data.sizes[s] = static_cast<int64_t>(slice.plan.lookups[l].index.size());
    }
    for (size_t t = 0; t < graph.tables.size(); ++t) {
      if (graph.symbols[s] != "U." + graph.tables[t].name) continue;
      data.sizes[s] = static_cast<int64_t>(slice.plan.tables[t].size());
    }
    if (graph.symbols[s].starts_with("R.")) data.sizes[s] = kKeys;
  }
  for (const InputSpec& spec : graph.inputs) {
    const Value& value = graph.value(spec.value);
    Shape shape;
    for (const Dim& dim : value.shape) {
      shape.push_back(dim.times * (dim.symbol == kConstant ? 1 : data.sizes.at(dim.symbol)));
    }
    test::HostTensor tensor = test::HostTensor::Of(value.dtype, shape);
    const std::vector<std::byte> bytes = InputBytes(spec, slice);
    EXPECT_EQ(bytes.size(), tensor.bytes.size()) << value.name;
    tensor.bytes = bytes;
    data.inputs[spec.value] = std::move(tensor);
  }
  return data;
}

Slice MakeSlice(const Plan& plan, LookupPlanner& planner, Step step, SliceIndex k) {
  Slice slice;
  slice.plan.batch = MatchBatch(plan, step, k);
  EXPECT_TRUE(planner.Fill(LookupFor::kTrain, slice.plan).ok());
  for (size_t t = 0; t < plan.graph.tables.size(); ++t) {
    std::vector<float>& rows = slice.rows.emplace_back();
    for (const Key key : slice.plan.tables[t]) {
      std::vector<float> row(plan.graph.tables[t].dim);
      FillNormal(t + 50, key, row);
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
  return slice;
}

// Compares bits, NaN included.
void ExpectSameBits(std::span<const float> got, const test::HostTensor& expected,
                    const std::string& what) {
  ASSERT_EQ(got.size_bytes(), expected.bytes.size()) << what;
  EXPECT_TRUE(got.empty() || std::memcmp(got.data(), expected.bytes.data(), got.size_bytes()) == 0)
      << what;
}

// Adds the rows of tables on the worker for the interpreter, all with their first values.
void AddTables(const Plan& plan, const JobConfig& job, test::Tensors& parameters) {
  for (const TableUse& use : plan.graph.tables) {
    if (use.store == kNone) continue;
    const auto table = std::ranges::find(job.model.tables, use.id, &TableConfig::id);
    const auto width = static_cast<size_t>(plan.graph.value(use.store).shape[1].times);
    test::HostTensor rows = test::HostTensor::Of(DType::kF32, {kKeys, int64_t(width)});
    const InitialRows initial(table->init, plan.seed, use.id);
    for (Key key = 0; key < kKeys; ++key) {
      const std::span<float> row(reinterpret_cast<float*>(rows.bytes.data()) + key * width, width);
      initial.Fill(key, row.first(use.dim));
      InitState(table->optimizer, row.subspan(use.dim));
    }
    parameters[use.store] = std::move(rows);
  }
}

// The step of the last update of each row, for each table of the graph.
using LastUpdates = std::vector<std::map<Key, Step>>;

void ExpectTablesMatch(const Graph& graph, const WorkerTables& tables, const LastUpdates& last,
                       const test::Tensors& parameters) {
  const std::vector<TableReport> reports = tables.Reports().value();
  for (const TableReport& report : reports) {
    const auto use = std::ranges::find(graph.tables, report.name, &TableUse::name);
    const test::HostTensor& rows = parameters.at(use->store);
    const size_t row_bytes = rows.bytes.size() / kKeys;
    TableReport want;
    for (const auto& [key, step] : last[use - graph.tables.begin()]) {
      std::vector<std::byte> record(row_bytes + sizeof(Step));
      std::memcpy(record.data(), rows.bytes.data() + key * row_bytes, row_bytes);
      std::memcpy(record.data() + row_bytes, &step, sizeof(Step));
      AddRow(use->id, key, record, want);
    }
    EXPECT_EQ(report.rows, want.rows) << report.name;
    EXPECT_EQ(report.checksum_low, want.checksum_low) << report.name;
    EXPECT_EQ(report.checksum_high, want.checksum_high) << report.name;
  }
}

void ExpectStepsMatch(std::vector<NodeConfig> nodes, Device on = Device::kPs) {
  TaskPool pool(2);
  const JobConfig job = TestJob(std::move(nodes), on);
  const auto own_tables = WorkerTables::Create(MatchPlan(job), job, 0, nullptr).value();
  const auto engine = *Engine::Create(MatchPlan(job), {.pool = pool, .tables = own_tables.get()});
  const Plan& plan = engine->plan();
  std::vector<uint32_t> tables(plan.graph.tables.size());
  std::iota(tables.begin(), tables.end(), 0);
  LookupPlanner planner(plan, /*shards=*/4, tables);
  test::Interpreter interpreter(plan.graph, pool);
  test::Tensors parameters = test::FirstParameters(plan.graph, plan.seed);
  AddTables(plan, job, parameters);
  LastUpdates last(plan.graph.tables.size());
  const std::vector<uint32_t> owner(kMatchSlices, 0);
  for (Step step = 0; step < 3; ++step) {
    RunInfo run{.seed = plan.seed, .step = step, .step_samples = kMatchSlices * kSamples};
    std::vector<Slice> slices;
    std::vector<test::SliceData> data;
    for (SliceIndex k = 0; k < kMatchSlices; ++k) {
      slices.push_back(MakeSlice(plan, planner, step, k));
      data.push_back(DataOf(plan.graph, slices.back()));
    }
    const test::StepResult expected = interpreter.RunStep(data, parameters, run);
    engine->BeginStep(step, owner);
    for (SliceIndex k = 0; k < kMatchSlices; ++k) {
      const std::vector<std::span<const float>> rows(slices[k].rows.begin(), slices[k].rows.end());
      run.first_sample = slices[k].plan.batch.first_sample;
      const auto grads = engine->RunSlice({slices[k].plan, rows}, run);
      ASSERT_TRUE(grads.ok()) << ToText(grads.status());
      for (size_t t = 0; t < grads->size(); ++t) {
        for (const Key key : slices[k].plan.tables[t]) last[t][key] = step;
        if (plan.graph.tables[t].store != kNone) continue;
        ExpectSameBits((*grads)[t], expected.slices[k].at(plan.graph.tables[t].row_grad),
                       plan.graph.tables[t].name);
      }
    }
    run.first_sample = 0;
    ASSERT_TRUE(engine->FinishExchange().ok());
    ASSERT_TRUE(engine->Update(run).ok());
    ASSERT_TRUE(engine->FetchParameters().ok());
    for (const Parameters::Array& array : engine->parameters().arrays()) {
      ExpectSameBits(array.values, parameters.at(array.value), array.name);
    }
    ExpectTablesMatch(plan.graph, *own_tables, last, parameters);
  }
}

TEST(InterpreterMatchTest, StepsGiveTheBitsOfTheReferenceInterpreter) {
  ExpectStepsMatch(test::TinyDeepFm());
}

TEST(InterpreterMatchTest, StepsThatUpdateTablesOnTheWorkerDoToo) {
  ExpectStepsMatch(test::TinyDeepFm(), Device::kCpu);
  ExpectStepsMatch(test::TinyDin(), Device::kCpu);
}

TEST(InterpreterMatchTest, StepsThroughBf16DoToo) {
  const Attrs narrow = {{"to", "bf16"}}, wide = {{"to", "fp32"}};
  ExpectStepsMatch({test::TinyNode("numbers", "dense", {"I*"}, {{"units", int64_t{4}}}, 1),
                    test::TinyNode("narrow", "cast", {"numbers"}, narrow, 2),
                    test::TinyNode("again", "cast", {"narrow"}, wide, 3),
                    test::TinyNode("e", "linear", {"C*"}, {{"table", "wide"}}, 4),
                    test::TinyNode("d", "dense", {"again"}, {{"units", int64_t{1}}}, 5),
                    test::TinyNode("logit", "sum", {"d", "e"}, {}, 6)});
}

TEST(InterpreterMatchTest, StepsOverListsOfVaryingLengthDoToo) {
  ExpectStepsMatch(test::TinyDin());
}

}  // namespace
}  // namespace dt::worker
