// Goal: how a model sees a list is defined: its ids in any order, nothing of the padding, the last
// ids of a list that is too long, zeros for an empty one. Method: DIN's attention in the reference
// interpreter on written-out lists, and the planner's messages about nodes that read them.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/plan/plan.h"
#include "test/support/interpreter.h"
#include "test/support/tiny_model.h"

namespace dt::scheduler {
namespace {

using test::HostTensor;
using test::SliceData;
using test::Tensors;
using test::TinyNode;
using ::testing::HasSubstr;

using Lists = std::vector<std::vector<uint32_t>>;
using Ints = std::vector<int64_t>;
constexpr uint32_t kRows = 9;

Graph AttentionGraph(int64_t max_len, const Attrs& attention) {
  Attrs attrs = attention;
  attrs["units"] = Ints{6, 3};
  const JobConfig job = test::TinyJob({
      TinyNode("candidate", "bag", {"C1"}, {{"table", "emb"}}, 1),
      TinyNode("past", "sequence", {"tags"}, {{"table", "emb"}, {"max_len", max_len}}, 2),
      TinyNode("interest", "din_attention", {"candidate", "past", "past.mask"}, attrs, 3),
      TinyNode("logit", "dense", {"interest"}, {{"units", int64_t{1}}}, 4),
  });
  Result<Plan> plan = MakePlan({job, test::TinyColumns(), 1});
  DT_CHECK_MSG(plan.ok(), "{}", ToText(plan.status()));
  return std::move(plan->graph);
}

HostTensor Positions(const std::vector<uint32_t>& numbers) {
  HostTensor tensor = HostTensor::Of(DType::kU32, {std::ssize(numbers)});
  std::ranges::copy(numbers, tensor.view().as<uint32_t>().begin());
  return tensor;
}

// The inputs of one lookup, made from the definition in common/graph/graph.h.
void SetLookup(const Graph& graph, uint32_t lookup, const Lists& lists, SliceData& slice) {
  std::vector<uint32_t> index, ends, row_ends, row_order;
  for (const auto& list : lists) {
    index.insert(index.end(), list.begin(), list.end());
    ends.push_back(static_cast<uint32_t>(index.size()));
  }
  for (uint32_t row = 0; row < kRows; ++row) {
    for (uint32_t i = 0; i < index.size(); ++i) {
      if (index[i] == row) row_order.push_back(i);
    }
    row_ends.push_back(static_cast<uint32_t>(row_order.size()));
  }
  for (const InputSpec& input : graph.inputs) {
    if (input.lookup != lookup) continue;
    if (input.kind == InputKind::kLookupIndex) slice.inputs[input.value] = Positions(index);
    if (input.kind == InputKind::kLookupEnds) slice.inputs[input.value] = Positions(ends);
    if (input.kind == InputKind::kRowEnds) slice.inputs[input.value] = Positions(row_ends);
    if (input.kind == InputKind::kRowOrder) slice.inputs[input.value] = Positions(row_order);
  }
}

// Every sample has a different candidate; its earlier items are `lists`.
SliceData SliceOf(const Graph& graph, const Lists& lists) {
  SliceData slice = test::RandomSlice(graph, static_cast<uint32_t>(lists.size()), 5);
  for (uint32_t l = 0; l < graph.lookups.size(); ++l) {
    const bool ragged = graph.lookups[l].length == 0;
    Lists own = lists;
    for (uint32_t b = 0; !ragged && b < own.size(); ++b) own[b] = {b};
    SetLookup(graph, l, own, slice);
  }
  for (SymbolIndex s = kBatch + 1; s < graph.symbols.size(); ++s) {
    slice.sizes[s] = kRows;
    if (!graph.symbols[s].starts_with("N.")) continue;
    slice.sizes[s] = 0;
    for (const auto& list : lists) slice.sizes[s] += std::ssize(list);
  }
  HostTensor rows = HostTensor::Of(DType::kF32, {kRows, 4});
  for (size_t i = 0; i < rows.size(); ++i) rows.set(i, std::sin(1.0 + static_cast<double>(i)));
  slice.inputs[graph.tables[0].rows] = rows;
  return slice;
}

struct Outcome {
  HostTensor interest;
  Tensors values;
};
Outcome RunOn(const Graph& graph, const Lists& lists) {
  TaskPool pool(1);
  Tensors parameters = test::FirstParameters(graph, 3);
  RunInfo run;
  run.step_samples = static_cast<uint32_t>(lists.size());
  Outcome outcome;
  outcome.values = test::Interpreter(graph, pool).RunSlice(SliceOf(graph, lists), parameters, run);
  const auto node = std::ranges::find(graph.nodes, "interest", &Node::name);
  outcome.interest = outcome.values.at(node->outputs[0]);
  return outcome;
}

void ExpectNear(const HostTensor& got, const HostTensor& want) {
  ASSERT_EQ(got.shape, want.shape);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got.at(i), want.at(i), 1e-6) << i;
}

class Attention : public ::testing::TestWithParam<bool> {
 protected:
  Attrs attrs_ = {{"softmax", GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Softmax, Attention, ::testing::Bool());

TEST_P(Attention, OrderOfAListDoesNotMatter) {
  const Graph graph = AttentionGraph(4, attrs_);
  ExpectNear(RunOn(graph, {{1, 2, 3}, {}, {4, 4, 5, 6}}).interest,
             RunOn(graph, {{3, 1, 2}, {}, {6, 4, 5, 4}}).interest);
}

TEST_P(Attention, OtherContentDoes) {
  const Graph graph = AttentionGraph(4, attrs_);
  EXPECT_NE(RunOn(graph, {{1, 2, 3}}).interest, RunOn(graph, {{1, 2, 4}}).interest);
}

TEST_P(Attention, MorePaddingChangesNothing) {
  const Lists lists = {{1, 2, 3}, {}, {7}};
  ExpectNear(RunOn(AttentionGraph(3, attrs_), lists).interest,
             RunOn(AttentionGraph(8, attrs_), lists).interest);
}

TEST_P(Attention, AListThatIsTooLongCountsAsItsLast) {
  const Graph graph = AttentionGraph(2, attrs_);
  EXPECT_EQ(RunOn(graph, {{1, 2, 3}, {5, 6, 7, 8}}).interest,
            RunOn(graph, {{2, 3}, {7, 8}}).interest);
}

TEST_P(Attention, EmptyListsGiveZerosAndFiniteGradients) {
  for (const char* activation : {"sigmoid", "dice", "prelu"}) {
    attrs_["activation"] = activation;
    const Graph graph = AttentionGraph(3, attrs_);
    for (const Lists& lists : {Lists{{}, {}}, Lists{{1, 2}, {}}, Lists{{}}}) {
      const Outcome outcome = RunOn(graph, lists);
      for (size_t b = 0; b < lists.size(); ++b) {
        const bool zero = outcome.interest.at(4 * b) == 0 && outcome.interest.at(4 * b + 3) == 0;
        EXPECT_EQ(zero, lists[b].empty()) << activation << ", sample " << b;
      }
      for (const auto& [value, tensor] : outcome.values) {
        for (size_t i = 0; tensor.dtype == DType::kF32 && i < tensor.size(); ++i) {
          ASSERT_TRUE(std::isfinite(tensor.at(i))) << graph.value(value).name;
        }
      }
    }
  }
}

// ------------------------------------------------------------ in a job

Result<Plan> PlanOfNodes(std::vector<NodeConfig> nodes, uint32_t max_len = 0) {
  std::vector<ColumnSpec> columns = test::TinyColumns();
  for (ColumnSpec& column : columns) {
    if (column.is_ragged()) column.max_len = max_len;
  }
  const JobConfig job = test::TinyJob(std::move(nodes));
  return MakePlan({job, columns, 1});
}

NodeConfig Past(Attrs more = {}) {
  more["table"] = "emb";
  return TinyNode("past", "sequence", {"tags"}, std::move(more), 2);
}
NodeConfig Dense(const char* name, std::vector<std::string> inputs, int64_t units = 1) {
  return TinyNode(name, "dense", std::move(inputs), {{"units", units}}, 4);
}

TEST(SequenceNode, HasTheLengthOfItsColumnAndAMask) {
  const Result<Plan> plan = PlanOfNodes({Past(), Dense("d", {"past", "past.mask"})}, 7);
  ASSERT_TRUE(plan.ok()) << ToText(plan.status());
  const std::string text = DumpText(plan->graph);
  EXPECT_THAT(text, HasSubstr("past [B, 7, 4] = ragged_to_padded(past.rows, ends(past))"));
  EXPECT_THAT(text, HasSubstr("past.mask [B, 7] = lengths_mask(ends(past))"));
}

TEST(SplitNode, NamesItsPieces) {
  const Result<Plan> plan = PlanOfNodes({
      Dense("d", {"I*"}, 5),
      TinyNode("s", "split", {"d"}, {{"sizes", Ints{2, 3}}}, 2),
      Dense("a", {"s.0"}),
      Dense("b", {"s.1"}),
      TinyNode("logit", "add", {"a", "b"}, {}, 5),
  });
  ASSERT_TRUE(plan.ok()) << ToText(plan.status());
  EXPECT_THAT(DumpText(plan->graph),
              HasSubstr("s.1 [B, 3] = slice(d.bias_add) {axis: 1, begin: 2, end: 5}"));
}

TEST(DiceActivation, HasRunningValuesAndNoScaleOrShift) {
  const Result<Plan> plan = PlanOfNodes(
      {TinyNode("d", "mlp", {"I*"}, {{"units", Ints{5, 1}}, {"activation", "dice"}}, 1)});
  ASSERT_TRUE(plan.ok()) << ToText(plan.status());
  const std::string text = DumpText(plan->graph);
  for (const char* line : {"parameter d.0.alpha [5]", "state d.0.dice.running_mean [5]",
                           "running.d.0.dice.batch_norm", "d.0.dice.gamma [5] = fill()"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(SequenceMistake, IsNamedWithPlaceAndWhatToDo) {
  const Attrs two = {{"max_len", int64_t{2}}};
  const NodeConfig query = TinyNode("q", "bag", {"C1"}, {{"table", "emb"}}, 1);
  const NodeConfig narrow = TinyNode("q", "bag", {"C1"}, {{"table", "wide"}}, 1);
  const auto attend = [](std::vector<std::string> inputs) {
    return TinyNode("a", "din_attention", std::move(inputs), {}, 3);
  };
  const std::vector<std::pair<std::vector<NodeConfig>, const char*>> mistakes = {
      {{Past(), Dense("d", {"past"})}, "says no max_len"},
      {{TinyNode("past", "sequence", {"C1"}, {{"table", "emb"}}, 2), Dense("d", {"past"})},
       "has 1 key in every sample: use op: lookup"},
      {{TinyNode("e", "lookup", {"tags"}, {{"table", "emb"}}, 2), Dense("d", {"e"})},
       "op: sequence"},
      {{Past(two), Dense("d", {"past.mark"})}, "did you mean \"past.mask\"?"},
      {{Past(two), Dense("past.mask", {"past"})}, "the name is taken"},
      {{Past(two), query, attend({"q", "past"}), Dense("d", {"a"})},
       "add \"past.mask\" to its inputs"},
      {{Past(two), query, attend({"q", "past", "q"}), Dense("d", {"a"})},
       "its mask \"q\" has shape [B, 4], expected [B, 2]"},
      {{Past(two), narrow, attend({"q", "past", "past.mask"}), Dense("d", {"a"})},
       "a query of shape [B, 1] needs [B, length, 1]"},
      {{Past({{"max_len", int64_t{0}}}), Dense("d", {"past", "past.mask"})},
       "model.graph.past.max_len: found 0"},
      {{TinyNode("s", "split", {"I1"}, {{"sizes", Ints{2, 3}}}, 2), Dense("d", {"s.0"})},
       "the sizes are 5 together, which is not dimension -1 of [B, 1]"},
  };
  for (const auto& [nodes, says] : mistakes) {
    const Status status = PlanOfNodes(nodes).status();
    EXPECT_EQ(ExitCodeOf(status), 2) << says;
    EXPECT_THAT(ToText(status), HasSubstr(says));
    EXPECT_THAT(ToText(status), Not(HasSubstr("problems"))) << "one mistake, one message";
  }
}

}  // namespace
}  // namespace dt::scheduler
