// Goal: workers of a team train the model of one worker. With the same strategies no bit depends on
// the number of teams, on overlap, or on who updates what; a perceptron that is cut in several ways
// over eight workers stays as close to float64 as the whole one does; every worker has its part of
// the weights and of the optimizer's state, and no more. Method: engines in threads over the
// in-memory mesh, with plans of the planner.
#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "common/base/pause.h"
#include "common/dense/dense_file.h"
#include "test/unit/worker/engine/team_ranks.h"

namespace dt::worker {
namespace {

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
  TeamRanks all(model, setting);
  std::vector<uint32_t> owner(setting.slices);
  for (uint32_t k = 0; k < setting.slices; ++k) owner[k] = (k + 1) % setting.teams;
  Trained trained;
  all.ForEach([&](uint32_t r) {
    TeamRank& rank = all[r];
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
  for (uint32_t r = 0; r < all.size(); ++r) {
    Join(all[r].engine().parameters(), trained);
    for (const Node& node : all[r].engine().plan().graph.nodes) {
      const bool communicates = TraitsOf(node.op).kind == OpKind::kCommunication;
      if (communicates && node.device == Device::kGpu) ++trained.between_cards;
    }
  }
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

// Columns of several numbers, of which a device may read a part.
TEST(Team, VectorsAreTheSameAsTheirNumbers) {
  for (const auto& cuts : {decltype(kTwoCuts)(), kTwoCuts}) {
    const TeamSetting setting{.devices = 2, .slices = 2, .cuts = cuts};
    const Trained numbers = TrainTeams({}, setting, 3);
    for (const uint32_t vector : {4, 20}) {
      const Trained vectors = TrainTeams({.vector = vector}, setting, 3);
      EXPECT_EQ(vectors.whole, numbers.whole) << vector;
      EXPECT_EQ(vectors.losses, numbers.losses) << vector;
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

// A worker that gives up a step does not wait for another one's card until the deadline.
TEST(Team, AWorkerThatGivesUpLeavesTheCallsOfCards) {
  const Perceptron model;
  const TeamSetting setting{.devices = 2, .cuts = kTwoCuts, .cards = true};
  TeamRanks all(model, setting);
  Engine& engine = all[0].engine();
  engine.BeginStep(0, std::vector<uint32_t>{0});
  const TimePoint begun = SystemClock().Now();
  std::jthread gives_up([&] {
    PollUntil(begun + milliseconds(300), milliseconds(50), [] { return false; });
    all[0].Cancel();
  });
  // The other worker never comes.
  Status status = all[0].RunSlice(model.Slice(0, 0, 1, engine.plan()), {});
  if (status.ok()) status = engine.FinishExchange();
  EXPECT_EQ(status.code(), StatusCode::kCancelled) << status;
  EXPECT_LT(SystemClock().Now() - begun, seconds(5));
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
