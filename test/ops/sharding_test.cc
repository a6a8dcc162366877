// Goal: the sharding rules are true of what the operators compute. Method: every node of the table
// of cases, and of their gradients, runs whole, and on several devices by every strategy that its
// rule allows, with even, uneven and empty parts. The parts, joined as the rule says, must equal
// the whole.
#include "ops/sharding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "scheduler/parallel/node_cut.h"
#include "test/ops/device_part.h"
#include "test/ops/op_case.h"

namespace dt::test {
namespace {

using scheduler::AllParts;
using scheduler::CutOfParts;
using scheduler::NodeCut;

// The parts of one tensor, joined.
class Joined {
 public:
  Joined(const ShardTensor& rule, const Layout& layout, HostTensor whole)
      : rule_(rule), layout_(layout), whole_(std::move(whole)) {
    const double none = rule_.join == Join::kMax ? -std::numeric_limits<double>::infinity() : 0;
    numbers_.assign(static_cast<size_t>(ElementCount(whole_.shape)), none);
  }

  void Add(const DevicePart& part, HostTensor local) {
    const bool adds = !layout_.partial.empty() || rule_.HasOwnRows();
    const RankList copies = ReplicasOf(layout_, part.device());
    if (part.device() != copies[0]) {
      EXPECT_EQ(local, first_copy_.at(copies[0])) << "devices with the same slice disagree";
      return;
    }
    first_copy_.emplace(part.device(), local);
    const double share = part.ShareWithout(rule_);
    part.ForEachPlace(rule_, layout_, whole_.shape, [&](size_t from, size_t to) {
      const double x = local.at(from);
      if (!adds) {
        numbers_[to] = x;
      } else if (rule_.join == Join::kMax) {
        numbers_[to] = std::max(numbers_[to], x);
      } else if (share > 0) {
        numbers_[to] += rule_.join == Join::kMean ? x * share : x;
      }
    });
  }

  void ExpectWhole() {
    const double bound = whole_.dtype == DType::kF32 ? 2e-5 : 1e-11;
    double largest = 1;
    for (size_t i = 0; i < numbers_.size(); ++i) {
      if (std::isfinite(whole_.at(i))) largest = std::max(largest, std::fabs(whole_.at(i)));
    }
    for (size_t i = 0; i < numbers_.size(); ++i) {
      if (std::isnan(whole_.at(i)) && std::isnan(numbers_[i])) continue;
      if (whole_.at(i) == numbers_[i]) continue;
      ASSERT_NEAR(numbers_[i], whole_.at(i), bound * largest) << "at " << i;
    }
  }

 private:
  const ShardTensor& rule_;
  const Layout& layout_;
  HostTensor whole_;
  std::map<DeviceIndex, HostTensor> first_copy_;
  Numbers numbers_;
};

// Runs nodes whole, and checks that their joined parts equal the whole.
class CutBackend : public Backend {
 public:
  explicit CutBackend(std::vector<uint32_t> devices) : devices_(std::move(devices)) {}

  void Run(const Work& work) override {
    SCOPED_TRACE(LoopsOf(work.graph, work.node));
    ops.insert(work.node.op);
    if (work.node.attrs.contains("first")) return;  // A part already.
    Result<Sharding> rule = ShardingOf(work.graph, work.node);
    ASSERT_TRUE(rule.ok()) << rule.status();
    WholeNode whole(work, *std::move(rule));
    whole.Run(pool_);
    for (const uint32_t devices : devices_) {
      for (const std::vector<uint32_t>& parts : AllParts(whole.rule(), devices)) {
        if (CutsListsWithoutEnds(whole.rule(), parts)) continue;
        ExpectParts(whole, CutOfParts(whole.rule(), parts, devices, devices == 6));
        if (testing::Test::HasFailure()) return;
      }
    }
    const bool wide = std::ranges::none_of(
        work.inputs, [](const TensorView& input) { return input.dtype == DType::kF32; });
    if (wide) ExpectLinear(whole);
  }

  std::set<std::string> ops;
  std::set<std::string> cut;     // The operator and loop of every division that was tested.
  std::set<std::string> linear;  // The operator and input of every sum that was tested.

