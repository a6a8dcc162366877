// Goal: the sharding rules are true of what the operators compute. Method: every node of the table
// of cases, and of their gradients, runs whole, and in parts along each loop that its rule allows
// to be divided, into even and uneven parts. The parts, joined as the rule says, must equal the
// whole.
#include "ops/sharding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "test/ops/op_case.h"
#include "test/support/host_tensor.h"

namespace dt::test {
namespace {

std::span<uint32_t> Ids(HostTensor& tensor) { return tensor.view().as<uint32_t>(); }

// For each dimension, the positions that a part has.
using Places = std::vector<std::vector<int64_t>>;

// Calls f(position in the part, position in the whole) for every element of a part.
template <class F>
void ForEachPlace(const Places& places, const Shape& whole, const F& f) {
  std::vector<size_t> index(places.size(), 0);
  for (const auto& dimension : places) {
    if (dimension.empty()) return;
  }
  for (size_t n = 0;; ++n) {
    int64_t flat = 0;
    for (size_t d = 0; d < places.size(); ++d) flat = flat * whole[d] + places[d][index[d]];
    f(n, static_cast<size_t>(flat));
    size_t d = places.size();
    while (d > 0 && ++index[d - 1] == places[d - 1].size()) index[--d] = 0;
    if (d == 0) return;
  }
}

Shape ShapeOf(const Places& places) {
  Shape shape;
  for (const auto& dimension : places) shape.push_back(std::ssize(dimension));
  return shape;
}

// A node that runs undivided, and its sharding rule.
struct Whole {
  const Backend::Work& work;
  Sharding rule;
  std::vector<HostTensor> before;           // Inputs before the run.
  std::vector<HostTensor> inputs, outputs;  // Inputs and outputs after the run.
};

// The part of a node that covers positions [begin, end) of a loop.
struct Part {
  const Whole& whole;
  uint8_t loop;
  int64_t begin, end;

