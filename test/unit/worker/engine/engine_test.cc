// Goal: a plan with every part that could break equality trains to the same bits with any number of
// ranks and threads, learns, and says what is wrong with its input. Method: the planner's plan of a
// small DeepFM, tables in a map in place of servers, ranks in threads over the in-memory mesh.
#include "worker/engine/engine.h"

#include <map>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "common/base/philox.h"
#include "common/device/emulated_accelerator.h"
#include "scheduler/plan/plan.h"
#include "test/support/tiny_model.h"
#include "worker/lookup/lookup_planner.h"

namespace dt::worker {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kSlices = 3;
constexpr uint32_t kSliceSamples = 16;

// What a run of Train may differ in without a change of any bit.
struct Setting {
  uint32_t ranks = 1, threads = 1;
  std::vector<PlaceRule> place = {};
  Device optimizer = Device::kAuto;
  std::vector<NodeConfig> nodes = test::TinyDeepFm();
};

Plan TestPlan(const Setting& setting = {}) {
  JobConfig job = test::TinyJob(setting.nodes);
  job.parallel.place = setting.place;
  job.optimizer.device = setting.optimizer;
  job.optimizer.spec.lr = 0.01f;
  job.optimizer.clip_norm = 5;
  job.train.batch_size = kSlices * kSliceSamples;
  Result<Plan> plan = scheduler::MakePlan({job, test::TinyColumns(), kSlices});
  DT_CHECK_MSG(plan.ok(), "{}", ToText(plan.status()));
  return *std::move(plan);
}

// Tables by name of the graph, as one server would hold them. Gradients are applied by plain
// descent.
struct Tables {
  std::map<std::pair<uint32_t, Key>, std::vector<float>> rows;

  std::vector<float> Pull(const Graph& graph, uint32_t table, std::span<const Key> keys) {
    std::vector<float> values;
    for (const Key key : keys) {
      std::vector<float>& row = rows[{table, key}];
      if (row.empty()) {
        row.resize(graph.tables[table].dim);
        FillNormal(table + 77, key, row);
        for (float& v : row) v *= 0.01f;
      }
      values.insert(values.end(), row.begin(), row.end());
    }
    return values;
  }
  void Push(uint32_t table, std::span<const Key> keys, std::span<const float> gradients) {
    size_t at = 0;
    for (const Key key : keys) {
      for (float& v : rows.at({table, key})) v -= 0.5f * gradients[at++];
    }
  }
};

constexpr size_t kLeading = 1;  // Column C1: its few values decide the label.

void AddCell(const ColumnSpec& spec, size_t c, Key leading, const PhiloxBlock& draw,
             BatchColumn& column) {
  if (spec.role == ColumnRole::kLabel) return column.floats.push_back(leading < 3 ? 1.0f : 0.0f);
  if (!spec.is_keys()) return column.floats.push_back(ToUniform(draw[0]));
  const uint32_t length = spec.is_ragged() ? draw[1] % 3 : spec.length;
  for (uint32_t i = 0; i < length; ++i) {
    column.keys.push_back(c * 100 + (c == kLeading ? leading : draw[2 + i] % 20));
  }
  if (spec.is_ragged()) column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
}

Batch MakeBatch(const Plan& plan, Step step, SliceIndex slice, uint32_t samples) {
  Batch batch{.step = step,
              .slice = slice,
              .samples = samples,
              .step_samples = kSlices * kSliceSamples,
              .first_sample = slice * kSliceSamples,
              .columns = {}};
  for (size_t c = 0; c < plan.columns.size(); ++c) {
    BatchColumn& column = batch.columns.emplace_back();
    if (plan.columns[c].is_ragged()) column.offsets.push_back(0);
    for (uint32_t b = 0; b < samples; ++b) {
      const uint64_t sample = slice * kSliceSamples + b;
      AddCell(plan.columns[c], c, Philox(kLeading, step, sample)[0] % 6, Philox(c, step, sample),
              column);
    }
  }
  return batch;
}

struct Outcome {
  std::string dense;
  std::map<std::pair<uint32_t, Key>, std::vector<float>> tables;
  std::vector<double> losses;
};

// One rank's engine and what it needs.
class Rank {
 public:
  explicit Rank(std::unique_ptr<Mesh> mesh, const Setting& setting = {})
      : pool_(setting.threads),
        accelerator_(*EmulatedAccelerator::Create({.memory_bytes = 64 << 20, .speed = {}})),
        engine_(
            *Engine::Create(TestPlan(setting), {.pool = pool_, .accelerator = accelerator_.get()})),
        collective_(std::move(mesh)),
        planner_(engine_->plan(), OneShard(), WireTables(engine_->plan())) {}

