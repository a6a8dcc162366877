// Goal: a table with `scope: dense` follows the dense optimizer, which updates every row at every
// step, within a stated distance. Method: dense_rows.txt, recorded from PyTorch in float64 by
// scripts/data/record_dense_rows.py, has rows of 1,000 steps whose keys are drawn by Zipf; a real
// table gets the same pushes. Times between pushes are from one step to hundreds.
#include "common/rows/missed_updates.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "test/support/one_table.h"

namespace dt::server {
namespace {

constexpr uint32_t kKeysLog2 = 10, kDim = 4, kDraws = 8;
constexpr Key kKeys = Key{1} << kKeysLog2;

// As in the script.
class Draws {
 public:
  double Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) / (1 << 24);
  }

 private:
  uint64_t state_ = 1;
};

struct StepPush {
  std::vector<Key> keys;
  std::vector<float> gradients;
};
StepPush DrawPush(Draws& draws, Step step) {
  StepPush push;
  for (Key key = 0; step == 0 && key < kKeys; ++key) push.keys.push_back(key);
  for (uint32_t i = 0; step > 0 && i < kDraws; ++i) {
    const Key key = static_cast<Key>(std::exp2(kKeysLog2 * draws.Next())) - 1;
    if (std::ranges::find(push.keys, key) == push.keys.end()) push.keys.push_back(key);
  }
  for (size_t i = 0; i < push.keys.size() * kDim; ++i) {
    push.gradients.push_back(static_cast<float>((draws.Next() - 0.5) * 0.01));
  }
  return push;
}

TableSpec DenseSpec(const OptimizerSpec& optimizer) {
  TableSpec spec;
  spec.name = "t";
  spec.id = TableIdOf("t");
  spec.dim = kDim;
  spec.optimizer = optimizer;
  spec.optimizer.scope = UpdateScope::kDense;
  return spec;
}

void FillRows(EmbeddingTable& table) {
  for (Key key = 0; key < kKeys; ++key) {
    std::vector<float> values(kDim);
    for (uint32_t i = 0; i < kDim; ++i) {
      values[i] = static_cast<float>(0.1 * std::cos(static_cast<double>(key + i)));
    }
    table.SetAbsent(key, values);
  }
}

struct Row {
  Step step = 0;
  Key key = 0;
  std::vector<double> values;
};
struct Case {
  std::string text;
  OptimizerSpec optimizer;
  std::vector<Row> rows;
};

Case ParseCase(const std::string& line) {
  Case c{.text = line, .optimizer = {}, .rows = {}};
  std::istringstream in(line);
  std::string name;
  in >> name >> name;
  c.optimizer.kind = FindOptimizer(name)->kind;
  for (float value = 0; in >> name >> value;) {
    const auto number = std::ranges::find(kOptimizerNumbers, name, &OptimizerNumber::name);
    (name == "l2" ? c.optimizer.l2 : c.optimizer.*number->value) = value;
  }
  return c;
}

std::vector<Case> ReadCases() {
  const char* root = std::getenv("DT_SOURCE_DIR");
  std::ifstream file(std::string(root == nullptr ? "." : root) +
                     "/test/unit/server/table/dense_rows.txt");
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("case ")) cases.push_back(ParseCase(line));
    if (!line.starts_with("row ")) continue;
    std::istringstream in(line.substr(4));
    Row& row = cases.back().rows.emplace_back();
    in >> row.step >> row.key;
    for (double x = 0; in >> x;) row.values.push_back(x);
  }
  return cases;
}

// The largest distances of values from the recorded ones.
std::map<Step, double> DistancesOf(const Case& c) {
  test::OneTable table(DenseSpec(c.optimizer));
  FillRows(table);
  std::map<Step, double> distances;
  Draws draws;
  Step step = 0;
  for (const Row& row : c.rows) {
    for (; step < row.step; ++step) {
      const StepPush push = DrawPush(draws, step);
      table.Push(push.keys, push.gradients, {.step = step});
    }
    std::vector<float> got(kDim);
    table.Pull(std::span(&row.key, 1), got, step);
    for (uint32_t i = 0; i < kDim; ++i) {
      distances[step] = std::max(distances[step], std::fabs(got[i] - row.values[i]));
    }
  }
  return distances;
}