 private:
  // The ids of samples can be divided only if an input tells where those of each sample end. Other
  // nodes compute with whatever ids a device has.
  static bool CutsListsWithoutEnds(const Sharding& rule, const std::vector<uint32_t>& parts) {
    std::set<LoopIndex> lists, ends;
    for (const auto* tensors : {&rule.inputs, &rule.outputs}) {
      for (const ShardTensor& tensor : *tensors) {
        for (const ShardAxis& axis : tensor.axes) {
          const bool known = axis.lists && !rule.loops[axis.loops[0]].lists.empty();
          if (axis.lists && !known && parts[axis.loops[0]] > 1) lists.insert(axis.loops[0]);
          if (tensor.holds == Holds::kListEnds) ends.insert(axis.loops[0]);
        }
      }
    }
    return !std::ranges::includes(ends, lists);
  }

  void ExpectParts(const WholeNode& whole, const NodeCut& node_cut) {
    const Sharding& rule = whole.rule();
    for (size_t loop = 0; loop < rule.loops.size(); ++loop) {
      if (node_cut.loops[loop].empty()) continue;
      cut.insert(whole.node().op + " " + rule.loops[loop].name);
    }
    SCOPED_TRACE(fmt::format("{} cut as {}", whole.node().name,
                             TextOf(scheduler::StrategyOf(rule, node_cut))));
    const scheduler::NodeLayouts layouts = LayoutsOf(rule, node_cut);
    std::vector<Joined> outputs, inputs;
    for (size_t i = 0; i < rule.outputs.size(); ++i) {
      outputs.emplace_back(rule.outputs[i], layouts.outputs[i], whole.outputs()[i]);
    }
    for (size_t i = 0; i < rule.inputs.size(); ++i) {
      inputs.emplace_back(rule.inputs[i], layouts.inputs[i], whole.inputs()[i]);
    }
    for (DeviceIndex i = 0; i < DeviceCount(node_cut.matrix); ++i) {
      const DevicePart part(whole, node_cut, layouts, i);
      DevicePart::Result local = part.Run(pool_);
      for (size_t o = 0; o < outputs.size(); ++o) outputs[o].Add(part, local.outputs[o]);
      for (size_t in = 0; in < inputs.size(); ++in) {
        if (whole.Writes(in)) inputs[in].Add(part, local.inputs[in]);
      }
    }
    for (Joined& output : outputs) output.ExpectWhole();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (whole.Writes(i)) inputs[i].ExpectWhole();
    }
  }

  // An operator that is linear in inputs gives terms of its outputs for terms of these inputs.
  void ExpectLinear(const WholeNode& whole) {
    std::vector<std::vector<size_t>> sets(1);
    const std::vector<ShardTensor>& inputs = whole.rule().inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].linear == Linear::kAlone) sets.push_back({i});
      if (inputs[i].linear == Linear::kTogether) sets[0].push_back(i);
    }
    for (const std::vector<size_t>& set : sets) {
      if (set.empty()) continue;
      linear.insert(fmt::format("{} {}", whole.node().op, set[0]));
      const std::vector<HostTensor> sums = whole.SumOfTerms(set, pool_);
      for (size_t o = 0; o < sums.size(); ++o) {
        for (size_t e = 0; e < sums[o].size(); ++e) {
          const double expected = whole.outputs()[o].at(e);
          ASSERT_NEAR(sums[o].at(e), expected, 1e-9 * std::max(1.0, std::fabs(expected)))
              << "terms of input " << set[0] << ", at " << e;
        }
      }
    }
  }

  const std::vector<uint32_t> devices_;
  TaskPool pool_{1};
};

// Runs every case, and its gradient, in parts.
void ExpectCasesInParts(CutBackend& backend, DType floats) {
  for (const int64_t batch : {1, 6}) {
    for (const OpCase& c : AllCases(batch)) {
      SCOPED_TRACE(fmt::format("{}, batch {}", c.name, batch));
      const DType dtype = c.op.starts_with("update") ? DType::kF32 : floats;
      const RunResult result = RunCase(c, dtype, backend);
      if (HasGradient(c) && !testing::Test::HasFailure()) {
        GradientOf(c, RandomGrads(c, result), dtype, backend);
      }
      if (testing::Test::HasFailure()) return;
    }
  }
}

