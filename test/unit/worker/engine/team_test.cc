// Goal: workers of a team train the model of one worker. With the same strategies no bit depends on
// the number of teams, on overlap, or on who updates what; a perceptron that is cut in several ways
// over eight workers stays as close to float64 as the whole one does; every worker has its part of
// the weights and of the optimizer's state, and no more. Method: engines in threads over the
// in-memory mesh, with plans of the planner.
#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "common/layout/sample_part.h"
#include "test/support/cuda_on_host/cuda_on_host.h"
#include "test/support/hash_rendezvous.h"
#include "test/unit/worker/engine/training.h"
#include "worker/memory/dense_file.h"

namespace dt::worker {
namespace {

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
      return ConnectNccl(groups,
                         {.card = card, .rank = rank, .rendezvous = rendezvous, .prefix = "t"});
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
    for (uint32_t i = 0; i < inputs; ++i) features.push_back("F" + std::to_string(i));
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
    for (uint32_t i = 0; i < inputs; ++i) {
      columns.push_back(test::TinyColumn("F" + std::to_string(i), ColumnType::kFloat));
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
    made.columns.resize(1 + inputs);
    for (uint64_t s = begin; s < end; ++s) {
      made.columns[0].floats.push_back(static_cast<float>(Label(step, s)));
      for (uint32_t i = 0; i < inputs; ++i) {
        made.columns[1 + i].floats.push_back(Feature(step, s, i));
      }
    }
    const Range own = SamplesOf({plan.devices, 1}, made.samples, plan.devices, plan.position);
    made.part = {static_cast<uint64_t>(own.begin), static_cast<uint64_t>(own.end)};
    return made;
  }
};

struct Trained {
  std::map<std::string, std::vector<float>> whole;  // Weights and state, joined.
  std::vector<double> losses;
  std::vector<uint64_t> bytes;   // By rank: of weights.
  std::vector<uint64_t> states;  // By rank: of the optimizer's state.
  size_t between_cards = 0;      // Collectives of all plans.
};

void Join(const Parameters& parameters, Trained& trained) {
  uint64_t bytes = 0, states = 0;
  for (const Parameters::Array& array : parameters.arrays()) {
    (array.optimizer_state ? states : bytes) += array.values.size() * sizeof(float);
    std::vector<float>& whole = trained.whole[array.name];
    whole.resize(static_cast<size_t>(ElementCount(array.whole)));
    size_t at = 0;
    ForEachRow({array.first, array.shape}, array.whole, [&](int64_t first, int64_t length) {
      for (int64_t i = 0; i < length; ++i)
        whole[static_cast<size_t>(first + i)] = array.values[at++];
    });
  }
  trained.bytes.push_back(bytes);
  trained.states.push_back(states);
}

Trained TrainTeams(const Perceptron& model, const TeamSetting& setting, Step steps) {
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
  const std::vector<Plan> plans = made->All();
  std::vector<std::unique_ptr<Mesh>> meshes = MakeMemoryMesh(ranks, {});
  std::vector<std::unique_ptr<TeamRank>> all;
  HashRendezvous rendezvous;
  all.resize(ranks);
  {
    std::vector<std::jthread> threads;  // Cards wait for one another.
    for (uint32_t r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        all[r] = std::make_unique<TeamRank>(plans[r % setting.devices], std::move(meshes[r]),
                                            setting, rendezvous);
      });
    }
  }
  std::vector<uint32_t> owner(setting.slices);
  for (uint32_t k = 0; k < setting.slices; ++k) owner[k] = (k + 1) % setting.teams;
  Trained trained;
  {
    std::vector<std::jthread> threads;
    for (uint32_t r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        TeamRank& rank = *all[r];
        const Plan& plan = rank.engine().plan();
        for (Step step = 0; step < steps; ++step) {
          rank.engine().BeginStep(step, owner);
          RunInfo run{.seed = 7, .step = step, .step_samples = model.batch};
          for (uint32_t k = 0; k < setting.slices; ++k) {
            if (owner[k] != r / setting.devices) continue;
            Batch batch = model.Slice(step, k, setting.slices, plan);
            run.first_sample = batch.first_sample;
            EXPECT_EQ(ToText(rank.RunSlice(std::move(batch), run)), "");
          }
          EXPECT_EQ(ToText(rank.engine().FinishExchange()), "");
          run.first_sample = 0;
          EXPECT_EQ(ToText(rank.engine().Update(run)), "");
          if (r == 0) trained.losses.push_back(rank.engine().step_losses().front());
        }
        EXPECT_EQ(ToText(rank.engine().FetchParameters()), "");
      });
    }
  }
  for (const auto& rank : all) {
    Join(rank->engine().parameters(), trained);
    for (const Node& node : rank->engine().plan().graph.nodes) {
      const bool communicates = TraitsOf(node.op).kind == OpKind::kCommunication;
      if (communicates && node.device == Device::kGpu) ++trained.between_cards;
    }
  }
  std::vector<std::jthread> ends;  // Cards leave together.
  for (std::unique_ptr<TeamRank>& rank : all) ends.emplace_back([&rank] { rank.reset(); });
  return trained;
}

