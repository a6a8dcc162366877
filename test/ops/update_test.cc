// Goal: one step of each optimizer equals its published formula, and many steps equal PyTorch's.
// Method: test/ops/data/optimizer_trajectories.txt, recorded by scripts/data/record_optimizers.py,
// is replayed for a dense parameter and for an embedding row. Optimizers that PyTorch does not have
// are compared with their formulas in float64.
#include "ops/update/update.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/update/attrs.h"

namespace dt {
namespace {

using Floats = std::vector<float>;

struct Trajectory {
  OptimizerSpec spec;
  bool has_gaps = false;
  std::string text;  // The line of the case.
  // One item per step; an empty gradient means that the row is not touched.
  std::vector<Floats> grads, values;
};

// Attributes as in the job file: "kind key value …".
Trajectory ParseCase(const std::string& line) {
  Trajectory t;
  t.text = line;
  std::istringstream in(line);
  std::string word, key;
  in >> word >> word;
  Attrs attrs = OptimizerAttrs(t.spec);
  attrs["optimizer"] = word;
  double value = 0, l2 = 0;
  while (in >> key >> value) {
    if (key == "l2")
      l2 = value;
    else if (key == "gaps")
      t.has_gaps = true;
    else
      attrs.at(key) = value;
  }
  t.spec = OptimizerFromAttrs(attrs);
  t.spec.l2 = static_cast<float>(l2);
  return t;
}

std::vector<Trajectory> ReadTrajectories() {
  const char* root = std::getenv("DT_SOURCE_DIR");
  std::ifstream file(std::string(root == nullptr ? "." : root) +
                     "/test/ops/data/optimizer_trajectories.txt");
  std::vector<Trajectory> all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("case ")) all.push_back(ParseCase(line));
    if (!line.starts_with("grad") && !line.starts_with("value")) continue;
    std::istringstream in(line);
    std::string word;
    in >> word;
    Floats numbers;
    for (float x = 0; in >> x;) numbers.push_back(x);
    (word == "grad" ? all.back().grads : all.back().values).push_back(numbers);
  }
  return all;
}

Floats Start() { return {-1.0f, -0.6f, -0.2f, 0.2f, 0.6f, 1.0f}; }

void ExpectClose(const Floats& got, const Floats& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], tolerance * (1 + std::fabs(want[i]))) << "at " << i;
  }
}

Floats StateOf(const OptimizerSpec& spec, size_t dim) {
  Floats state(StateFloats(spec, static_cast<uint32_t>(dim)));
  InitState(spec, state);
  return state;
}

TEST(Update, RowsFollowPyTorch) {
  const std::vector<Trajectory> all = ReadTrajectories();
  ASSERT_EQ(all.size(), 10u);
  for (const Trajectory& t : all) {
    SCOPED_TRACE(t.text);
    Floats value = Start(), state = StateOf(t.spec, value.size());
    Step pushed = 0;  // The step of the last push plus one.
    ASSERT_EQ(t.grads.size(), 12u);
    for (Step step = 0; step < t.grads.size(); ++step) {
      if (!t.grads[step].empty()) {
        Floats grad = t.grads[step];
        RowUpdate(t.spec, {.step = step}).Apply(step + 1 - pushed, value, state, grad);
        pushed = step + 1;
      }
      ExpectClose(value, t.values[step], 4e-6);
    }
  }
}

TEST(Update, DenseParametersFollowPyTorch) {
  for (const Trajectory& t : ReadTrajectories()) {
    // lazy_adam of a dense parameter is Adam, and a dense parameter is updated in every step.
    if (t.spec.kind == OptimizerKind::kLazyAdam || t.has_gaps) continue;
    SCOPED_TRACE(t.text);
    Floats value = Start();
    std::vector<Floats> states;
    std::vector<float*> pointers;
    for (uint32_t s = 0; s < DenseStates(t.spec); ++s) {
      states.emplace_back(value.size(), InitialState(t.spec));
    }
    for (Floats& state : states) pointers.push_back(state.data());
    for (Step step = 0; step < t.grads.size(); ++step) {
      Floats grad = t.grads[step];
      for (size_t i = 0; i < grad.size(); ++i) grad[i] += t.spec.l2 * value[i];
      UpdateDense(t.spec, {.step = step}, value, pointers, grad);
      ExpectClose(value, t.values[step], 4e-6);
    }
  }
}

TEST(Update, PiecesOfADenseParameterGiveTheBitsOfTheWhole) {
  for (const Trajectory& t : ReadTrajectories()) {
    Floats whole(1000), first(1000, 0.5f), second(1000, 0.25f), grad(1000);
    for (size_t i = 0; i < 1000; ++i) {
      whole[i] = static_cast<float>(std::sin(i));
      grad[i] = static_cast<float>(std::cos(i));
    }
    Floats pieces = whole, first2 = first, second2 = second;
    const size_t states = DenseStates(t.spec);
    float* all[] = {first.data(), second.data()};
    UpdateDense(t.spec, {.step = 3}, whole, std::span(all).first(states), grad);
    for (size_t at = 0; at < 1000; at += 333) {
      const size_t size = std::min<size_t>(333, 1000 - at);
      float* part[] = {first2.data() + at, second2.data() + at};
      UpdateDense(t.spec, {.step = 3}, std::span(pieces).subspan(at, size),
                  std::span(part).first(states), std::span(grad).subspan(at, size));
    }
    EXPECT_EQ(whole, pieces) << t.text;
    EXPECT_EQ(first, first2) << t.text;
  }
}