  int64_t Extent(uint8_t of) const {
    const Dim& dim = whole.rule.loops[of].extent;
    return dim.times * (dim.symbol == kConstant ? 1 : whole.work.sizes[dim.symbol]);
  }
  // The number of list elements before position `at`.
  int64_t EndBefore(int64_t at) const {
    for (size_t i = 0; i < whole.before.size(); ++i) {
      if (whole.rule.inputs[i].holds != Holds::kListEnds) continue;
      HostTensor ends = whole.before[i];
      return at == 0 ? 0 : Ids(ends)[at - 1];
    }
    ADD_FAILURE() << whole.work.node.op << ": lists without ends";
    return 0;
  }
  std::vector<int64_t> PositionsOf(const ShardAxis& axis, int64_t size) const {
    std::vector<int64_t> all(static_cast<size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    const auto at = std::ranges::find(axis.loops, loop);
    if (at == axis.loops.end()) return all;
    if (axis.lists) return {all.begin() + EndBefore(begin), all.begin() + EndBefore(end)};
    int64_t inner = 1;
    for (auto after = at + 1; after != axis.loops.end(); ++after) inner *= Extent(*after);
    const int64_t extent = Extent(loop);
    std::erase_if(all, [&](int64_t p) {
      const int64_t position = p / inner % extent;
      return position < begin || position >= end;
    });
    return all;
  }
  Places PlacesOf(const ShardTensor& tensor, const Shape& shape) const {
    Places places;
    for (size_t d = 0; d < shape.size(); ++d) {
      places.push_back(PositionsOf(tensor.axes[d], shape[d]));
    }
    return places;
  }

  HostTensor Slice(const ShardTensor& tensor, const HostTensor& of) const {
    const Places places = PlacesOf(tensor, of.shape);
    HostTensor slice = HostTensor::Of(of.dtype, ShapeOf(places));
    const size_t size = SizeOf(of.dtype);
    ForEachPlace(places, of.shape, [&](size_t to, size_t from) {
      std::memcpy(slice.bytes.data() + to * size, of.bytes.data() + from * size, size);
    });
    if (tensor.holds == Holds::kListEnds && tensor.Has(loop)) {
      const auto base = static_cast<uint32_t>(EndBefore(begin));
      for (int64_t i = 0; i < slice.shape[0]; ++i) Ids(slice)[i] -= base;
    }
    return slice;
  }

  // Recomputes the uses of each row (ends and order) from the ids that the part has.
  void MakeUses(HostTensor& ends, HostTensor& order, const ShardAxis& ids) const {
    const std::vector<int64_t> kept = PositionsOf(ids, order.shape[0]);
    std::vector<uint32_t> uses;
    uint32_t use = 0;
    for (int64_t row = 0; row < ends.shape[0]; ++row) {
      for (; use < Ids(ends)[row]; ++use) {
        const auto at = std::ranges::lower_bound(kept, int64_t{Ids(order)[use]});
        if (at == kept.end() || *at != Ids(order)[use]) continue;
        uses.push_back(static_cast<uint32_t>(at - kept.begin()));
      }
      Ids(ends)[row] = static_cast<uint32_t>(uses.size());
    }
    order = HostTensor::Of(DType::kU32, {std::ssize(uses)});
    std::ranges::copy(uses, Ids(order).begin());
  }

  std::vector<HostTensor> Inputs() const {
    const std::vector<ShardTensor>& rules = whole.rule.inputs;
    std::vector<HostTensor> inputs;
    for (size_t i = 0; i < whole.before.size(); ++i) {
      const bool uses = rules[i].holds == Holds::kRowUses;
      inputs.push_back(uses ? whole.before[i] : Slice(rules[i], whole.before[i]));
      const bool has_both = uses && i > 0 && rules[i - 1].holds == Holds::kRowUses;
      if (has_both) MakeUses(inputs[i - 1], inputs[i], rules[i].axes[0]);
    }
    return inputs;
  }

  Node LocalNode() const {
    Node node = whole.work.node;
    for (const ShardAttr& attr : whole.rule.attrs) {
      const bool counted = std::ranges::count(attr.axis.loops, loop) > 0;
      if (!counted || whole.rule.loops[loop].extent.symbol != kConstant) continue;
      AttrValue& value = node.attrs[attr.name];
      auto* const numbers = std::get_if<std::vector<int64_t>>(&value);
      int64_t& number = numbers == nullptr ? std::get<int64_t>(value) : (*numbers)[attr.at];
      number = number / Extent(loop) * (end - begin);
    }
    return node;
  }

  struct Result {
    std::vector<HostTensor> inputs, outputs;
  };
  Result Run(TaskPool& pool) const {
    const Node node = LocalNode();
    Result local{Inputs(), {}};
    for (size_t i = 0; i < whole.outputs.size(); ++i) {
      const HostTensor& of = whole.outputs[i];
      const Places places = PlacesOf(whole.rule.outputs[i], of.shape);
      local.outputs.push_back(HostTensor::Of(of.dtype, ShapeOf(places)));
      std::ranges::fill(local.outputs.back().bytes, std::byte{0xff});
    }
    std::vector<TensorView> inputs, outputs;
    for (HostTensor& tensor : local.inputs) inputs.push_back(tensor.view());
    for (HostTensor& tensor : local.outputs) outputs.push_back(tensor.view());
    RunInfo run = whole.work.run;
    if (whole.rule.loops[loop].extent == Batch()) run.first_sample += static_cast<uint64_t>(begin);
    std::vector<std::byte> scratch;
    KernelContext context{node, inputs, outputs, run, pool, scratch};
    FindKernel(node.op)(context);
    return local;
  }
};

// The parts of one tensor, joined.
class Joined {
 public:
  Joined(const ShardTensor& rule, HostTensor whole, uint8_t loop)
      : rule_(rule), whole_(std::move(whole)), along_(rule.Has(loop)) {
    const double none = rule_.join == Join::kMax ? -std::numeric_limits<double>::infinity() : 0;
    numbers_.assign(static_cast<size_t>(ElementCount(whole_.shape)), none);
  }

  void Add(const Part& part, HostTensor local) {
    const double share =
        static_cast<double>(part.end - part.begin) / static_cast<double>(part.Extent(part.loop));
    const Places places = part.PlacesOf(rule_, whole_.shape);
    ForEachPlace(places, whole_.shape, [&](size_t from, size_t to) {
      const double x = local.at(from);
      if (along_ || rule_.join == Join::kSame) {
        numbers_[to] = x;
        if (!along_) same_ = same_ && x == whole_.at(to);
      } else if (rule_.join == Join::kMax) {
        numbers_[to] = std::max(numbers_[to], x);
      } else {
        numbers_[to] += rule_.join == Join::kMean ? x * share : x;
      }
    });
  }

  void ExpectWhole() {
    EXPECT_TRUE(same_);
    const double bound = whole_.dtype == DType::kF32 ? 1e-5 : 1e-11;
    double largest = 1;
    for (size_t i = 0; i < numbers_.size(); ++i)
      largest = std::max(largest, std::fabs(whole_.at(i)));
    for (size_t i = 0; i < numbers_.size(); ++i) {
      if (std::isnan(whole_.at(i)) && std::isnan(numbers_[i])) continue;
      ASSERT_NEAR(numbers_[i], whole_.at(i), bound * largest) << "at " << i;
    }
  }