const std::vector<std::pair<std::string, std::string>> kTwoCuts = {
    {"deep.0.matmul", "((1,2),(2,1))"}, {"deep.1.matmul", "((1,1),(1,2))"}};

// The classes of the loss too.
const std::vector<std::pair<std::string, std::string>> kClassCuts = {
    {"out.matmul", "((1,1),(1,2))"}, {"out.bias_add", "((1,2),(2))"}, {"loss.label", "((1,2))"}};

TEST(Team, NoBitDependsOnTheNumberOfTeams) {
  const Perceptron model;
  for (const auto& cuts : {decltype(kTwoCuts)(), kTwoCuts, kClassCuts}) {
    const uint32_t devices = cuts.empty() ? 3 : 2;
    // The norm of all gradients is above this in every step.
    const TeamSetting one{.devices = devices, .slices = 4, .clip_norm = 0.02f, .cuts = cuts};
    const Trained first = TrainTeams(model, one, 6);
    EXPECT_LT(first.losses.back(), first.losses.front());
    TeamSetting unclipped = one;
    unclipped.clip_norm = 0;
    EXPECT_NE(TrainTeams(model, unclipped, 6).whole, first.whole);
    for (const uint32_t teams : {1, 2, 3, 4}) {
      for (const bool shard : {false, true}) {
        TeamSetting other = one;
        other.teams = teams;
        other.shard = shard;
        other.overlap = teams != 2;
        if (teams >= 2) other.sharers = teams;
        if (teams >= 2) other.fusion = {.bytes = teams == 2 ? uint64_t{1} : 400, .begins = {}};
        if (teams == 4) other.fusion = {.begins = {1, 4}};
        const Trained again = TrainTeams(model, other, 6);
        EXPECT_EQ(again.whole, first.whole)
            << devices << " × " << teams << (shard ? " shared" : "");
        EXPECT_EQ(again.losses, first.losses);
      }
    }
  }
}

// Terms are rounded before they are added, whoever has them, so that no bit depends on the teams.
TEST(Team, GradientsTravelInBf16) {
  const Perceptron model;
  TeamSetting one{.devices = 2, .slices = 4, .wire = "bf16", .cuts = kTwoCuts};
  const Trained first = TrainTeams(model, one, 6);
  for (const uint32_t teams : {2, 3}) {
    for (const bool shard : {false, true}) {
      TeamSetting other = one;
      other.teams = teams;
      other.shard = shard;
      if (teams == 3) other.fusion = {.bytes = 400, .begins = {}};
      const Trained again = TrainTeams(model, other, 6);
      EXPECT_EQ(again.whole, first.whole) << teams << (shard ? " shared" : "");
      EXPECT_EQ(again.losses, first.losses);
    }
  }
  TeamSetting exact = one;
  exact.wire = "fp32";
  const Trained fp32 = TrainTeams(model, exact, 6);
  EXPECT_NE(fp32.whole, first.whole);
  EXPECT_EQ(fp32.losses.front(), first.losses.front());
  EXPECT_NEAR(fp32.losses.back(), first.losses.back(), 0.01 * fp32.losses.back());
}