TEST(Update, AdamDecaysBothMomentsOverTheGap) {
  const OptimizerSpec spec{.kind = OptimizerKind::kAdam, .lr = 0.1f};
  Floats value = {1.0f}, state = {0.5f, 0.25f}, grad = {2.0f};
  RowUpdate(spec, {.step = 9}).Apply(4, value, state, grad);
  const double m = 0.9 * 0.5 * std::pow(0.9, 3) + 0.1 * 2.0;
  const double v = 0.999 * 0.25 * std::pow(0.999, 3) + 0.001 * 4.0;
  const double root = std::sqrt(v / (1 - std::pow(0.999, 10)));
  EXPECT_NEAR(state[0], m, 1e-6);
  EXPECT_NEAR(state[1], v, 1e-6);
  EXPECT_NEAR(value[0], 1.0 - 0.1 * m / (1 - std::pow(0.9, 10)) / (root + 1e-8), 1e-6);
}

TEST(Update, AdamWDecaysTheValueForEachStepOfTheGapOrOnce) {
  OptimizerSpec spec{.kind = OptimizerKind::kAdamW, .lr = 0.1f, .weight_decay = 0.5f};
  for (const L2Scope scope : {L2Scope::kGap, L2Scope::kTouched}) {
    spec.l2_scope = scope;
    Floats value = {1.0f}, state = {0.0f, 0.0f}, grad = {0.0f};
    RowUpdate(spec, {.step = 9}).Apply(3, value, state, grad);
    EXPECT_NEAR(value[0], std::pow(0.95, scope == L2Scope::kGap ? 3 : 1), 1e-6);
  }
}

TEST(Update, RowwiseAdagradKeepsTheMeanOfSquares) {
  const OptimizerSpec spec{.kind = OptimizerKind::kRowwiseAdagrad,
                           .lr = 0.1f,
                           .epsilon = 1e-6f,
                           .initial_accumulator = 0.5f};
  Floats value = {1.0f, 2.0f, 3.0f}, state = StateOf(spec, 3), grad = {1.0f, -2.0f, 4.0f};
  ASSERT_EQ(state, Floats({0.5f}));
  RowUpdate(spec, {}).Apply(1, value, state, grad);
  const double sum = 0.5 + (1.0 + 4.0 + 16.0) / 3, rate = 0.1 / (std::sqrt(sum) + 1e-6);
  EXPECT_NEAR(state[0], sum, 1e-6);
  ExpectClose(value,
              {static_cast<float>(1 - rate), static_cast<float>(2 + 2 * rate),
               static_cast<float>(3 - 4 * rate)},
              1e-6);
}

// Algorithm 1 of McMahan et al. for one coordinate, in float64.
double FtrlValue(const OptimizerSpec& spec, double z, double n) {
  if (std::fabs(z) <= spec.ftrl_l1) return 0;
  const double sign = z > 0 ? 1 : -1;
  return -(z - sign * spec.ftrl_l1) / ((spec.ftrl_beta + std::sqrt(n)) / spec.lr + spec.ftrl_l2);
}

TEST(Update, FtrlIsItsAlgorithmAndMakesZeros) {
  const OptimizerSpec spec{.kind = OptimizerKind::kFtrl,
                           .lr = 0.1f,
                           .ftrl_l1 = 0.8f,
                           .ftrl_l2 = 0.1f,
                           .ftrl_beta = 1.0f};
  Floats value = {0.0f, 0.0f}, state = StateOf(spec, 2);
  double w[2] = {0, 0}, z[2] = {0, 0}, n[2] = {0, 0};
  bool was_zero = false;
  for (int step = 0; step < 40; ++step) {
    Floats grad = {static_cast<float>(std::sin(step)),
                   static_cast<float>(0.3 * std::cos(3.0 * step))};
    for (size_t i = 0; i < 2; ++i) {
      const double g = grad[i], sigma = (std::sqrt(n[i] + g * g) - std::sqrt(n[i])) / spec.lr;
      z[i] += g - sigma * w[i];
      n[i] += g * g;
      w[i] = FtrlValue(spec, z[i], n[i]);
      was_zero = was_zero || w[i] == 0;
    }
    RowUpdate(spec, {}).Apply(1, value, state, grad);
    ExpectClose(value, {static_cast<float>(w[0]), static_cast<float>(w[1])}, 1e-5);
  }
  EXPECT_TRUE(was_zero);
}