  static std::vector<uint32_t> WireTables(const Plan& plan) {
    std::vector<uint32_t> wire(plan.graph.tables.size());
    std::iota(wire.begin(), wire.end(), 0u);
    return wire;
  }

  static std::shared_ptr<const Routes> OneShard() {
    return std::make_shared<const Routes>(
        MakeRoutes(MakeShardMap(MapVersion(1), 1, {{ProcessId(1), {"a"}}})));
  }

  RunInfo Info(Step step) const {
    return {.seed = 7, .step = step, .step_samples = kSlices * kSliceSamples};
  }
  // Gradients by table; `made_` holds the plan until the next call.
  Result<std::span<const std::span<const float>>> RunSlice(Tables& tables, Batch batch) {
    EXPECT_TRUE(engine_->FinishUpdate().ok());  // Nobody reads the slice before any more.
    made_.batch = std::move(batch);
    EXPECT_TRUE(planner_.Fill(LookupFor::kTrain, made_).ok());
    std::vector<std::span<const float>> spans;
    rows_.resize(made_.tables.size());
    for (uint32_t t = 0; t < made_.tables.size(); ++t) {
      rows_[t] = tables.Pull(engine_->plan().graph, t, made_.tables[t]);
      spans.push_back(rows_[t]);
    }
    RunInfo info = Info(made_.batch.step);
    info.first_sample = made_.batch.first_sample;
    return engine_->RunSlice({made_, spans}, info);
  }

  TaskPool pool_;
  const std::unique_ptr<EmulatedAccelerator> accelerator_;
  const std::unique_ptr<Engine> engine_;
  Collective collective_;
  LookupPlanner planner_;
  LookupPlan made_;
  std::vector<std::vector<float>> rows_;
};

using SliceGradients =
    std::map<std::pair<SliceIndex, uint32_t>, std::pair<std::vector<Key>, std::vector<float>>>;

// All slices of a step over `ranks` ranks; the last slice has fewer samples, in some steps none.
Outcome Train(const Setting& setting, Step steps) {
  const uint32_t ranks = setting.ranks;
  std::vector<std::unique_ptr<Mesh>> meshes = MakeMemoryMesh(ranks, {});
  std::vector<std::unique_ptr<Rank>> all;
  for (auto& mesh : meshes) all.push_back(std::make_unique<Rank>(std::move(mesh), setting));
  std::vector<uint32_t> owner(kSlices);
  for (uint32_t k = 0; k < kSlices; ++k) owner[k] = (k + 1) % ranks;
  Outcome outcome;
  Tables tables;
  for (Step step = 0; step < steps; ++step) {
    SliceGradients pushed;
    for (SliceIndex k = 0; k < kSlices; ++k) {
      Rank& rank = *all[owner[k]];
      const uint32_t samples =
          k + 1 < kSlices ? kSliceSamples : kSliceSamples / 4 * static_cast<uint32_t>(step % 3);
      const auto grads = rank.RunSlice(tables, MakeBatch(rank.engine_->plan(), step, k, samples));
      EXPECT_TRUE(grads.ok()) << ToText(grads.status());
      for (uint32_t t = 0; t < grads->size(); ++t) {
        pushed[{k, t}] = {rank.made_.tables[t], {(*grads)[t].begin(), (*grads)[t].end()}};
      }
    }
    {
      std::vector<std::jthread> threads_of_ranks;
      for (const auto& rank : all) {
        threads_of_ranks.emplace_back([&owner, step, r = rank.get()] {
          EXPECT_TRUE(r->engine_->Exchange(r->collective_, owner, step).ok());
          EXPECT_TRUE(r->engine_->Update(r->Info(step)).ok());
        });
      }
    }
    for (const auto& [where, push] : pushed) {
      if (!push.second.empty()) tables.Push(where.second, push.first, push.second);
    }
    outcome.losses.push_back(all.front()->engine_->step_loss());
  }
  for (const auto& rank : all) EXPECT_TRUE(rank->engine_->FetchParameters().ok());
  outcome.dense = all.front()->engine_->parameters().Checksum();
  for (const auto& rank : all) EXPECT_EQ(rank->engine_->parameters().Checksum(), outcome.dense);
  outcome.tables = tables.rows;
  return outcome;
}

TEST(EngineTest, TheSameBitsWithAnyNumberOfRanksAndThreads) {
  const Outcome one = Train({}, 12);
  for (const auto& [ranks, threads] : {std::pair{1u, 3u}, {2u, 1u}, {3u, 2u}, {4u, 1u}}) {
    const Outcome other = Train({.ranks = ranks, .threads = threads}, 12);
    EXPECT_EQ(other.dense, one.dense) << ranks << " ranks, " << threads << " threads";
    EXPECT_EQ(other.tables, one.tables) << ranks << " ranks, " << threads << " threads";
    EXPECT_EQ(other.losses, one.losses) << ranks << " ranks, " << threads << " threads";
  }
}

// Copies move bits and change none, wherever they are.
TEST(EngineTest, TheSameBitsWithAnyPlacement) {
  constexpr Step kSteps = 4;
  const Outcome one = Train({}, kSteps);
  const Graph graph = TestPlan().graph;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    Setting setting;
    // All, then random ones: each operator, or whole layers.
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const std::string& name = graph.nodes[n].name;
      const uint64_t drawn = seed % 2 == 0 ? n : HashString(name.substr(0, name.find('.')));
      if (seed == 0 || Philox(seed, 1, drawn)[0] % 2 == 0) {
        setting.place.push_back({name, Device::kGpu});
      }
    }
    setting.optimizer = std::array{Device::kAuto, Device::kCpu, Device::kGpu}[seed % 3];
    setting.ranks = 1 + seed % 2;
    const Outcome other = Train(setting, kSteps);
    EXPECT_EQ(other.dense, one.dense) << "placement " << seed;
    EXPECT_EQ(other.tables, one.tables) << "placement " << seed;
    EXPECT_EQ(other.losses, one.losses) << "placement " << seed;
  }
}

