// Goal: losses become the operators that they name, with the right inputs; messages about mistakes
// say where they are and what to do; a loss of weight 0 does not change a bit of the other losses'
// gradients.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/plan/plan.h"
#include "test/support/interpreter.h"
#include "test/support/tiny_model.h"

namespace dt::scheduler {
namespace {

using test::TinyColumns;
using test::TinyLosses;
using test::TinyMoreLosses;
using ::testing::HasSubstr;

std::vector<std::string> InputsOf(const Graph& graph, const std::string& node) {
  const auto found = std::ranges::find(graph.nodes, node, &Node::name);
  DT_CHECK_MSG(found != graph.nodes.end(), "no node {}", node);
  std::vector<std::string> names;
  for (const ValueIndex v : found->inputs) names.push_back(graph.value(v).name);
  return names;
}

Result<Plan> PlanOf(const JobConfig& job) { return MakePlan({job, TinyColumns(), 2}); }

TEST(LossesTest, ReadWhatTheyName) {
  const Result<Plan> plan = PlanOf(TinyLosses());
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Graph& graph = plan->graph;
  using Names = std::vector<std::string>;
  EXPECT_EQ(InputsOf(graph, "loss.mse"), (Names{"logit.bias_add", "label"}));
  EXPECT_EQ(InputsOf(graph, "loss.softmax_cross_entropy"), (Names{"user.1.tanh", "label"}));
  EXPECT_EQ(InputsOf(graph, "loss.in_batch_softmax"),
            (Names{"user.1.tanh", "item.1.tanh", "label", "keys(C1)"}));
  EXPECT_EQ(InputsOf(graph, "loss.all"), (Names{"item.1.tanh", "user.1.tanh", "I1"}));
  const auto pairs = std::ranges::find(graph.nodes, "loss.in_batch_softmax", &Node::name);
  EXPECT_EQ(FloatAttr(pairs->attrs, "temperature", 1), 0.5);
  ASSERT_EQ(graph.losses.size(), 5u);
  EXPECT_EQ(graph.losses[2].weight, 2.0f);
  EXPECT_EQ(graph.losses[3].output, pairs->outputs[1]);
  EXPECT_EQ(graph.losses[4].label, kNone);
}

TEST(LossesTest, SampleWeightsReachEveryLoss) {
  std::vector<ColumnSpec> columns = TinyColumns();
  columns.push_back(test::TinyColumn("w", ColumnType::kFloat, ColumnRole::kWeight));
  const JobConfig job = TinyLosses();
  const Result<Plan> plan = MakePlan({job, columns, 1});
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const LossConfig& loss : job.model.losses) {
    EXPECT_THAT(InputsOf(plan->graph, "loss." + loss.name), ::testing::Contains("w")) << loss.name;
  }
}

TEST(LossesTest, WeightZeroChangesNoBitOfTheOthersGradients) {
  JobConfig one = TinyLosses(), two = one;
  one.model.losses.resize(1);
  for (size_t l = 1; l < two.model.losses.size(); ++l) two.model.losses[l].weight = 0;
  const auto grads = [](const JobConfig& job) {
    const Result<Plan> plan = PlanOf(job);
    DT_CHECK_MSG(plan.ok(), "{}", ToText(plan.status()));
    TaskPool pool(1);
    test::Tensors parameters = test::FirstParameters(plan->graph, 11);
    RunInfo run;
    run.step_samples = 7;
    const test::Tensors values =
        test::Interpreter(plan->graph, pool)
            .RunSlice(test::RandomSlice(plan->graph, 7, 6), parameters, run);
    std::map<std::string, std::vector<double>> by_name;
    const auto take = [&](ValueIndex of, ValueIndex grad) {
      const test::HostTensor& tensor = values.at(grad);
      std::vector<double>& to = by_name[plan->graph.value(of).name];
      for (size_t i = 0; i < tensor.size(); ++i) to.push_back(tensor.at(i));
    };
    for (const ParameterSpec& p : plan->graph.parameters) {
      if (p.grad != kNone) take(p.value, p.grad);
    }
    for (const TableUse& table : plan->graph.tables) take(table.rows, table.row_grad);
    return by_name;
  };
  const auto alone = grads(one);
  EXPECT_GT(alone.size(), 8u);
  EXPECT_EQ(grads(two), alone);
}

TEST(LossesTest, ScoresOfNegativesStandBesideThatOfTheItem) {
  std::vector<ColumnSpec> columns = TinyColumns();
  const Result<Plan> plan = MakePlan({TinyMoreLosses(), columns, 1});
  ASSERT_TRUE(plan.ok()) << plan.status();
  using Names = std::vector<std::string>;
  const Graph& graph = plan->graph;
  EXPECT_EQ(InputsOf(graph, "loss.bpr.scores"), (Names{"logit.bias_add", "others.bias_add"}));
  EXPECT_EQ(InputsOf(graph, "loss.bpr"), (Names{"loss.bpr.scores"}));
  EXPECT_EQ(InputsOf(graph, "loss.sampled_softmax"),
            (Names{"loss.sampled_softmax.scores", "label"}));
  EXPECT_EQ(graph.value(graph.losses[5].output).shape[1], Const(5));
  columns.push_back(test::TinyColumn("w", ColumnType::kFloat, ColumnRole::kWeight));
  const Result<Plan> weighted = MakePlan({TinyMoreLosses(), columns, 1});
  ASSERT_TRUE(weighted.ok()) << weighted.status();
  EXPECT_THAT(InputsOf(weighted->graph, "loss.bpr"), ::testing::Contains("w"));
  EXPECT_EQ(InputsOf(weighted->graph, "loss.sampled_softmax.weight"), (Names{"label", "w"}));
}

TEST(LossesTest, PatternsReadNoDerivedColumn) {
  std::vector<ColumnSpec> columns = TinyColumns();
  columns.push_back(test::TinyColumn("I9", ColumnType::kFloat));
  const JobConfig job = TinyLosses();
  const auto reads = [&] {
    const Result<Plan> plan = MakePlan({job, columns, 1});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() && std::ranges::any_of(plan->graph.inputs, [&](const InputSpec& input) {
             return std::ranges::count(input.columns, static_cast<uint32_t>(columns.size() - 1)) >
                    0;
           });
  };
  EXPECT_TRUE(reads());
  columns.back().transform = "log_frequency";
  EXPECT_FALSE(reads());
}

TEST(LossesTest, KeysOfALossBecomeAttributes) {
  const Result<Plan> plan = PlanOf(TinyMoreLosses());
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto attr = [&](const std::string& node, const char* name) {
    const auto found = std::ranges::find(plan->graph.nodes, node, &Node::name);
    return FloatAttr(found->attrs, name, -1);
  };
  EXPECT_EQ(attr("loss.label", "pos_weight"), 3);
  EXPECT_EQ(attr("loss.focal", "gamma"), 2);
  EXPECT_EQ(attr("loss.focal", "alpha"), 0.25);
}

TEST(LossesTest, AGroupIsAColumnThatNoNodeReads) {
  JobConfig job = TinyLosses();
  job.model.losses[0].group = "C1";
  const Result<Plan> plan = PlanOf(job), without = PlanOf(TinyLosses());
  ASSERT_TRUE(plan.ok()) << plan.status();
  const uint32_t column = plan->graph.losses[0].group_column;
  ASSERT_LT(column, plan->columns.size());
  EXPECT_EQ(plan->columns[column].name, "C1");
  EXPECT_EQ(plan->graph.losses[1].group_column, kNone);
  EXPECT_EQ(plan->graph.nodes.size(), without->graph.nodes.size());
  EXPECT_EQ(plan->graph.inputs, without->graph.inputs);
}

struct Mistake {
  const char* name;
  void (*make)(JobConfig& job);
  std::vector<std::string> says;
};

const Mistake kMistakes[] = {
    {"one class",
     [](JobConfig& job) { job.model.losses[2].input = "logit"; },
     {"node \"logit\": its shape is [B, 1], the loss softmax_cross_entropy needs [B, classes] with "
      "2 "
      "classes or more",
      "model.yaml:5", "units: <classes>"}},
    {"several columns",
     [](JobConfig& job) { job.model.losses[1].input = "user"; },
     {"node \"user\": its shape is [B, 3], the loss mse needs [B, 1]", "units: 1"}},
    {"rows as vectors",
     [](JobConfig& job) { job.model.losses[3].item = "e"; },
     {"node \"e\": its shape is [B, 2, 4], the loss in_batch_softmax needs [B, dim]"}},
    {"vectors of two lengths",
     [](JobConfig& job) { job.model.losses[3].item = "likes"; },
     {"item \"likes\" has shape [B, 4], \"user\" has [B, 3]: they must be equal",
      "model.yaml:102"}},
    {"no such item",
     [](JobConfig& job) { job.model.losses[3].item = "itme"; },
     {"there is no node \"itme\"", "did you mean \"item\""}},
    {"ids that are numbers",
     [](JobConfig& job) { job.model.losses[3].item_id = "I1"; },
     {"item_id \"I1\" is no column of one key", "model.yaml:102"}},
    {"ids in lists",
     [](JobConfig& job) { job.model.losses[3].item_id = "tags"; },
     {"item_id \"tags\" is no column of one key"}},
    {"a wide log_q",
     [](JobConfig& job) { job.model.losses[4].log_q = "user"; },
     {"log_q \"user\" has shape [B, 3], expected [B, 1]"}},
    {"log_q of keys",
     [](JobConfig& job) { job.model.losses[4].log_q = "C1"; },
     {"log_q \"C1\" is neither a node nor a float column"}},
    {"no such group",
     [](JobConfig& job) { job.model.losses[0].group = "C11"; },
     {"there is no column \"C11\" for the group", "did you mean \"C1\"", "model.yaml"}},
    {"groups in lists",
     [](JobConfig& job) { job.model.losses[0].group = "tags"; },
     {"group \"tags\" is no column of one key", "with length 1"}},
    {"groups that are numbers",
     [](JobConfig& job) { job.model.losses[0].group = "I1"; },
     {"group \"I1\" is no column of one key"}},
    {"negatives that are vectors of rows",
     [](JobConfig& job) {
       job = TinyMoreLosses();
       job.model.losses[5].negatives = "e";
     },
     {"negatives \"e\" has shape [B, 2, 4], expected [B, negatives]", "one score for each"}},
    {"no such negatives",
     [](JobConfig& job) {
       job = TinyMoreLosses();
       job.model.losses[5].negatives = "other";
     },
     {"there is no node \"other\"", "did you mean \"others\""}},
    {"several scores of the item",
     [](JobConfig& job) {
       job = TinyMoreLosses();
       job.model.losses[5].input = "user";
     },
     {"node \"user\": its shape is [B, 3], the loss bpr needs [B, 1]", "units: 1"}},
    {"no such label",
     [](JobConfig& job) { job.model.losses[2].label = "labels"; },
     {"there is no column \"labels\" for the label", "did you mean \"label\"", "model.yaml:101"}},
    {"keys as labels",
     [](JobConfig& job) { job.model.losses[3].label = "C1"; },
     {"column \"C1\" is no label"}},
};

TEST(LossesTest, MistakesAreNamedWithPlaceAndWayOut) {
  for (const Mistake& mistake : kMistakes) {
    JobConfig job = TinyLosses();
    mistake.make(job);
    const Result<Plan> plan = PlanOf(job);
    ASSERT_FALSE(plan.ok()) << mistake.name;
    EXPECT_EQ(ExitCodeOf(plan.status()), 2) << mistake.name;
    for (const std::string& word : mistake.says) {
      EXPECT_THAT(ToText(plan.status()), HasSubstr(word)) << mistake.name;
    }
  }
}

}  // namespace
}  // namespace dt::scheduler