// Nodes on cards, whose collectives are those of cards, or on copies of what they send.
TEST(Team, CardsTrainTheModelOfTheProcessor) {
  // Adam would make steps of full length of gradients that are only rounding errors.
  const Perceptron model{.lr = 0.5f, .optimizer = "sgd", .dropout = 0.2};
  for (const auto& cuts : {decltype(kTwoCuts)(), kTwoCuts, kClassCuts}) {
    TeamSetting setting{.devices = 2, .teams = 2, .slices = 4, .cuts = cuts};
    const Trained host = TrainTeams(model, setting, 4);
    setting.cards = true;
    for (const bool communicate : {true, false}) {
      setting.cards_communicate = communicate;
      const Trained cards = TrainTeams(model, setting, 4);
      EXPECT_EQ(cards.between_cards > 0, communicate && !cuts.empty());
      for (size_t s = 0; s < host.losses.size(); ++s) {
        EXPECT_NEAR(cards.losses[s], host.losses[s], 1e-6) << communicate;
      }
      EXPECT_LT(cards.losses.back(), cards.losses.front());
    }
  }
}

TEST(Team, WorkersHoldTheirPartsOnly) {
  Perceptron model;
  model.inputs = 64;
  model.units = {64, 64};
  const Trained whole = TrainTeams(model, {.slices = 8}, 1);
  for (const uint32_t n : {2, 4, 8}) {
    const Trained shared = TrainTeams(model, {.teams = n, .slices = 8, .shard = true}, 1);
    for (const uint64_t bytes : shared.states) {
      EXPECT_LE(static_cast<double>(bytes),
                static_cast<double>(whole.states[0]) / n * 1.05 + 64.0 * sizeof(float) * 4);
    }
  }
  // A weight that is cut four ways, and nothing else of its layer but the bias.
  const Trained cut = TrainTeams(
      model, {.devices = 4, .slices = 1, .cuts = {{"deep.*.matmul", "((1,4),(4,1))"}}}, 1);
  const uint64_t layers = 2 * 64 * 64 * sizeof(float);
  const uint64_t rest = whole.bytes[0] - layers;
  for (const uint64_t bytes : cut.bytes) EXPECT_EQ(bytes, layers / 4 + rest);
}

// The perceptron and its training by plain loops.
class InFloat64 {
 public:
  InFloat64(Perceptron model, const std::map<std::string, std::vector<float>>& first)
      : model_(std::move(model)) {
    for (const auto& [name, values] : first) w_[name].assign(values.begin(), values.end());
  }

  void Step(uint64_t step) {
    const size_t layers = model_.units.size() + 1;
    std::map<std::string, std::vector<double>> grads;
    for (uint64_t s = 0; s < model_.batch; ++s) {
      std::vector<std::vector<double>> x(layers + 1);
      for (uint32_t i = 0; i < model_.inputs; ++i) x[0].push_back(model_.Feature(step, s, i));
      for (size_t l = 0; l < layers; ++l) x[l + 1] = Forward(l, x[l]);
      std::vector<double> dy = SoftmaxGradient(x[layers], model_.Label(step, s));
      for (size_t l = layers; l-- > 0;) dy = Backward(l, x[l], x[l + 1], dy, grads);
    }
    for (const auto& [name, grad] : grads) {
      for (size_t i = 0; i < grad.size(); ++i) w_[name][i] -= double{model_.lr} * grad[i];
    }
  }
  const std::map<std::string, std::vector<double>>& weights() const { return w_; }
  // How near an input of a ReLU came to its kink, where a rounding error may change the gradient.
  double nearest() const { return nearest_; }

