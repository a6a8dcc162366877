// Goal: an index gives the same answers as a scan of all nodes. Method: a hand-made graph of a
// table, a weight, a product, its gradient and the weight's update.
#include "common/graph/graph_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dt {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "change" is an update that writes all inputs except input 1; "move" is a copy, "join" a
// communication.
OpTraits Traits(std::string_view op) {
  if (op == "change") return {.kind = OpKind::kUpdate, .writes = InputSet::AllBut(1)};
  if (op == "move") return {.kind = OpKind::kCopy};
  if (op == "join") return {.kind = OpKind::kCommunication};
  return {};
}

class GraphIndexTest : public ::testing::Test {
 protected:
  ValueIndex Add(std::string name, ValueKind kind) {
    Value value;
    value.name = std::move(name);
    value.kind = kind;
    return graph_.AddValue(std::move(value));
  }
  NodeIndex AddNode(std::string op, std::vector<ValueIndex> inputs, size_t outputs) {
    Node node;
    node.name = op;
    node.op = std::move(op);
    node.inputs = std::move(inputs);
    return graph_.AddNode(std::move(node), outputs);
  }
  ValueIndex OutputOf(NodeIndex n) const { return graph_.nodes[n].outputs[0]; }
  GraphIndex Index() const { return {graph_, Traits}; }

  Graph graph_;
};

TEST_F(GraphIndexTest, ReadersStandOnceForEachInputInTheOrderOfNodes) {
  const ValueIndex x = Add("x", ValueKind::kInput);
  AddNode("double", {x, x}, 1);
  AddNode("scale", {x}, 1);
  EXPECT_THAT(Index().readers(x), ElementsAre(0, 0, 1));
  EXPECT_THAT(Index().readers(OutputOf(1)), IsEmpty());
}

TEST_F(GraphIndexTest, WritersAreTheNodesWhoseOperatorChangesThatInput) {
  const ValueIndex w = Add("w", ValueKind::kParameter), g = Add("g", ValueKind::kInput);
  const ValueIndex state = Add("state", ValueKind::kState);
  AddNode("scale", {w}, 1);
  const NodeIndex change = AddNode("change", {w, g, state}, 0);
  const GraphIndex index = Index();
  EXPECT_THAT(index.writers(w), ElementsAre(change));
  EXPECT_THAT(index.writers(state), ElementsAre(change));
  EXPECT_THAT(index.writers(g), IsEmpty());
  EXPECT_THAT(index.readers(w), ElementsAre(0, change));
}

TEST_F(GraphIndexTest, GradientsAreFoundByTheirForwardNode) {
  const ValueIndex x = Add("x", ValueKind::kInput);
  AddNode("scale", {x}, 1);
  for (int i = 0; i < 2; ++i) graph_.nodes[AddNode("scale", {x}, 1)].forward = 0;
  EXPECT_THAT(Index().gradients(0), ElementsAre(1, 2));
  EXPECT_THAT(Index().gradients(1), IsEmpty());
}

TEST_F(GraphIndexTest, NodesAreWhatTheirOperatorIs) {
  const ValueIndex x = Add("x", ValueKind::kInput);
  for (const char* op : {"scale", "move", "join", "change"}) AddNode(op, {x}, 1);
  const GraphIndex index = Index();
  const OpKind kinds[] = {OpKind::kCompute, OpKind::kCopy, OpKind::kCommunication, OpKind::kUpdate};
  for (NodeIndex n = 0; n < 4; ++n) EXPECT_TRUE(index.Is(n, kinds[n])) << graph_.nodes[n].op;
  EXPECT_FALSE(index.Is(0, OpKind::kUpdate));
}

TEST_F(GraphIndexTest, RowsArePulledUnlessANodeTakesThemFromTheWorker) {
  const ValueIndex pulled = Add("rows(a)", ValueKind::kInput);
  const ValueIndex store = Add("table(b)", ValueKind::kTable);
  const NodeIndex take = AddNode("take", {store}, 1);
  graph_.tables.resize(2);
  graph_.tables[0].rows = pulled;
  graph_.tables[1].rows = OutputOf(take);
  const NodeIndex reads = AddNode("sum", {OutputOf(take), pulled}, 1);
  const GraphIndex index = Index();
  EXPECT_TRUE(index.IsPulledRows(pulled));
  EXPECT_FALSE(index.IsPulledRows(OutputOf(take)));
  EXPECT_TRUE(index.ReadsPulledRows(reads));
  EXPECT_FALSE(index.ReadsPulledRows(take));
}

TEST(InputSetTest, HoldsPositionsAndAllButOne) {
  constexpr InputSet kTwo = {0, 3};
  EXPECT_TRUE(kTwo.Has(0) && kTwo.Has(3));
  EXPECT_FALSE(kTwo.Has(1) || kTwo.Has(64) || kTwo.Has(67));
  constexpr InputSet kRest = InputSet::AllBut(1);
  EXPECT_TRUE(kRest.Has(0) && kRest.Has(63));
  EXPECT_FALSE(kRest.Has(1));
  EXPECT_TRUE(InputSet().empty());
  EXPECT_FALSE(kRest.empty());
}

}  // namespace
}  // namespace dt