 private:
  const ShardTensor& rule_;
  HostTensor whole_;
  const bool along_;
  Numbers numbers_;
  bool same_ = true;
};

// Runs nodes whole, and checks that their joined parts equal the whole.
class CutBackend : public Backend {
 public:
  void Run(const Work& work) override {
    SCOPED_TRACE(LoopsOf(work.graph, work.node));
    ops.insert(work.node.op);
    Result<Sharding> rule = ShardingOf(work.graph, work.node);
    ASSERT_TRUE(rule.ok()) << rule.status();
    Whole whole{work, *std::move(rule), {}, {}, {}};
    for (const TensorView& input : work.inputs) whole.before.push_back(HostTensor::Copy(input));
    std::vector<std::byte> scratch;
    KernelContext context{work.node, work.inputs, work.outputs, work.run, pool_, scratch};
    FindKernel(work.node.op)(context);
    for (const TensorView& input : work.inputs) whole.inputs.push_back(HostTensor::Copy(input));
    for (const TensorView& output : work.outputs) whole.outputs.push_back(HostTensor::Copy(output));
    for (uint8_t loop = 0; loop < whole.rule.loops.size(); ++loop) {
      if (!whole.rule.loops[loop].cut) continue;
      const int64_t extent = Part{whole, loop, 0, 0}.Extent(loop);
      if (extent >= 2) ExpectParts(whole, loop, {0, 1, extent});
      if (extent >= 3) ExpectParts(whole, loop, {0, (extent + 2) / 3, extent - 1, extent});
    }
  }

  std::set<std::string> ops;
  std::set<std::string> cut;  // The operator and loop of every division that was tested.

 private:
  void ExpectParts(const Whole& whole, uint8_t loop, const std::vector<int64_t>& places) {
    const std::string& name = whole.rule.loops[loop].name;
    SCOPED_TRACE(fmt::format("{} {} cut along {} in {}", whole.work.node.op, whole.work.node.name,
                             name, places.size() - 1));
    cut.insert(whole.work.node.op + " " + name);
    std::vector<Joined> outputs, inputs;
    for (size_t i = 0; i < whole.outputs.size(); ++i) {
      outputs.emplace_back(whole.rule.outputs[i], whole.outputs[i], loop);
    }
    for (size_t i = 0; i < whole.inputs.size(); ++i) {
      inputs.emplace_back(whole.rule.inputs[i], whole.inputs[i], loop);
    }
    for (size_t p = 0; p + 1 < places.size(); ++p) {
      const Part part{whole, loop, places[p], places[p + 1]};
      Part::Result local = part.Run(pool_);
      for (size_t i = 0; i < outputs.size(); ++i) outputs[i].Add(part, local.outputs[i]);
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (IsWritten(whole, loop, i)) inputs[i].Add(part, local.inputs[i]);
      }
    }
    for (Joined& output : outputs) output.ExpectWhole();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (IsWritten(whole, loop, i)) inputs[i].ExpectWhole();
    }
  }

  // True if the node wrote to this input in place. Each part must then write a part of its own:
  // changes to a copy of the whole input would be lost.
  static bool IsWritten(const Whole& whole, uint8_t loop, size_t i) {
    const bool written = whole.inputs[i].bytes != whole.before[i].bytes;
    EXPECT_TRUE(!written || whole.rule.inputs[i].Has(loop)) << "input " << i;
    return written;
  }

  TaskPool pool_{1};
};

TEST(Sharding, PartsJoinedAreTheWhole) {
  CutBackend backend;
  for (const int64_t batch : {1, 6}) {
    for (const OpCase& c : AllCases(batch)) {
      SCOPED_TRACE(fmt::format("{}, batch {}", c.name, batch));
      const DType dtype = c.op.starts_with("update") ? DType::kF32 : DType::kF64;
      const RunResult result = RunCase(c, dtype, backend);
      if (HasGradient(c) && !HasFailure()) {
        GradientOf(c, RandomGrads(c, result), dtype, backend);
      }
      if (HasFailure()) return;
    }
  }
  for (const OpSpec* spec : AllOps()) {
    // Operators of the engine have no kernel; mixed_matmul is divided as matmul.
    if (FindKernel(spec->name) == nullptr || spec->name == "mixed_matmul") continue;
    EXPECT_TRUE(backend.ops.contains(std::string(spec->name))) << spec->name;
  }
  for (const char* cut :
       {"matmul k", "layer_norm_grad *0", "gather_rows l", "gather_rows_grad b", "bag b", "bag l",
        "bag_grad l", "expert_matmul e", "expert_matmul k", "fm d", "dot d", "split_heads h",
        "reduce_max b", "reduce_mean c", "cin_layer p", "update a", "ragged_to_padded b"}) {
    EXPECT_TRUE(backend.cut.contains(cut)) << cut;
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
  return text.substr(0, text.find('|'));
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