TEST(EngineTest, ItLearns) {
  const Outcome outcome = Train({.threads = 2}, 150);
  EXPECT_LT(outcome.losses.back(), 0.7 * outcome.losses.front());
}

TEST(EngineTest, EvaluationGivesTheOutputOfEverySampleAndChangesNothing) {
  Rank rank(std::move(MakeMemoryMesh(1, {}).front()));
  Tables tables;
  ASSERT_TRUE(rank.RunSlice(tables, MakeBatch(rank.engine_->plan(), 0, 0, 16)).ok());
  const std::string before = rank.engine_->parameters().Checksum();
  std::vector<std::span<const float>> spans(rank.rows_.begin(), rank.rows_.end());
  RunInfo info = rank.Info(0);
  info.training = false;
  const TableRows outputs = *rank.engine_->Evaluate({rank.made_, spans}, info);
  ASSERT_EQ(outputs.size(), 1);
  ASSERT_EQ(outputs[0].size(), 16);
  const std::vector<float> first(outputs[0].begin(), outputs[0].end());
  const TableRows again = *rank.engine_->Evaluate({rank.made_, spans}, info);
  EXPECT_EQ(first, std::vector<float>(again[0].begin(), again[0].end()));
  EXPECT_EQ(rank.engine_->parameters().Checksum(), before);
}

