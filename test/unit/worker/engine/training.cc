#include "test/unit/worker/engine/training.h"

#include <array>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "common/base/philox.h"
#include "common/device/emulated_accelerator.h"

namespace dt::worker {
namespace {

std::vector<uint32_t> WireTables(const Plan& plan) {
  std::vector<uint32_t> wire(plan.graph.tables.size());
  std::iota(wire.begin(), wire.end(), 0u);
  return wire;
}

constexpr size_t kLeading = 1;  // Column C1, whose few values determine the label.

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

using SliceGradients =
    std::map<std::pair<SliceIndex, uint32_t>, std::pair<std::vector<Key>, std::vector<float>>>;

SliceGradients RunSlices(const std::vector<std::unique_ptr<Rank>>& ranks,
                         std::span<const uint32_t> owner, Tables& tables, Step step) {
  SliceGradients pushed;
  for (SliceIndex k = 0; k < kSlices; ++k) {
    Rank& rank = *ranks[owner[k]];
    const uint32_t samples =
        k + 1 < kSlices ? kSliceSamples : kSliceSamples / 4 * static_cast<uint32_t>(step % 3);
    const Result<RowSpans> grads =
        rank.RunSlice(tables, MakeBatch(rank.engine_->plan(), step, k, samples));
    EXPECT_TRUE(grads.ok()) << ToText(grads.status());
    if (!grads.ok()) return pushed;
    for (uint32_t t = 0; t < grads->size(); ++t) {
      pushed[{k, t}] = {rank.made_.tables[t], {(*grads)[t].begin(), (*grads)[t].end()}};
    }
  }
  return pushed;
}

void UpdateAll(const std::vector<std::unique_ptr<Rank>>& ranks, Step step) {
  std::vector<std::jthread> threads;
  for (const auto& rank : ranks) {
    threads.emplace_back([step, r = rank.get()] {
      EXPECT_TRUE(r->engine_->FinishExchange().ok());
      EXPECT_TRUE(r->engine_->Update(r->Info(step)).ok());
    });
  }
}

}  // namespace

std::unique_ptr<Accelerator> SmallEmulated() {
  return EmulatedAccelerator::Create({.memory_bytes = 64 << 20, .speed = {}}).value();
}

Plan TestPlan(const Setting& setting, scheduler::PlacementReport* report) {
  JobConfig job = test::TinyJob(setting.nodes);
  job.parallel.place = setting.place;
  job.optimizer.device = setting.optimizer;
  job.optimizer.spec.lr = 0.01f;
  job.optimizer.clip_norm = 5;
  job.train.batch_size = kSlices * kSliceSamples;
  scheduler::PlanRequest request{job, test::TinyColumns(), kSlices, test::TinyAccelerator()};
  if (setting.automatic.has_value()) {
    job.cluster.devices = AcceleratorChoice::kEmulated;
    request.profile = *setting.automatic;
  }
  request.report = report;
  Result<Plan> plan = scheduler::MakePlan(request);
  DT_CHECK_MSG(plan.ok(), "{}", ToText(plan.status()));
  return *std::move(plan);
}

Setting RandomPlacement(uint64_t number) {
  const Graph graph = TestPlan().graph;
  Setting setting;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].phase != Phase::kSlice) continue;
    const std::string& name = graph.nodes[n].name;
    const uint64_t drawn = number % 2 == 0 ? n : HashString(name.substr(0, name.find('.')));
    if (number == 0 || Philox(number, 1, drawn)[0] % 2 == 0) {
      setting.place.push_back({name, Device::kGpu});
    }
  }
  setting.optimizer = std::array{Device::kAuto, Device::kCpu, Device::kGpu}[number % 3];
  setting.ranks = 1 + number % 2;
  return setting;
}

