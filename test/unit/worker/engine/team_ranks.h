// Workers of teams in threads of one process, over the in-memory mesh, with a plan of a perceptron.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/philox.h"
#include "common/layout/sample_part.h"
#include "test/support/cuda_on_host/cuda_on_host.h"
#include "test/support/hash_rendezvous.h"
#include "test/unit/worker/engine/training.h"

namespace dt::worker {

struct TeamSetting {
  uint32_t devices = 1, teams = 1, slices = 1;
  bool shard = false, overlap = true;
  uint32_t sharers = 0;  // Workers that share weights, if not all of them.
  float clip_norm = 0;
  std::string wire = "fp32";
  FusionConfig fusion = {};
  std::vector<std::pair<std::string, std::string>> cuts = {};
  // Everything is on cards made of host threads, which communicate; or they are copied from.
  bool cards = false, cards_communicate = true;
};

// One worker, as a thread runs it.
class TeamRank {
 public:
  TeamRank(Plan plan, std::unique_ptr<Mesh> mesh, const TeamSetting& setting,
           Rendezvous& rendezvous)
      : link_(std::move(mesh), setting.devices) {
    if (setting.cards) card_ = test::OpenCardOnHost(static_cast<int32_t>(link_.mesh->rank()) + 1);
    link_.connect_cards = [&, rank = link_.mesh->rank()](std::span<const RankGroup> groups,
                                                         CudaAccelerator& card) {
      return ConnectNccl(groups, {.card = card,
                                  .rank = rank,
                                  .rendezvous = rendezvous,
                                  .prefix = "t",
                                  .limits = WithCancel(*link_.mesh, {})});
    };
    engine_ =
        Engine::Create(
            std::move(plan),
            {.pool = pool_, .accelerator = card_.get(), .team = &link_, .overlap = setting.overlap})
            .value();
    planner_.emplace(engine_->plan(), /*shards=*/1, Tables());
  }

  // Forward and backward pass, without rows of tables.
  Status RunSlice(Batch batch, const RunInfo& run) {
    DT_TRY_STATUS(engine_->FinishUpdate());
    made_.batch = std::move(batch);
    DT_TRY_STATUS(planner_->Fill(LookupFor::kTrain, made_));
    return engine_->RunSlice({made_, {}}, run).status();
  }
  Engine& engine() { return *engine_; }
  void Cancel() { link_.mesh->Cancel(); }

 private:
  static std::vector<uint32_t> Tables() { return {}; }

  TaskPool pool_{1};
  TeamLink link_;
  std::unique_ptr<CudaAccelerator> card_;
  std::unique_ptr<Engine> engine_;
  std::optional<LookupPlanner> planner_;
  LookupPlan made_;
};

// A perceptron over numbers.
struct Perceptron {
  uint32_t inputs = 20, classes = 3;
  uint32_t vector = 1;  // Numbers of a column.
  std::vector<int64_t> units = {12, 9};
  uint32_t batch = 24;
  float lr = 0.05f;
  std::string optimizer = "adam";
  uint64_t samples = 5;  // The stream of random samples.
  double dropout = 0.1;  // With sgd there is none, unless it is asked for.
  bool drops() const { return optimizer != "sgd" || dropout > 0.1; }

