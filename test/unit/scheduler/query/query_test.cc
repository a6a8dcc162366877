#include "scheduler/query/query.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dt::scheduler {
namespace {

using Answer = nlohmann::json;

Answer Ask(const std::string& question) { return Answer::parse(AnswerQuery(question)); }

TEST(Query, AnOperatorUnderAStrategy) {
  const Answer answer = Ask(R"({"op": "matmul", "shapes": [[16, 784], [784, 512]], "devices": 8,
                               "strategy": [[2, 4], [4, 1]], "rank": 5})");
  EXPECT_EQ(answer["device_matrix"], Answer({2, 4, 1}));
  EXPECT_EQ(answer["inputs"][0], Answer({{"map", {2, 1}}, {"slice", {8, 196}}}));
  EXPECT_EQ(answer["outputs"][0]["partial"], Answer({1}));
  EXPECT_EQ(answer["communication"][0]["op"], "AllReduce");
  EXPECT_EQ(answer["communication"][0]["groups"], Answer({{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(answer["gradient_groups"][0], Answer());
  EXPECT_EQ(answer["gradient_groups"][1], Answer({{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(Query, OutDividesAPartialResult) {
  const Answer answer = Ask(R"({"op": "matmul", "shapes": [[16, 784], [784, 512]], "devices": 8,
                               "strategy": [[2, 4], [4, 1]], "out": [[8, 1]]})");
  EXPECT_EQ(answer["communication"][0]["op"], "ReduceScatter");
  EXPECT_EQ(answer["communication"][0]["dim"], 0);
}

TEST(Query, ARuleInsteadOfAnOperator) {
  const Answer answer = Ask(R"({"loops": "ab,bc->ac", "shapes": [[4, 6], [6, 8]], "devices": 3,
                               "strategy": [[1, 3], [3, 1]]})");
  EXPECT_EQ(answer["outputs"][0]["slice"], Answer({4, 8}));
  EXPECT_EQ(answer["outputs"][0]["reduce"], "sum");
}

TEST(Query, OperatorsWithPositions) {
  const Answer answer = Ask(R"({"op": "gather_rows", "shapes": [[10, 4], [12], [10], [12]],
                               "attrs": {"length": 3}, "devices": 2,
                               "strategy": [[1, 1], [2]]})");
  EXPECT_EQ(answer["outputs"][0]["slice"], Answer({2, 3, 4})) << answer;
}

// Neighbouring devices have the parts of a table; batches come first, then rows and columns.
TEST(Query, RowsOfAnEmbedding) {
  const Answer answer = Ask(R"({"op": "embedding", "shapes": [[12, 8], [6, 5]], "devices": 8,
                               "strategy": [[2, 1], [2, 1]], "rank": 5})");
  EXPECT_EQ(answer["device_matrix"], Answer({2, 2, 1, 2, 1}));
  EXPECT_EQ(answer["inputs"][0], Answer({{"map", {1, -1}}, {"slice", {6, 8}}}));
  EXPECT_EQ(answer["outputs"][0]["partial"], Answer({1}));
  EXPECT_EQ(answer["communication"][0]["groups"], Answer({{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
}

TEST(Query, FieldsOfAnEmbedding) {
  const Answer answer = Ask(R"({"op": "embedding", "shapes": [[15, 8], [6, 3]], "devices": 2,
      "attrs": {"manual_split": [5, 1, 9]}, "strategy": [[2, 1]], "rank": 1})");
  EXPECT_EQ(answer["inputs"][0]["slice"], Answer({9, 8}));
  EXPECT_EQ(answer["inputs"][0]["map"][0], Answer({{"map", 1}, {"sizes", {6, 9}}}));
  EXPECT_EQ(answer["inputs"][1]["slice"], Answer({6, 1}));
  EXPECT_EQ(answer["communication"], Answer::array());
  const Answer wrong = Ask(R"({"op": "embedding", "shapes": [[15, 8], [6, 3]], "devices": 2,
      "attrs": {"manual_split": [5, 1, 8]}, "strategy": [[2, 1]]})");
  EXPECT_EQ(wrong["error"]["rule"], "shapes");
}

TEST(Query, LayoutsInsteadOfAStrategy) {
  const Answer answer = Ask(R"({"op": "matmul", "shapes": [[4, 4], [4, 4]],
      "layouts": [{"device_matrix": [2, 2], "map": [1, 0]},
                  {"device_matrix": [2, 2], "map": [0, -1]}]})");
  EXPECT_EQ(answer["outputs"][0]["map"], Answer({1, -1}));
  EXPECT_EQ(answer["outputs"][0]["partial"], Answer({0}));
}

TEST(Query, AllStrategies) {
  const Answer answer =
      Ask(R"({"op": "relu", "shapes": [[4, 2]], "devices": 4, "enumerate": true})");
  EXPECT_EQ(answer["strategies"], Answer::parse("[[[1,1]],[[1,2]],[[2,1]],[[2,2]],[[4,1]]]"));
}

TEST(Query, AnOperatorByParts) {
  const Answer answer =
      Ask(R"({"op": "softmax", "shapes": [[4, 6]], "strategy": [[2, 3]], "devices": 6})");
  EXPECT_EQ(answer["outputs"][0]["slice"], Answer({2, 2})) << answer;
  EXPECT_EQ(answer["outputs"][0]["partial"], Answer::array());
  ASSERT_EQ(answer["communication"].size(), 2U);
  EXPECT_EQ(answer["communication"][0]["reduce"], "max");
  EXPECT_EQ(answer["communication"][1]["reduce"], "sum");
  EXPECT_EQ(answer["communication"][1]["groups"], Answer({{0, 1, 2}, {3, 4, 5}}));
}

TEST(Query, Redistributions) {
  const Answer answer = Ask(R"({"from": {"device_matrix": [4], "map": [0, -1]}, "shape": [8, 8],
                               "to": {"device_matrix": [4], "map": [-1, 0]}})");
  EXPECT_EQ(answer["operators"][0]["kind"], "AllToAll");
  EXPECT_EQ(answer["operators"][0]["split_dim"], 1);
  EXPECT_EQ(answer["operators"][0]["concat_dim"], 0);
  EXPECT_EQ(answer["bytes"], 4 * 16 * 3 / 4);
}

TEST(Query, BoxesBetweenRanks) {
  const Answer answer = Ask(R"({"from": {"device_matrix": [2], "map": [0]}, "shape": [8],
                               "to": {"device_matrix": [2], "map": [0], "ranks": [1, 4]}})");
  EXPECT_EQ(answer["operators"][0]["boxes"][0],
            Answer({{"from", 0}, {"to", 1}, {"offset", {0}}, {"size", {4}}}));
  EXPECT_EQ(answer["operators"][0]["ranks"], Answer({1, 4}));
}

TEST(Query, SlicesAndLoads) {
  const Answer slice = Ask(
      R"({"layout": {"device_matrix": [2, 4], "map": [[1, 0], -1]}, "shape": [18, 3], "rank": 5})");
  EXPECT_EQ(slice["offset"], Answer({12, 0}));
  EXPECT_EQ(slice["size"], Answer({3, 3}));
  EXPECT_EQ(slice["axis_groups"], Answer({{1, 5}, {4, 5, 6, 7}}));
  EXPECT_EQ(slice["replicas"], Answer({5}));
  const Answer empty =
      Ask(R"({"layout": {"device_matrix": [4], "map": [0]}, "shape": [5], "rank": 3})");
  EXPECT_EQ(empty["offset"], Answer({5}));
  EXPECT_EQ(empty["size"], Answer({0}));
  const Answer load = Ask(R"({"load": {"from": {"device_matrix": [4], "map": [0]}, "shape": [12],
                             "to": {"device_matrix": [3], "map": [0]}, "rank": 1}})");
  EXPECT_EQ(load["ranks"], Answer({1, 2}));
}

constexpr const char* kTwoProducts = R"({"graph": {
    "values": {"X": {"shape": [8, 16], "kind": "input"},
               "W": {"shape": [16, 32], "kind": "parameter"},
               "V": {"shape": [32, 8], "kind": "parameter"}},
    "nodes": [{"name": "b", "op": "matmul", "inputs": ["Y", "V"], "outputs": ["Z"],
               "strategy": [[1, 1], [1, 4]]},
              {"name": "a", "op": "matmul", "inputs": ["X", "W"], "outputs": ["Y"],
               "strategy": [[4, 1], [1, 1]]}]},
    "devices": 4, "optimizer": {"shard": true, "threshold": 2048}})";