std::vector<float> Tables::Pull(const Graph& graph, uint32_t table, std::span<const Key> keys) {
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

void Tables::Push(uint32_t table, std::span<const Key> keys, std::span<const float> gradients) {
  size_t at = 0;
  for (const Key key : keys) {
    for (float& v : rows.at({table, key})) v -= 0.5f * gradients[at++];
  }
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

Rank::Rank(std::unique_ptr<Mesh> mesh, const Setting& setting)
    : pool_(setting.threads),
      team_(std::move(mesh)),
      accelerator_(setting.open()),
      engine_(Engine::Create(TestPlan(setting), {.pool = pool_,
                                                 .accelerator = accelerator_.get(),
                                                 .team = &team_,
                                                 .overlap = setting.overlap})
                  .value()),
      planner_(engine_->plan(), /*shards=*/1, WireTables(engine_->plan())) {}

Rank::Rank(const Setting& setting) : Rank(std::move(MakeMemoryMesh(1, {}).front()), setting) {}

void Rank::BeginStep(Step step, std::span<const uint32_t> owner) {
  engine_->BeginStep(step, owner);
  slices_left_ = static_cast<size_t>(std::ranges::count(owner, team_.place.team));
}

RunInfo Rank::Info(Step step) const {
  return {.seed = 7, .step = step, .step_samples = kSlices * kSliceSamples};
}

std::vector<std::span<const float>> Rank::PullRows(Tables& tables) {
  std::vector<std::span<const float>> spans;
  rows_.resize(made_.tables.size());
  for (uint32_t t = 0; t < made_.tables.size(); ++t) {
    rows_[t] = tables.Pull(engine_->plan().graph, t, made_.tables[t]);
    spans.push_back(rows_[t]);
  }
  return spans;
}

Result<RowSpans> Rank::RunSlice(Tables& tables, Batch batch) {
  // Waits until the update no longer reads the previous slice.
  EXPECT_TRUE(engine_->FinishUpdate().ok());
  if (slices_left_ > 0) {
    --slices_left_;
  } else {
    engine_->BeginStep(batch.step, std::vector<uint32_t>(kSlices, team_.place.team));
  }
  made_.batch = std::move(batch);
  EXPECT_TRUE(planner_.Fill(LookupFor::kTrain, made_).ok());
  RunInfo info = Info(made_.batch.step);
  info.first_sample = made_.batch.first_sample;
  return engine_->RunSlice({made_, PullRows(tables)}, info);
}

Result<std::vector<float>> Rank::Evaluate(Tables& tables, Batch batch) {
  LookupPlan slice;
  slice.batch = std::move(batch);
  EXPECT_TRUE(engine_->FinishUpdate().ok());
  EXPECT_TRUE(planner_.Fill(LookupFor::kEvaluate, slice).ok());
  std::swap(slice, made_);
  RunInfo info = Info(made_.batch.step);
  info.training = false;
  DT_TRY(const RowSpans outputs, engine_->Evaluate({made_, PullRows(tables)}, info));
  return std::vector<float>(outputs[0].begin(), outputs[0].end());
}

Outcome Train(const Setting& setting, Step steps,
              const std::function<void(Rank&, Tables&, Step)>& after) {
  std::vector<std::unique_ptr<Mesh>> meshes = MakeMemoryMesh(setting.ranks, {});
  std::vector<std::unique_ptr<Rank>> all;
  for (auto& mesh : meshes) all.push_back(std::make_unique<Rank>(std::move(mesh), setting));
  std::vector<uint32_t> owner(kSlices);
  for (uint32_t k = 0; k < kSlices; ++k) owner[k] = (k + 1) % setting.ranks;
  Outcome outcome;
  Tables tables;
  for (Step step = 0; step < steps; ++step) {
    for (const auto& rank : all) rank->BeginStep(step, owner);
    const SliceGradients pushed = RunSlices(all, owner, tables, step);
    UpdateAll(all, step);
    for (const auto& [where, push] : pushed) {
      if (!push.second.empty()) tables.Push(where.second, push.first, push.second);
    }
    outcome.losses.push_back(all.front()->engine_->step_losses().front());
    if (after != nullptr) after(*all.front(), tables, step);
  }
  for (const auto& rank : all) EXPECT_TRUE(rank->engine_->FetchParameters().ok());
  const Parameters& first = all.front()->engine_->parameters();
  outcome.dense = first.Checksum();
  for (const Parameters::Array& array : first.arrays())
    outcome.parameters[array.name] = array.values;
  for (const auto& rank : all) EXPECT_EQ(rank->engine_->parameters().Checksum(), outcome.dense);
  outcome.tables = tables.rows;
  return outcome;
}

}  // namespace dt::worker