TEST(Update, L2CountsTheGapOrEachTouch) {
  OptimizerSpec spec{.kind = OptimizerKind::kSgd, .lr = 0.1f, .l2 = 0.5f};
  for (const L2Scope scope : {L2Scope::kGap, L2Scope::kTouched}) {
    spec.l2_scope = scope;
    Floats value = {2.0f}, grad = {1.0f};
    RowUpdate(spec, {.step = 7}).Apply(4, value, {}, grad);
    const double times = scope == L2Scope::kGap ? 4 : 1;
    EXPECT_NEAR(value[0], 2.0 - 0.1 * (1.0 + 0.5 * 2.0 * times), 1e-6);
  }
}

TEST(Update, RowNormIsClippedAfterL2) {
  const OptimizerSpec spec{
      .kind = OptimizerKind::kSgd, .lr = 1.0f, .l2 = 1.0f, .clip_row_norm = 1.0f};
  Floats value = {1.0f, 0.0f}, grad = {2.0f, 4.0f};  // With L2 the gradient is (3, 4), of norm 5.
  RowUpdate(spec, {}).Apply(1, value, {}, grad);
  ExpectClose(value, {0.4f, -0.8f}, 1e-6);
  Floats small = {0.1f, 0.1f}, untouched = {0.0f, 0.0f};
  RowUpdate(spec, {}).Apply(1, untouched, {}, small);
  ExpectClose(untouched, {-0.1f, -0.1f}, 1e-6);
}

TEST(Update, ScheduleScalesTheRate) {
  for (const Trajectory& t : ReadTrajectories()) {
    OptimizerSpec halved = t.spec;
    halved.lr *= 0.5f;
    Floats a = Start(), b = Start(), state_a = StateOf(t.spec, 6), state_b = state_a;
    Floats grad_a = t.grads[0], grad_b = grad_a;
    RowUpdate(t.spec, {.step = 4, .lr_scale = 0.5f}).Apply(1, a, state_a, grad_a);
    RowUpdate(halved, {.step = 4}).Apply(1, b, state_b, grad_b);
    EXPECT_EQ(a, b) << t.text;
  }
}

TEST(Update, AttributesCarryWhatDenseUpdatesRead) {
  OptimizerSpec spec{.kind = OptimizerKind::kFtrl, .lr = 0.3f, .momentum = 0.1f};
  spec.ftrl_l1 = 0.7f, spec.ftrl_l2 = 0.2f, spec.ftrl_beta = 2.0f, spec.weight_decay = 0.01f;
  EXPECT_EQ(OptimizerFromAttrs(OptimizerAttrs(spec)), spec);
}

// The values of one row after a number of steps with gaps.
Floats AfterSteps(const OptimizerSpec& spec) {
  Floats row = Start();
  const size_t dim = row.size();
  const Floats state = StateOf(spec, dim);
  row.insert(row.end(), state.begin(), state.end());
  for (const Step step : {0, 2, 3, 7}) {
    Floats grad(dim);
    for (size_t i = 0; i < dim; ++i) grad[i] = static_cast<float>(std::cos(step + i));
    const std::span<float> all(row);
    RowUpdate(spec, {.step = step}).Apply(2, all.first(dim), all.subspan(dim), grad);
  }
  return row;
}

TEST(Optimizers, EachReadsTheNumbersThatTheListSaysAndNoOther) {
  for (const OptimizerInfo& optimizer : kOptimizers) {
    OptimizerSpec spec{.kind = optimizer.kind, .lr = 0.1f};
    spec.ftrl_l1 = 0.1f;
    const Floats as_it_was = AfterSteps(spec);
    for (const OptimizerNumber& number : kOptimizerNumbers) {
      OptimizerSpec other = spec;
      other.*number.value = 0.5f;
      EXPECT_EQ(AfterSteps(other) != as_it_was, Reads(optimizer, number.name))
          << optimizer.name << " " << number.name;
    }
  }
}

TEST(Optimizers, ReadNumbersThatExist) {
  for (const OptimizerInfo& optimizer : kOptimizers) {
    size_t found = 0;
    for (const OptimizerNumber& number : kOptimizerNumbers) {
      found += Reads(optimizer, number.name) ? 1 : 0;
    }
    const auto bars = std::ranges::count(optimizer.reads, '|');
    EXPECT_EQ(found, static_cast<size_t>(bars) + 1) << optimizer.name;
    EXPECT_EQ(FindOptimizer(optimizer.name), &optimizer);
  }
  EXPECT_EQ(FindOptimizer("ada"), nullptr);
}

TEST(Optimizers, DenseParametersTakeOneWithoutStateForRows) {
  for (const OptimizerInfo& optimizer : kOptimizers) {
    const OptimizerInfo& dense = InfoOf(ForDense(optimizer));
    EXPECT_EQ(dense.row_states, 0u) << optimizer.name;
    EXPECT_EQ(ForDense(dense), dense.kind) << optimizer.name;
  }
}

}  // namespace
}  // namespace dt