TEST(Query, AGraph) {
  const Answer answer = Ask(kTwoProducts);
  ASSERT_EQ(answer["redistributions"].size(), 1U) << answer;
  EXPECT_EQ(answer["redistributions"][0]["node"], "b");
  EXPECT_EQ(answer["redistributions"][0]["input"], 0);
  EXPECT_EQ(answer["redistributions"][0]["operators"][0]["kind"], "AllGather");
  EXPECT_EQ(answer["nodes"][0]["name"], "a");
  EXPECT_EQ(answer["parameters"]["W"]["gradient_groups"], Answer({{0, 1, 2, 3}}));
  EXPECT_EQ(answer["parameters"]["W"]["optimizer_group"], Answer({0, 1, 2, 3}));
  EXPECT_EQ(answer["parameters"]["V"]["slice"], Answer({32, 2}));
  EXPECT_EQ(answer["parameters"]["V"]["optimizer_group"], Answer());
}

TEST(Query, AGraphWithANodeByParts) {
  const Answer answer = Ask(R"({"graph": {"values": {"x": {"shape": [4, 6], "kind": "input"}},
      "nodes": [{"name": "a", "op": "softmax", "inputs": ["x"], "outputs": ["y"],
                 "strategy": [[1, 2]]},
                {"name": "b", "op": "relu", "inputs": ["y"], "outputs": ["z"],
                 "strategy": [[1, 2]]}]}, "devices": 2})");
  ASSERT_TRUE(answer.contains("nodes")) << answer;
  EXPECT_EQ(answer["nodes"].back()["name"], "b");
  EXPECT_EQ(answer["nodes"][answer["nodes"].size() - 2]["name"], "a");
  EXPECT_EQ(answer["nodes"][0]["name"], "a.reduce_max");
  // The maximum and the sum.
  size_t reductions = 0;
  for (const Answer& change : answer["redistributions"]) {
    reductions += change["operators"][0]["kind"] == "AllReduce";
  }
  EXPECT_EQ(reductions, 2U) << answer;
}