 private:
  std::string NameOf(size_t layer, const char* part) const {
    const std::string of =
        layer < model_.units.size() ? "deep." + std::to_string(layer) : std::string("out");
    return of + "." + part;
  }
  std::vector<double> Forward(size_t l, const std::vector<double>& x) {
    const std::vector<double>& w = w_.at(NameOf(l, "weight"));
    std::vector<double> y = w_.at(NameOf(l, "bias"));
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t o = 0; o < y.size(); ++o) y[o] += x[i] * w[i * y.size() + o];
    }
    if (l == model_.units.size()) return y;
    for (double& v : y) {
      nearest_ = std::min(nearest_, std::fabs(v));
      v = std::max(v, 0.0);
    }
    return y;
  }
  std::vector<double> SoftmaxGradient(const std::vector<double>& y, uint32_t label) const {
    double sum = 0;
    for (const double v : y) sum += std::exp(v);
    std::vector<double> dy;
    for (size_t c = 0; c < y.size(); ++c) {
      dy.push_back((std::exp(y[c]) / sum - (c == label ? 1 : 0)) / model_.batch);
    }
    return dy;
  }
  std::vector<double> Backward(size_t l, const std::vector<double>& x, const std::vector<double>& y,
                               std::vector<double> dy,
                               std::map<std::string, std::vector<double>>& grads) const {
    const std::vector<double>& w = w_.at(NameOf(l, "weight"));
    std::vector<double>& dw = grads[NameOf(l, "weight")];
    std::vector<double>& db = grads[NameOf(l, "bias")];
    dw.resize(w.size());
    db.resize(dy.size());
    std::vector<double> dx(x.size());
    for (size_t o = 0; o < dy.size(); ++o) {
      if (l < model_.units.size() && y[o] <= 0) dy[o] = 0;
      db[o] += dy[o];
    }
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t o = 0; o < dy.size(); ++o) {
        dw[i * dy.size() + o] += x[i] * dy[o];
        dx[i] += w[i * dy.size() + o] * dy[o];
      }
    }
    return dx;
  }

  Perceptron model_;
  std::map<std::string, std::vector<double>> w_;
  double nearest_ = 1;
};

double Distance(const Trained& trained, const InFloat64& exact) {
  double sum = 0;
  for (const auto& [name, values] : exact.weights()) {
    for (size_t i = 0; i < values.size(); ++i) {
      const double d = double{trained.whole.at(name)[i]} - values[i];
      sum += d * d;
    }
  }
  return std::sqrt(sum);
}

TEST(Team, EightWorkersStayAsCloseToFloat64AsOne) {
  Perceptron model;
  model.inputs = 784;
  model.units = {512, 512};
  model.classes = 10;
  model.batch = 8;
  model.optimizer = "sgd";
  constexpr Step kSteps = 50;
  const auto first = TrainTeams(model, {}, 0).whole;
  // Samples for which no run can be on the other side of a kink.
  const auto trained = [&] {
    InFloat64 exact(model, first);
    for (Step step = 0; step < kSteps; ++step) exact.Step(step);
    return exact;
  };
  InFloat64 exact = trained();
  while (exact.nearest() < 1e-6 && model.samples < 40) {
    ++model.samples;
    exact = trained();
  }
  ASSERT_GE(exact.nearest(), 1e-6);
  const double whole = Distance(TrainTeams(model, {}, kSteps), exact);
  const TeamSetting eight{.devices = 8,
                          .cuts = {{"deep.0.matmul", "((2,4),(4,1))"},
                                   {"deep.0.relu", "((4,1))"},
                                   {"deep.1.matmul", "((1,8),(8,1))"},
                                   {"deep.1.relu", "((8,1))"}}};
  const double cut = Distance(TrainTeams(model, eight, kSteps), exact);
  RecordProperty("whole", std::to_string(whole));
  RecordProperty("cut", std::to_string(cut));
  std::printf("distance from float64 after %d steps: whole %.3g, cut %.3g\n", int{kSteps}, whole,
              cut);
  EXPECT_GT(whole, 0);
  EXPECT_LE(cut, 4 * whole);
}

}  // namespace
}  // namespace dt::worker
