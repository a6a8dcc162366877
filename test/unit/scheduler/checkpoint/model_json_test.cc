#include "scheduler/checkpoint/model_json.h"

#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scheduler/plan/plan.h"
#include "test/support/tiny_model.h"

namespace dt::scheduler {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::Not;

// As for a checkpoint: of the graph after the pass `infer`. The names of its parameters go to
// `parameters`.
Json ModelOf(const JobConfig& job, std::set<std::string>* parameters = nullptr) {
  Json model;
  const Result<TeamPlans> plans =
      MakePlans({job, test::TinyColumns(), 1}, [&](std::string_view pass, const Plan& plan) {
        if (pass != "infer") return;
        model = Json::parse(ModelJson(plan, job));
        for (const ParameterSpec& parameter : plan.graph.parameters) {
          if (parameters != nullptr) parameters->insert(plan.graph.value(parameter.value).name);
        }
      });
  EXPECT_TRUE(plans.ok()) << plans.status();
  return model;
}

std::vector<std::string> OutputsOf(const Json& model) {
  std::vector<std::string> outputs;
  for (const Json& node : model["nodes"]) outputs.push_back(node["outputs"][0]);
  return outputs;
}

TEST(ModelJson, ALossOverNegativesPredictsTheItemsScoreAlone) {
  JobConfig job = test::TinyMoreLosses();
  job.model.nodes.push_back(test::TinyNode("many", "dense", {"I2"}, {{"units", int64_t{4}}}, 7));
  const LossConfig bpr = job.model.losses[5], softmax = job.model.losses[6];
  job.model.losses = {bpr, softmax};
  job.model.losses[1].negatives = "many";
  const Json model = ModelOf(job);
  ASSERT_EQ(model["losses"].size(), 2u);
  for (const Json& loss : model["losses"]) EXPECT_EQ(loss["output"], "logit.bias_add");
  const std::vector<std::string> outputs = OutputsOf(model);
  EXPECT_EQ(outputs.back(), "logit.bias_add") << "nothing after it";
  for (const char* other : {"others.matmul", "many.matmul", "loss.bpr.scores"}) {
    EXPECT_THAT(outputs, Not(Contains(other)));
  }
  for (const auto& [name, input] : model["inputs"].items()) {
    EXPECT_NE(input["columns"], Json({"I2"})) << name << " is read for negative items only";
  }
}

// Every node is there once, after the nodes that it reads, except those that compute a loss only.
TEST(ModelJson, NodesReadWhatIsThere) {
  std::set<std::string> there;
  const Json model = ModelOf(test::TinyMoreLosses(), &there);
  for (const auto& [name, input] : model["inputs"].items()) there.insert(name);
  for (const Json& node : model["nodes"]) {
    for (const std::string input : node["inputs"]) {
      EXPECT_TRUE(there.contains(input)) << node["op"] << " reads " << input;
    }
    for (const std::string output : node["outputs"]) {
      EXPECT_TRUE(there.insert(output).second) << output;
    }
  }
  for (const Json& loss : model["losses"]) EXPECT_TRUE(there.contains(loss["output"]));
  EXPECT_THAT(OutputsOf(model), Not(Contains("loss.sampled_softmax.weight")));
  EXPECT_THAT(OutputsOf(model), Contains("loss.all:0")) << "the scores of in_batch_softmax";
}

std::string TakenFrom(const std::string& model, std::vector<ColumnSpec>& columns) {
  const Status status = TakeConstants(model, "folder", columns);
  return status.ok() ? "" : std::string(MessageOf(status));
}

TEST(TakeConstants, AreThoseThatTheModelWasTrainedWith) {
  std::vector<ColumnSpec> columns(3);
  columns[0].name = "price", columns[0].standardise = true;
  columns[1].name = "band", columns[1].quantiles = 3;
  columns[2].name = "plain", columns[2].edges = {7};
  const std::string model =
      R"({"columns": {"price": {"standardise": {"mean": 2.5, "deviation": 0.5}},
                      "band": {"edges": [1, 2.25]}, "plain": {"edges": [9]}}})";
  EXPECT_EQ(TakenFrom(model, columns), "");
  EXPECT_EQ(columns[0].mean, 2.5f);
  EXPECT_EQ(columns[0].deviation, 0.5f);
  EXPECT_EQ(columns[1].edges, std::vector<float>({1, 2.25f}));
  EXPECT_EQ(columns[2].edges, std::vector<float>({7})) << "they are the job's";
  EXPECT_EQ(TakenFrom("{}", columns),
            "folder: its model has no mean and deviation of column \"price\"");
  columns[0].standardise = false;
  for (const char* const edges : {"[]", "[2, 1]", "[\"x\"]", "[1e300]", "3"}) {
    EXPECT_EQ(
        TakenFrom(fmt::format(R"({{"columns": {{"band": {{"edges": {}}}}}}})", edges), columns),
        "folder: its model has no edges of column \"band\"")
        << edges;
  }
}

}  // namespace
}  // namespace dt::scheduler