  JobConfig Job() const {
    JobConfig job = test::TinyJob({});
    job.model.tables.clear();
    std::vector<std::string> features;
    for (uint32_t i = 0; i < inputs / vector; ++i) features.push_back("F" + std::to_string(i));
    job.model.nodes = {
        test::TinyNode("deep", "mlp", features, {{"units", units}, {"dropout", dropout}}),
        test::TinyNode("out", "dense", {"deep"}, {{"units", int64_t{classes}}})};
    if (!drops()) job.model.nodes[0].attrs.erase("dropout");
    job.model.losses = {
        {.type = "softmax_cross_entropy", .input = "out", .label = "label", .name = "label"}};
    job.optimizer.spec.kind = FindOptimizer(optimizer)->kind;
    job.optimizer.spec.lr = lr;
    job.optimizer.clip_norm = 0;
    job.train.batch_size = batch;
    return job;
  }
  std::vector<ColumnSpec> Columns() const {
    std::vector<ColumnSpec> columns = {
        test::TinyColumn("label", ColumnType::kFloat, ColumnRole::kLabel)};
    for (uint32_t i = 0; i < inputs / vector; ++i) {
      columns.push_back(test::TinyColumn("F" + std::to_string(i), ColumnType::kFloat));
      columns.back().length = vector;
    }
    return columns;
  }
  float Feature(uint64_t step, uint64_t sample, uint32_t i) const {
    return ToUniform(Philox(samples, step * batch + sample, i)[0]) - 0.5f;
  }
  // The sample's class, by a planted rule.
  uint32_t Label(uint64_t step, uint64_t sample) const {
    float sum = 0;
    for (uint32_t i = 0; i < inputs; ++i) sum += Feature(step, sample, i) * (i % 3 == 0 ? 1 : -1);
    return static_cast<uint32_t>(std::fmod(std::fabs(sum) * 7, classes));
  }
  Batch Slice(Step step, uint32_t slice, uint32_t slices, const Plan& plan) const {
    const uint32_t each = (batch + slices - 1) / slices;
    const uint32_t begin = std::min(batch, slice * each), end = std::min(batch, begin + each);
    Batch made{.step = step,
               .slice = slice,
               .samples = end - begin,
               .step_samples = batch,
               .first_sample = begin};
    made.columns.resize(1 + inputs / vector);
    for (uint64_t s = begin; s < end; ++s) {
      made.columns[0].floats.push_back(static_cast<float>(Label(step, s)));
      for (uint32_t i = 0; i < inputs; ++i) {
        made.columns[1 + i / vector].floats.push_back(Feature(step, s, i));
      }
    }
    const Range own = SamplesOf({plan.devices, 1}, made.samples, plan.devices, plan.position);
    made.part = {static_cast<uint64_t>(own.begin), static_cast<uint64_t>(own.end)};
    return made;
  }
};

inline std::vector<Plan> PlansOf(const Perceptron& model, const TeamSetting& setting) {
  JobConfig job = model.Job();
  const uint32_t ranks = setting.devices * setting.teams;
  job.cluster.workers = ranks;
  job.parallel.data = setting.teams;
  job.parallel.optimizer = {.on = setting.shard, .threshold_bytes = 0, .group = setting.sharers};
  job.parallel.fusion = setting.fusion;
  job.optimizer.clip_norm = setting.clip_norm;
  job.parallel.wire = setting.wire;
  for (const auto& [match, strategy] : setting.cuts) {
    job.parallel.cut.push_back({.match = match, .strategy = *ParseStrategy(strategy), .out = {}});
  }
  scheduler::PlanRequest request{job, model.Columns(), setting.slices};
  request.workers = ranks;
  if (setting.cards) {
    request.accelerator = DeviceInfo{.kind = DeviceKind::kCuda,
                                     .name = "card on the host",
                                     .memory_bytes = uint64_t{1} << 30,
                                     .why_alone = setting.cards_communicate ? "" : "no NCCL"};
    job.parallel.place = {{.match = "*", .device = Device::kGpu, .of = Placed::kOperators}};
  }
  const auto made = scheduler::MakePlans(request, [](std::string_view, const Plan&) {});
  DT_CHECK_MSG(made.ok(), "{}", ToText(made.status()));
  return made->All();
}

// All workers. Cards wait for one another when they join, and leave together.
class TeamRanks {
 public:
  TeamRanks(const Perceptron& model, const TeamSetting& setting)
      : ranks_(setting.devices * setting.teams) {
    const std::vector<Plan> plans = PlansOf(model, setting);
    std::vector<std::unique_ptr<Mesh>> meshes = MakeMemoryMesh(size(), {});
    ForEach([&](uint32_t r) {
      ranks_[r] = std::make_unique<TeamRank>(plans[r % setting.devices], std::move(meshes[r]),
                                             setting, rendezvous_);
    });
  }
  ~TeamRanks() {
    ForEach([&](uint32_t r) { ranks_[r].reset(); });
  }
  TeamRanks(const TeamRanks&) = delete;
  TeamRanks& operator=(const TeamRanks&) = delete;

  uint32_t size() const { return static_cast<uint32_t>(ranks_.size()); }
  TeamRank& operator[](uint32_t rank) { return *ranks_[rank]; }
  // Calls body(rank) on a thread for each.
  template <class Body>
  void ForEach(const Body& body) const {
    std::vector<std::jthread> threads;
    for (uint32_t r = 0; r < size(); ++r) threads.emplace_back([&body, r] { body(r); });
  }

 private:
  HashRendezvous rendezvous_;
  std::vector<std::unique_ptr<TeamRank>> ranks_;
};

}  // namespace dt::worker