// The kernels for float are others than those for double, and may also get empty parts.
TEST(Sharding, PartsInFloat) {
  CutBackend backend({4, 8});
  ExpectCasesInParts(backend, DType::kF32);
}

TEST(Sharding, PartsJoinedAreTheWhole) {
  CutBackend backend({1, 2, 3, 4, 6, 8});
  ExpectCasesInParts(backend, DType::kF64);
  for (const OpSpec* spec : AllOps()) {
    // Operators of the engine have no kernel; mixed_matmul is divided as matmul.
    if (FindKernel(spec->name) == nullptr || spec->name == "mixed_matmul") continue;
    EXPECT_TRUE(backend.ops.contains(std::string(spec->name))) << spec->name;
  }
  for (const char* cut : {"matmul k",
                          "layer_norm_grad *0",
                          "gather_rows l",
                          "gather_rows_grad b",
                          "bag b",
                          "bag l",
                          "bag_grad l",
                          "embedding r",
                          "embedding f",
                          "embedding_grad *0",
                          "embedding_grad f",
                          "expert_matmul e",
                          "expert_matmul k",
                          "fm d",
                          "dot d",
                          "split_heads h",
                          "reduce_max b",
                          "reduce_mean c",
                          "dropout *1",
                          "cin_layer p",
                          "update a",
                          "ragged_to_padded b"}) {
    EXPECT_TRUE(backend.cut.contains(cut)) << cut;
  }
  for (const char* linear :
       {"matmul 0", "matmul 1", "add 0", "concat 0", "where 1", "bag 0", "reduce_sum 0",
        "reshape 0", "relu_grad 1", "embedding 0", "embedding_grad 1"}) {
    EXPECT_TRUE(backend.linear.contains(linear)) << linear;
  }
}

TEST(Sharding, EveryOperatorHasARule) {
  for (const OpSpec* spec : AllOps()) {
    EXPECT_NE(spec->sharding.loops.empty(), spec->sharding.derive == nullptr) << spec->name;
  }
}

TEST(Sharding, MixedProductsAreCutAsProducts) {
  EXPECT_EQ(FindOp("mixed_matmul")->sharding.derive, FindOp("matmul")->sharding.derive);
}

std::string LoopsBetween(const SymShape& from, const SymShape& to) {
  Graph graph;
  Node node;
  node.name = node.op = "flatten";
  for (const SymShape& shape : {from, to}) {
    Value value;
    value.shape = shape;
    (node.inputs.empty() ? node.inputs : node.outputs).push_back(graph.AddValue(value));
  }
  const Result<Sharding> sharding = ShardingOf(graph, node);
  EXPECT_TRUE(sharding.ok()) << sharding.status();
  const std::string text = LoopsOf(graph, node);
  return text.substr(1, text.find('|') - 1);  // Without "&".
}

TEST(Sharding, ReshapedDimensionsShareLoopsFromTheLeft) {
  const Dim b = Batch();
  EXPECT_EQ(LoopsBetween({b, Const(3), Const(4)}, {b, Const(12)}), "abc->a(bc)");
  EXPECT_EQ(LoopsBetween({b, Const(3), Const(4)}, {Batch(3), Const(4)}), "abc->(ab)c");
  EXPECT_EQ(LoopsBetween({b, Const(12)}, {b, Const(1), Const(3), Const(4)}), "a(bc)->a1bc");
  EXPECT_EQ(LoopsBetween({Const(3), b}, {Batch(3)}), "ab->(ab)");
  EXPECT_EQ(LoopsBetween({b, Const(4), Const(6)}, {b, Const(8), Const(3)}), "ab(cd)->a(bc)d");
  EXPECT_EQ(LoopsBetween({b, Const(4), Const(6)}, {b, Const(6), Const(4)}), "a..->a..");
}

}  // namespace
}  // namespace dt::test
