#include "server/table/embedding_table.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "test/support/one_table.h"

namespace dt::server {
namespace {

using test::OneTable;

TableSpec SpecOf(OptimizerKind kind, uint32_t dim = 4) {
  TableSpec spec;
  spec.name = "t";
  spec.id = TableIdOf("t");
  spec.dim = dim;
  spec.optimizer.kind = kind;
  spec.optimizer.lr = 1.0f;
  spec.seed = 11;
  return spec;
}

std::vector<float> PullOf(const EmbeddingTable& table, const std::vector<Key>& keys) {
  std::vector<float> out(keys.size() * table.dim());
  table.Pull(keys, out);
  return out;
}

TEST(EmbeddingTable, PullCreatesNothingAndReadsInitialValues) {
  OneTable table(SpecOf(OptimizerKind::kSgd));
  const auto first = PullOf(table, {7, 8});
  EXPECT_EQ(PullOf(table, {8, 7}), (std::vector<float>{first[4], first[5], first[6], first[7],
                                                       first[0], first[1], first[2], first[3]}));
  EXPECT_EQ(table.rows(), 0u);
  EXPECT_NE(first[0], first[4]);
}

TEST(EmbeddingTable, InitialValuesFollowTheirSpecification) {
  TableSpec spec = SpecOf(OptimizerKind::kSgd, 64);
  std::vector<Key> keys(200);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * 31;
  struct Case {
    InitSpec init;
    double mean, deviation;
  };
  for (const Case& c :
       {Case{{InitKind::kZeros, 9}, 0, 0}, Case{{InitKind::kConstant, 0.5f}, 0.5, 0},
        Case{{InitKind::kNormal, 0.1f}, 0, 0.1},
        Case{{InitKind::kUniform, 0.3f}, 0, 0.3 / std::sqrt(3.0)}}) {
    spec.init = c.init;
    const auto values = PullOf(OneTable(spec), keys);
    double sum = 0, squares = 0;
    for (const float v : values) sum += v, squares += double{v} * v;
    const auto n = static_cast<double>(values.size());
    EXPECT_NEAR(sum / n, c.mean, 0.01);
    EXPECT_NEAR(std::sqrt(std::max(0.0, squares / n - c.mean * c.mean)), c.deviation, 0.01);
  }
}

TEST(EmbeddingTable, InitialValuesDependOnSeedAndTable) {
  TableSpec spec = SpecOf(OptimizerKind::kSgd);
  const auto a = PullOf(OneTable(spec), {1});
  spec.seed = 12;
  EXPECT_NE(PullOf(OneTable(spec), {1}), a);
  spec.seed = 11;
  spec.id = TableIdOf("u");
  EXPECT_NE(PullOf(OneTable(spec), {1}), a);
}

TEST(EmbeddingTable, FirstPushMakesTheRowFromItsInitialValue) {
  OneTable table(SpecOf(OptimizerKind::kSgd));
  auto want = PullOf(table, {5});
  std::vector<float> grad = {1, 2, 3, 4};
  table.Push(std::vector<Key>{5}, grad, {.step = 0});
  for (size_t i = 0; i < 4; ++i) want[i] -= static_cast<float>(i + 1);
  EXPECT_EQ(PullOf(table, {5}), want);
  EXPECT_EQ(table.rows(), 1u);
}

TEST(EmbeddingTable, RowsOfBf16ReadTheSameBeforeAndAfterTheyAreMade) {
  TableSpec spec = SpecOf(OptimizerKind::kSgd, 5);
  spec.dtype = FloatFormat::kBf16;
  OneTable table(spec);
  const std::vector<Key> keys = {1, 2, 3};
  const auto before = PullOf(table, keys);
  table.Push(keys, std::vector<float>(15), {.step = 0});
  EXPECT_EQ(PullOf(table, keys), before);
  EXPECT_EQ(table.record_bytes(), 12 + sizeof(Step));  // Padded to a multiple of four bytes.
  const OneTable plain(SpecOf(OptimizerKind::kSgd, 5));
  const auto exact = PullOf(plain, keys);
  EXPECT_NE(before, exact);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(before[i], exact[i], std::abs(exact[i]) * 0x1p-7f);
  }
}

TEST(EmbeddingTable, GapIsCountedFromTheLastPush) {
  TableSpec spec = SpecOf(OptimizerKind::kSgd, 1);
  spec.init = {InitKind::kConstant, 1.0f};
  spec.optimizer.l2 = 0.125f;
  OneTable table(spec);
  const auto push = [&](Step step) {
    std::vector<float> grad = {0};
    table.Push(std::vector<Key>{1}, grad, {.step = step});
    return PullOf(table, {1})[0];
  };
  EXPECT_EQ(push(1), 1.0f - 0.25f);  // The row was never pushed, so two steps count: 0 and 1.
  EXPECT_EQ(push(2), 0.75f - 0.75f * 0.125f);  // The next step counts once.
  const float before = PullOf(table, {1})[0];
  EXPECT_FLOAT_EQ(push(6), before - before * 0.5f);  // Four steps count.
}

TEST(EmbeddingTable, RateScaleTouchesScheduledTablesOnly) {
  for (const bool scheduled : {true, false}) {
    TableSpec spec = SpecOf(OptimizerKind::kSgd, 1);
    spec.init = {InitKind::kZeros, 0};
    spec.scheduled = scheduled;
    OneTable table(spec);
    std::vector<float> grad = {1};
    table.Push(std::vector<Key>{1}, grad, {.step = 0, .lr_scale = 0.5f});
    EXPECT_EQ(PullOf(table, {1})[0], scheduled ? -0.5f : -1.0f);
  }
}

TEST(EmbeddingTable, AbsentRowsInEvaluationReadAsConfigured) {
  TableSpec spec = SpecOf(OptimizerKind::kSgd, 2);
  spec.init = {InitKind::kConstant, 3};
  std::vector<float> out(4);
  OneTable initial(spec);
  initial.Evaluate(std::vector<Key>{1, 2}, out);
  EXPECT_EQ(out, (std::vector<float>{3, 3, 3, 3}));
  spec.eval_default = EvalDefault::kZeros;
  OneTable zeros(spec);
  std::vector<float> grad = {1, 1};
  zeros.Push(std::vector<Key>{2}, grad, {.step = 0});
  zeros.Evaluate(std::vector<Key>{1, 2}, out);
  EXPECT_EQ(out, (std::vector<float>{0, 0, 2, 2}));
}

TEST(EmbeddingTable, ManyShortRunsAreServedAsOneByOne) {
  OneTable wide(SpecOf(OptimizerKind::kAdam, 40)), narrow(SpecOf(OptimizerKind::kAdagrad, 3));
  OneTable wide_alone(wide.spec()), narrow_alone(narrow.spec());
  const RowUpdate adam(wide.spec().optimizer, {.step = 4});
  const RowUpdate adagrad(narrow.spec().optimizer, {.step = 4});
  std::vector<Key> keys(600);
  std::vector<float> gradients(keys.size() * 40);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * i;
  for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = static_cast<float>(i % 7) - 3;
  std::vector<EmbeddingTable::PushRun> pushes;
  std::vector<EmbeddingTable::PullRun> pulls;
  std::vector<float> got(keys.size() * 40), want(got.size());
  for (size_t begin = 0, length = 0; begin < keys.size(); begin += length) {
    length = std::min<size_t>(begin % 13, keys.size() - begin);  // Some runs are empty.
    if (begin % 13 == 0) length = 1;
    const auto run = std::span(keys).subspan(begin, length);
    const bool to_wide = begin % 2 == 0;
    const size_t dim = to_wide ? 40 : 3;
    const auto grads = std::span(gradients).subspan(begin * 40, length * dim);
    pushes.push_back({to_wide ? &wide : &narrow, run, grads.data(), to_wide ? &adam : &adagrad});
    pushes.push_back({to_wide ? &narrow : &wide, {}, nullptr, nullptr});
    pulls.push_back({to_wide ? &wide : &narrow, run, got.data() + begin * 40});
    OneTable& alone = to_wide ? wide_alone : narrow_alone;
    alone.Push(run, grads, {.step = 4});
    alone.Pull(run, std::span(want).subspan(begin * 40, length * dim));
  }
  EmbeddingTable::Push(pushes, 4);
  EmbeddingTable::Pull(pulls, false);
  EXPECT_EQ(got, want);
  EXPECT_EQ(wide.rows(), wide_alone.rows());
}

TEST(EmbeddingTable, RestoredRowsGoOnAsTheyWere) {
  for (const auto kind :
       {OptimizerKind::kAdam, OptimizerKind::kRowwiseAdagrad, OptimizerKind::kFtrl}) {
    OneTable table(SpecOf(kind, 3)), copy(SpecOf(kind, 3));
    const std::vector<Key> keys = {1, 2, 3};
    const auto push = [&](OneTable& to, Step step) {
      std::vector<float> grads = {1, -2, 3, -4, 5, -6, 7, -8, 9};
      to.Push(keys, grads, {.step = step});
    };
    push(table, 0);
    push(table, 3);
    for (const KeyRow& row : table.SortedRows()) {
      ASSERT_TRUE(copy.Restore(row.key, table.Record(row)).ok());
    }
    push(table, 5);
    push(copy, 5);
    EXPECT_EQ(PullOf(copy, keys), PullOf(table, keys));
    EXPECT_FALSE(copy.Restore(1, table.Record({1, 0})).ok());
    EXPECT_FALSE(copy.Restore(9, std::vector<std::byte>(8)).ok());
  }
}

}  // namespace
}  // namespace dt::server
