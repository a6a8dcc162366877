// Method: random batches with several tables and kinds of lookups; every list of the plan is
// compared with its definition in common/graph/graph.h, and the order of the groups is checked.
#include "worker/lookup/lookup_planner.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "common/base/hash.h"

namespace dt::worker {
namespace {

constexpr uint32_t kShards = 16;

// Column 0 has length 2 and weights, column 1 has length 1, column 2 is ragged with weights.
Plan MakeTestPlan() {
  Plan plan;
  Graph& graph = plan.graph;
  for (const char* name : {"first", "second"}) {
    graph.tables.push_back({.name = name, .id = TableIdOf(name), .dim = 4});
  }
  graph.lookups = {
      {.name = "fixed", .table = 0, .columns = {0}, .length = 2, .weighted = true},
      {.name = "joined", .table = 1, .columns = {0, 1}, .length = 3, .weighted = true},
      {.name = "ragged", .table = 0, .columns = {2}, .length = 0, .weighted = true},
      {.name = "plain", .table = 0, .columns = {1}, .length = 1},
  };
  return plan;
}

Batch RandomBatch(std::mt19937_64& random, uint32_t samples) {
  Batch batch;
  batch.samples = samples;
  batch.columns.resize(3);
  const auto fill = [&](BatchColumn& column, size_t keys, bool weighted) {
    for (size_t i = 0; i < keys; ++i) {
      column.keys.push_back(random() % 200);
      if (weighted) column.weights.push_back(static_cast<float>(random() % 100));
    }
  };
  fill(batch.columns[0], samples * 2, true);
  fill(batch.columns[1], samples, false);
  batch.columns[2].offsets.push_back(0);
  for (uint32_t b = 0; b < samples; ++b) {
    batch.columns[2].offsets.push_back(batch.columns[2].offsets.back() + random() % 4);
  }
  fill(batch.columns[2], batch.columns[2].offsets.back(), true);
  return batch;
}

// A planner and its output.
struct Filling {
  const Plan plan;
  LookupPlanner planner;
  std::mt19937_64 random;
  LookupPlan made;