struct Mistake {
  const char* question;
  const char* rule;
};
class QueryMistakeTest : public testing::TestWithParam<Mistake> {};

TEST_P(QueryMistakeTest, IsAnsweredWithTheRule) {
  const Answer answer = Ask(GetParam().question);
  ASSERT_TRUE(answer.contains("error")) << answer;
  EXPECT_EQ(answer["error"]["rule"], GetParam().rule) << answer;
  EXPECT_FALSE(answer["error"]["what"].get<std::string>().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Query, QueryMistakeTest,
    testing::Values(
        Mistake{"nonsense", "question"}, Mistake{"[]", "question"}, Mistake{"{}", "question"},
        Mistake{R"({"op": "matmul"})", "question"},
        Mistake{R"({"op": 3, "shapes": []})", "operator"},
        Mistake{R"({"op": "matmull", "shapes": [[2, 2]], "devices": 2})", "operator"},
        Mistake{R"({"op": "matmul", "shapes": [[2, 3], [4, 5]], "devices": 2})", "shapes"},
        Mistake{R"({"op": "relu", "shapes": [[2, 3]], "attrs": {"x": 1}, "devices": 2})", "attrs"},
        Mistake{R"({"op": "relu", "shapes": [[2, 3]], "devices": 0, "strategy": [[1, 1]]})",
                "devices"},
        Mistake{R"({"op": "relu", "shapes": [[2, 3]], "devices": 3, "strategy": [[2, 1]]})",
                "devices"},
        Mistake{R"({"op": "relu", "shapes": [[2, 3]], "devices": 2, "strategy": [[2]]})",
                "dimensions"},
        Mistake{R"({"op": "relu", "shapes": [[2, 3]], "devices": 2, "strategy": [[2, -1]]})",
                "parts"},
        Mistake{R"({"op": "fm", "shapes": [[2, 4, 3]], "devices": 2, "strategy": [[1, 2, 1]]})",
                "whole"},
        Mistake{R"({"op": "split_heads", "shapes": [[2, 4, 0]], "devices": 2, "enumerate": true})",
                "shape"},
        Mistake{R"({"op": "update", "shapes": [[2, 4]], "devices": 2, "enumerate": true})",
                "attrs"},
        Mistake{R"({"loops": "ab", "shapes": [[2, 4]], "devices": 2, "strategy": [[1, 2]]})",
                "loops"},
        Mistake{
            R"({"from": {"device_matrix": [2], "map": [1]}, "shape": [4],
                    "to": {"device_matrix": [2], "map": [0]}})",
            "map"},
        Mistake{
            R"({"from": {"device_matrix": [2], "map": [0]}, "shape": [4, 4],
                    "to": {"device_matrix": [2], "map": [0]}})",
            "layout"},
        Mistake{R"({"layout": {"device_matrix": [2], "map": [0]}, "shape": [4], "rank": 2})",
                "rank"},
        Mistake{R"({"graph": {"values": {}, "nodes": [{"name": "a", "op": "relu", "inputs": ["x"],
                    "outputs": ["y"]}]}, "devices": 2})",
                "inputs"}));

TEST(Query, AWrongStrategyNamesTheNodeAndTheNearest) {
  const Answer answer = Ask(R"({"graph": {"values": {"x": {"shape": [4, 6, 2], "kind": "input"}},
      "nodes": [{"name": "a", "op": "fm", "inputs": ["x"], "outputs": ["y"],
                 "strategy": [[1, 2, 1]]}]}, "devices": 2})");
  EXPECT_EQ(answer["error"]["node"], "a") << answer;
  EXPECT_EQ(answer["error"]["nearest"], Answer::parse("[[1,1,1]]"));
}

}  // namespace
}  // namespace dt::scheduler