TEST(MissedUpdates, RowsFollowTheDenseOptimizersOfPyTorch) {
  // In units of the rate: a step of Adam moves a value by about one.
  const double bounds[] = {0.05, 1.5, 1.5, 0.1, 0.1, 1.5, 1e-5, 1e-5, 1e-5, 0.5};
  const std::vector<Case> cases = ReadCases();
  ASSERT_EQ(cases.size(), std::size(bounds));
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].text);
    const double lr = cases[i].optimizer.lr;
    for (const auto& [step, distance] : DistancesOf(cases[i])) {
      EXPECT_LT(distance / lr, bounds[i]) << "before step " << step;
    }
  }
}

class OneRow {
 public:
  explicit OneRow(const OptimizerSpec& optimizer)
      : table_(DenseSpec(optimizer)), initial_(Read(0)) {}

  void Push(Step step, float gradient, float lr_scale = 1) {
    const std::vector<float> gradients(kDim, gradient);
    table_.Push({&key_, 1}, gradients, {.step = step, .lr_scale = lr_scale});
  }
  float initial() const { return initial_; }
  float Read(Step now) const {
    std::vector<float> values(kDim);
    table_.Pull({&key_, 1}, values, now);
    return values[0];
  }

 private:
  const Key key_ = 7;
  test::OneTable table_;
  const float initial_;
};

TEST(MissedUpdates, ManyStepsAtOnceAreAsAFewAtATime) {
  for (const float l2 : {0.0f, 0.01f}) {
    const OptimizerSpec spec = DenseSpec({.l2 = l2}).optimizer;
    const MissedUpdates missed(spec);
    std::vector<float> value = {0.5f}, state = {1.0f, 0.1f, spec.lr};
    std::vector<float> whole = value, whole_state = state;
    missed.Apply({500, 600}, whole, whole_state);
    for (Step step = 500; step < 600; step += 2) missed.Apply({step, step + 2}, value, state);
    EXPECT_LT(whole[0], 0.5f - 10 * spec.lr);
    EXPECT_NEAR(value[0], whole[0], 0.2 * spec.lr) << "l2 " << l2;
    EXPECT_NEAR(state[1] / whole_state[1], 1, 1e-3) << "l2 " << l2;
    missed.Apply({600, 600}, value, state);
    missed.Apply({601, 600}, value, state);
    EXPECT_NEAR(value[0], whole[0], 0.2 * spec.lr) << "no steps, no change";
  }
}

TEST(MissedUpdates, ARowKeepsTheRateOfItsLastPush) {
  OneRow warm({}), cold({});
  warm.Push(500, 1.0f, 1.0f);
  cold.Push(500, 1.0f, 0.1f);
  const float moved = warm.Read(520) - warm.Read(501);
  EXPECT_NEAR((cold.Read(520) - cold.Read(501)) / moved, 0.1, 1e-3);
}

TEST(MissedUpdates, ARowThatWasNeverPushedStays) {
  OneRow row({.kind = OptimizerKind::kSgd, .lr = 0.1f, .l2 = 0.1f});
  const float before = row.Read(0);
  EXPECT_EQ(row.Read(50), before);
  row.Push(50, 0.0f);
  EXPECT_NEAR(row.Read(51) / before, 0.99, 1e-5) << "its first step";
  EXPECT_NEAR(row.Read(61) / before, std::pow(0.99, 11), 1e-5);
}

TEST(MissedUpdates, L2TakesAValueToZeroAlsoIfEpsilonIs0) {
  OneRow row({.epsilon = 0, .l2 = 1e-3f});
  row.Push(5, 1.0f);
  EXPECT_NEAR(row.Read(1'000'000), 0, 1e-3);
  EXPECT_NEAR(row.Read(100'000'000), 0, 1e-3) << "the moments are 0 by then";
}

// Against a loop over all steps in float64.
TEST(MissedUpdates, RowwiseAdagradShrinksByL2) {
  OptimizerSpec spec{.kind = OptimizerKind::kRowwiseAdagrad, .lr = 0.01f, .l2 = 0.01f};
  OneRow row(spec);
  row.Push(0, 0.5f);
  double value = row.Read(1), sum = 0.25;
  for (Step step = 1; step < 3000; ++step) {
    const double gradient = spec.l2 * value;
    sum += gradient * gradient;
    value -= spec.lr * gradient / std::sqrt(sum);
  }
  EXPECT_NEAR(row.Read(3000), value, 1e-3 * std::fabs(value));
}

}  // namespace
}  // namespace dt::server