// Adam keeps two values beside each weight: with the optimizer on the processor they are not on the
// accelerator. The arena there settles.
TEST(EngineTest, AnOptimizerOnTheProcessorLeavesAThirdOfTheAcceleratorsMemory) {
  const std::vector<NodeConfig> wide = {
      test::TinyNode("numbers", "mlp", {"I1", "I2"}, {{"units", std::vector<int64_t>{256, 128}}}),
      test::TinyNode("e", "linear", {"C1", "tags"}, {{"table", "wide"}}),
      test::TinyNode("d", "dense", {"numbers"}, {{"units", int64_t{1}}}),
      test::TinyNode("logit", "sum", {"e", "d"})};
  std::array<uint64_t, 2> lasting = {};
  for (const Device optimizer : {Device::kGpu, Device::kCpu}) {
    Rank rank(std::move(MakeMemoryMesh(1, {}).front()),
              {.place = {{"*", Device::kGpu}}, .optimizer = optimizer, .nodes = wide});
    Tables tables;
    for (Step step = 0; step < 40; ++step) {
      ASSERT_TRUE(rank.RunSlice(tables, MakeBatch(rank.engine_->plan(), step, 0, 16)).ok());
    }
    const uint32_t growths = rank.engine_->device_bytes().arena_growths;
    for (Step step = 0; step < 40; ++step) {
      ASSERT_TRUE(rank.RunSlice(tables, MakeBatch(rank.engine_->plan(), step, 0, 16)).ok());
    }
    EXPECT_EQ(rank.engine_->device_bytes().arena_growths, growths);
    lasting[optimizer == Device::kGpu] = rank.engine_->device_bytes().lasting;
  }
  EXPECT_GT(lasting[0], 0);
  EXPECT_LE(static_cast<double>(lasting[0]), 1.05 / 3 * static_cast<double>(lasting[1]));
}

// Lists that only gradients read are not made for evaluation.
TEST(EngineTest, EvaluationOnTheAcceleratorIsTheProcessors) {
  std::vector<float> first;
  for (const std::vector<PlaceRule>& place : {std::vector<PlaceRule>(), {{"*", Device::kGpu}}}) {
    Rank rank(std::move(MakeMemoryMesh(1, {}).front()), {.place = place});
    Tables tables;
    LookupPlan slice;
    slice.batch = MakeBatch(rank.engine_->plan(), 0, 0, 16);
    ASSERT_TRUE(rank.planner_.Fill(LookupFor::kEvaluate, slice).ok());
    std::vector<std::vector<float>> rows;
    for (uint32_t t = 0; t < slice.tables.size(); ++t) {
      rows.push_back(tables.Pull(rank.engine_->plan().graph, t, slice.tables[t]));
    }
    const std::vector<std::span<const float>> spans(rows.begin(), rows.end());
    RunInfo info = rank.Info(0);
    info.training = false;
    const Result<TableRows> outputs = rank.engine_->Evaluate({slice, spans}, info);
    ASSERT_TRUE(outputs.ok()) << ToText(outputs.status());
    const std::vector<float> got((*outputs)[0].begin(), (*outputs)[0].end());
    if (first.empty()) first = got;
    EXPECT_EQ(got, first);
  }
}

TEST(EngineTest, ALossThatIsNotFiniteNamesStepAndSlice) {
  Rank rank(std::move(MakeMemoryMesh(1, {}).front()));
  Tables tables;
  Batch batch = MakeBatch(rank.engine_->plan(), 41, 2, 16);
  for (size_t c = 0; c < batch.columns.size(); ++c) {
    if (rank.engine_->plan().columns[c].name == "I1") batch.columns[c].floats[3] = 3e38f * 10;
  }
  const auto grads = rank.RunSlice(tables, std::move(batch));
  ASSERT_FALSE(grads.ok());
  EXPECT_THAT(ToText(grads.status()), HasSubstr("not finite at step 41"));
  EXPECT_THAT(ToText(grads.status()), HasSubstr("slice 2 (samples 32 to 47"));
}

TEST(EngineTest, TimingsNameEveryNodeThatRan) {
  Rank rank(std::move(MakeMemoryMesh(1, {}).front()));
  Tables tables;
  ASSERT_TRUE(rank.RunSlice(tables, MakeBatch(rank.engine_->plan(), 0, 0, 16)).ok());
  ASSERT_TRUE(rank.engine_->FetchParameters().ok());  // Waits.
  uint64_t runs = 0;
  for (const NodeTiming& timing : rank.engine_->Timings()) runs += timing.runs;
  uint64_t nodes = 0;
  for (const Subgraph& subgraph : rank.engine_->plan().train) {
    if (subgraph.phase == Phase::kSlice) nodes += subgraph.nodes.size();
  }
  EXPECT_EQ(runs, nodes);
}

}  // namespace
}  // namespace dt::worker