  Filling(Plan of, std::vector<uint32_t> ids, uint64_t seed)
      : plan(std::move(of)), planner(plan, kShards, std::move(ids)), random(seed) {}
  Status Fill(uint32_t samples, LookupFor purpose = LookupFor::kTrain) {
    made.batch = RandomBatch(random, samples);
    return planner.Fill(purpose, made);
  }
};

// The ids and weights of a lookup, sample by sample, made from the definition.
struct Occurrence {
  Key key;
  float weight;
};
std::vector<Occurrence> OccurrencesOf(const LookupSpec& spec, const Batch& batch) {
  std::vector<Occurrence> all;
  for (uint32_t b = 0; b < batch.samples; ++b) {
    for (const uint32_t c : spec.columns) {
      const BatchColumn& column = batch.columns[c];
      const size_t length = column.keys.size() / batch.samples;
      const size_t begin = spec.length == 0 ? column.offsets[b] : b * length;
      const size_t end = spec.length == 0 ? column.offsets[b + 1] : begin + length;
      for (size_t i = begin; i < end; ++i) {
        all.push_back({column.keys[i], column.weights.empty() ? 1.0f : column.weights[i]});
      }
    }
  }
  return all;
}

void ExpectListsHold(const Plan& plan, const LookupPlan& made) {
  for (size_t l = 0; l < plan.graph.lookups.size(); ++l) {
    const LookupSpec& spec = plan.graph.lookups[l];
    const LookupLists& lists = made.lookups[l];
    const std::vector<Key>& keys = made.tables[spec.table];
    const std::vector<Occurrence> all = OccurrencesOf(spec, made.batch);
    ASSERT_EQ(lists.index.size(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(keys[lists.index[i]], all[i].key) << spec.name;
      if (spec.weighted) {
        ASSERT_EQ(lists.weights[i], all[i].weight) << spec.name;
      }
    }
    if (spec.length == 0) {
      const std::vector<uint32_t>& offsets = made.batch.columns[spec.columns[0]].offsets;
      ASSERT_EQ(lists.ends, std::vector<uint32_t>(offsets.begin() + 1, offsets.end()));
    }
    ASSERT_EQ(lists.row_ends.size(), keys.size());
    std::vector<uint32_t> expected;
    for (uint32_t u = 0; u < keys.size(); ++u) {
      for (uint32_t i = 0; i < lists.index.size(); ++i) {
        if (lists.index[i] == u) expected.push_back(i);
      }
      ASSERT_EQ(lists.row_ends[u], expected.size());
    }
    ASSERT_EQ(lists.row_order, expected);
  }
}

void ExpectOrder(const Plan& plan, const LookupPlan& made) {
  std::vector<size_t> rows(plan.graph.tables.size());
  for (size_t i = 0; i < made.groups.size(); ++i) {
    const RowGroup& group = made.groups[i];
    ASSERT_GT(group.rows, 0);
    ASSERT_EQ(group.first, rows[group.table]);  // Rows are numbered in the order of shards.
    if (i > 0) {
      const RowGroup& before = made.groups[i - 1];
      ASSERT_LT(std::pair(before.shard, before.table), std::pair(group.shard, group.table));
    }
    rows[group.table] += group.rows;
    for (uint32_t u = group.first; u < group.first + group.rows; ++u) {
      const Key key = made.tables[group.table][u];
      ASSERT_EQ(ShardOf(plan.graph.tables[group.table].id, key, kShards), group.shard);
    }
  }
  for (size_t t = 0; t < rows.size(); ++t) {
    ASSERT_EQ(rows[t], made.tables[t].size());
    ASSERT_EQ(std::set<Key>(made.tables[t].begin(), made.tables[t].end()).size(), rows[t]);
  }
}

TEST(LookupPlannerTest, EveryListIsWhatTheGraphSaysOverRecycledPlans) {
  Filling filling(MakeTestPlan(), {0, 1}, 11);
  for (const uint32_t samples : {50, 1, 200, 0, 3, 120}) {
    ASSERT_TRUE(filling.Fill(samples).ok());
    ExpectListsHold(filling.plan, filling.made);
    ExpectOrder(filling.plan, filling.made);
  }
}

// Tables 0 and 1 have the same keys, table 2 the same in another order; tables 3 and 4 have the
// keys of two lookups each, and table 5 those of both in the other order.
Plan PlanOfTablesAlike() {
  Plan plan;
  Graph& graph = plan.graph;
  for (const char* name : {"one", "alike", "turned", "two", "two alike", "two turned"}) {
    graph.tables.push_back({.name = name, .id = TableIdOf(name), .dim = 4});
  }
  graph.lookups = {
      {.name = "a0", .table = 0, .columns = {0, 1}, .length = 3},
      {.name = "b1", .table = 4, .columns = {1, 0}, .length = 3, .weighted = true},
      {.name = "c0", .table = 2, .columns = {1, 0}, .length = 3},
      {.name = "d0", .table = 3, .columns = {1, 0}, .length = 3},
      {.name = "a1", .table = 1, .columns = {0, 1}, .length = 3, .weighted = true},
      {.name = "d1", .table = 3, .columns = {2}, .length = 0},
      {.name = "b2", .table = 4, .columns = {2}, .length = 0, .weighted = true},
      {.name = "e0", .table = 5, .columns = {2}, .length = 0},
      {.name = "e1", .table = 5, .columns = {1, 0}, .length = 3},
  };
  return plan;
}

// The plan with only one of its tables, and its lookups.
Plan OnlyTable(const Plan& plan, uint32_t table) {
  Plan only;
  only.graph.tables = {plan.graph.tables[table]};
  for (LookupSpec lookup : plan.graph.lookups) {
    if (std::exchange(lookup.table, 0) == table) only.graph.lookups.push_back(lookup);
  }
  return only;
}

TEST(LookupPlannerTest, TablesThatSeeTheSameKeysAreAsEachAlone) {
  Plan plan = PlanOfTablesAlike();
  plan.graph.tables[1].store = 0;
  Filling filling(plan, {0, 1, 2, 3, 4, 5}, 17);
  const LookupPlan& made = filling.made;
  for (const uint32_t samples : {120, 1, 0, 77}) {
    ASSERT_TRUE(filling.Fill(samples).ok());
    ExpectListsHold(plan, made);
    for (uint32_t t = 0; t < plan.graph.tables.size(); ++t) {
      const Plan only = OnlyTable(plan, t);
      LookupPlanner alone(only, kShards, {t});
      LookupPlan own;
      own.batch = made.batch;
      ASSERT_TRUE(alone.Fill(LookupFor::kTrain, own).ok());
      ASSERT_EQ(made.tables[t], own.tables[0]);
      size_t k = 0;
      for (size_t l = 0; l < plan.graph.lookups.size(); ++l) {
        if (plan.graph.lookups[l].table != t) continue;
        const LookupLists &a = made.lookups[l], &b = own.lookups[k++];
        ASSERT_EQ(a.index, b.index) << plan.graph.lookups[l].name;
        ASSERT_EQ(a.ends, b.ends);
        ASSERT_EQ(a.weights, b.weights);
        ASSERT_EQ(a.row_ends, b.row_ends);
        ASSERT_EQ(a.row_order, b.row_order);
      }
      std::vector<std::pair<ShardId, uint32_t>> all, of_own;
      for (const RowGroup& g : made.groups) {
        if (g.table == t) all.emplace_back(g.shard, g.first), all.emplace_back(g.shard, g.rows);
      }
      for (const RowGroup& g : own.groups) {
        of_own.emplace_back(g.shard, g.first), of_own.emplace_back(g.shard, g.rows);
      }
      ASSERT_EQ(all, of_own);
    }
  }
}

TEST(LookupPlannerTest, EveryTableThatSeesTheKeysChecksThem) {
  Plan plan = PlanOfTablesAlike();
  plan.columns.resize(3);
  plan.columns[1].name = "plain";
  plan.graph.tables[1].keys_end = 200;
  Filling filling(plan, {0, 1, 2, 3, 4, 5}, 2);
  for (uint64_t b = 0; b < 50; ++b) filling.made.rows.push_back(b);
  ASSERT_TRUE(filling.Fill(50).ok());
  filling.made.batch.columns[1].keys[7] = 200;
  const std::string text = ToText(filling.planner.Fill(LookupFor::kTrain, filling.made));
  EXPECT_NE(text.find("column plain of sample 8 holds key 200; table alike has rows 0 to 199"),
            std::string::npos)
      << text;
}

TEST(LookupPlannerTest, TablesTravelInTheJobsOrder) {
  Filling filling(MakeTestPlan(), {7, 2}, 3);
  ASSERT_TRUE(filling.Fill(100).ok());
  const std::vector<RowGroup>& groups = filling.made.groups;
  for (size_t i = 1; i < groups.size(); ++i) {
    if (groups[i - 1].shard == groups[i].shard) {
      EXPECT_GT(groups[i - 1].table, groups[i].table);
    }
  }
}

TEST(LookupPlannerTest, TheSameBatchGivesTheSamePlanWhateverCameBefore) {
  Filling used(MakeTestPlan(), {0, 1}, 5), fresh(MakeTestPlan(), {0, 1}, 6);
  ASSERT_TRUE(used.Fill(300).ok());
  fresh.random = used.random;
  ASSERT_TRUE(used.Fill(80).ok());
  ASSERT_TRUE(fresh.Fill(80).ok());
  EXPECT_EQ(used.made.tables, fresh.made.tables);
  EXPECT_EQ(used.made.lookups[1].index, fresh.made.lookups[1].index);
}

// Lists that evaluation does not fill must be empty; otherwise they would be used as lists of this
// batch.
TEST(LookupPlannerTest, EvaluationKeepsNoListsOfTraining) {
  Filling filling(MakeTestPlan(), {0, 1}, 3);
  ASSERT_TRUE(filling.Fill(20).ok());
  ASSERT_TRUE(filling.Fill(40, LookupFor::kEvaluate).ok());
  for (const LookupLists& lists : filling.made.lookups) {
    EXPECT_FALSE(lists.index.empty());
    EXPECT_TRUE(lists.row_ends.empty());
    EXPECT_TRUE(lists.row_order.empty());
  }
}

// Their keys are numbered like those of other tables, but are not in any group.
TEST(LookupPlannerTest, TablesOnTheWorkerDoNotTravel) {
  Plan plan = MakeTestPlan();
  plan.graph.tables[0].store = 1;
  Filling filling(plan, {0, 1}, 11);
  const LookupPlan& made = filling.made;
  ASSERT_TRUE(filling.Fill(90).ok());
  ExpectListsHold(plan, made);
  EXPECT_FALSE(made.tables[0].empty());
  size_t rows = 0;
  for (const RowGroup& group : made.groups) {
    EXPECT_EQ(group.table, 1u);
    rows += group.rows;
  }
  EXPECT_EQ(rows, made.tables[1].size());
}

TEST(LookupPlannerTest, AKeyBeyondTheTablesRowsIsNamed) {
  Plan plan = MakeTestPlan();
  plan.columns.resize(3);
  plan.columns[0].name = "pair";
  plan.columns[2].name = "tags";
  plan.graph.tables[0].keys_end = 200;
  Filling filling(plan, {0, 1}, 2);
  LookupPlan& made = filling.made;
  for (uint64_t b = 0; b < 50; ++b) made.rows.push_back(1000 + b);
  ASSERT_TRUE(filling.Fill(50).ok());

  made.batch.columns[0].keys[2 * 7 + 1] = 200;
  const Status fixed = filling.planner.Fill(LookupFor::kTrain, made);
  EXPECT_EQ(fixed.code(), StatusCode::kOutOfRange);
  EXPECT_NE(ToText(fixed).find("column pair of sample 1008 holds key 200; table first has rows 0 "
                               "to 199"),
            std::string::npos)
      << ToText(fixed);

  made.batch.columns[0].keys[2 * 7 + 1] = 1;
  const auto long_list = std::ranges::adjacent_find(
      made.batch.columns[2].offsets, [](uint32_t a, uint32_t b) { return b - a >= 2; });
  const auto sample = static_cast<size_t>(long_list - made.batch.columns[2].offsets.begin());
  made.batch.columns[2].keys[*long_list + 1] = 12345;
  const Status ragged = filling.planner.Fill(LookupFor::kEvaluate, made);
  const std::string text = fmt::format("column tags of sample {} holds key 12345", 1001 + sample);
  EXPECT_NE(ToText(ragged).find(text), std::string::npos) << ToText(ragged);
}

}  // namespace
}  // namespace dt::worker
