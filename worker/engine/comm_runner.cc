#include "worker/engine/comm_runner.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "common/base/check.h"
#include "worker/engine/part_copies.h"

namespace dt::worker {
namespace {

constexpr uint32_t kTeamGroup = 1;  // In tags of messages; the exchange of steps has 0.

// A node's group, and how it divides a dimension.
struct GroupNode {
  RankGroup ranks;
  std::vector<DeviceIndex> positions;
  std::vector<int64_t> axes;  // The lengths of the axes along which members differ, outer first.
  uint32_t own = 0;           // This worker's number in the group.
  uint32_t number = 0;        // The node's number, the same in all plans of the team.
  bool on_card = false;       // Its values are in the memory of a card.
};

class CommRunner : public NodeRunner {
 public:
  explicit CommRunner(const RunnerContext& context) : context_(context), team_(context.team) {}

  Status Open() {
    const Graph& graph = context_.plan.graph;
    groups_.resize(graph.nodes.size());
    for (NodeIndex n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      const bool here = node.phase != Phase::kJoin && context_.index.Is(n, OpKind::kCommunication);
      if (!here) continue;
      DT_TRY_STATUS(OpenNode(node, groups_[n]));
      if (node.device != Device::kGpu) continue;
      groups_[n].on_card = true;
      groups_[n].ranks.id = static_cast<uint32_t>(IntAttr(node.attrs, "group", 0));
    }
    return ConnectCards();
  }

  Status Begin(const Pass& pass) override {
    if (!pass.run.training) ++evaluations_;
    return OkStatus();
  }

  Status Run(const Subgraph& subgraph, const Pass& pass) override {
    if (subgraph.phase == Phase::kJoin) return Join(subgraph, pass);
    sizes_ = pass.sizes;
    for (const NodeIndex n : subgraph.nodes) {
      const Node& node = context_.plan.graph.nodes[n];
      PreparedNode& prepared = context_.prepare(pass.lane, n);
      const TimelineSpan span(pass.run.training ? context_.timeline : nullptr,
                              {Track::kExchange, node.name, node.op}, pass.run.step, pass.slice);
      const TimePoint begun = SystemClock().Now();
      DT_TRY_STATUS(RunNode(node, groups_[n], prepared, pass));
      prepared.time += SystemClock().Now() - begun;
      ++prepared.runs;
    }
    return OkStatus();
  }

 private:
  Status Join(const Subgraph& subgraph, const Pass& pass) {
    const TimelineSpan span(context_.timeline, {Track::kExchange, "exchange", subgraph.name},
                            pass.run.step);
    return context_.join(subgraph);
  }

  // Joins the groups whose values are on cards, in the order of the plan.
  Status ConnectCards() {
    std::map<uint32_t, RankGroup> groups;
    for (const GroupNode& group : groups_) {
      if (group.on_card) groups.try_emplace(group.ranks.id, group.ranks);
    }
    if (groups.empty()) return OkStatus();
    auto* const card = dynamic_cast<CudaAccelerator*>(context_.accelerator);
    if (card == nullptr || team_.connect_cards == nullptr) {
      return Internal("the plan communicates between cards, and this worker cannot");
    }
    std::vector<RankGroup> in_order;
    for (const auto& [id, group] : groups) in_order.push_back(group);
    DT_TRY(cards_, team_.connect_cards(in_order, *card));
    return OkStatus();
  }

  const std::vector<uint32_t>& MembersOf(const Node& node) const {
    return context_.plan.graph.groups[static_cast<size_t>(IntAttr(node.attrs, "group", 0))].members;
  }

  Status OpenNode(const Node& node, GroupNode& group) const {
    group.ranks.id = kTeamGroup;
    group.number = static_cast<uint32_t>(IntAttr(node.attrs, "number", 0));
    if (IsOfRows(node)) return OpenShare(node, group);
    const uint32_t first = team_.place.team * context_.plan.devices;
    group.positions = MembersOf(node);
    for (const DeviceIndex position : group.positions) {
      group.ranks.ranks.push_back(first + position);
    }
    group.axes = IntsAttr(node.attrs, "axes");
    const auto own = std::ranges::find(group.positions, context_.plan.position);
    const int64_t members = std::accumulate(group.axes.begin(), group.axes.end(), int64_t{1},
                                            [](int64_t a, int64_t b) { return a * b; });
    if (own == group.positions.end() || members != std::ssize(group.positions)) {
      return Internal("the plan's node \"{}\" has no group with this worker in it", node.name);
    }
    group.own = static_cast<uint32_t>(own - group.positions.begin());
    return OkStatus();
  }

  // Whether workers communicate that have a parameter, each with own rows of it.
  static bool IsOfRows(const Node& node) {
    return node.op == "share_rows" || node.op == "share_norms";
  }

  // The workers of all teams that have the parameter, and share it.
  Status OpenShare(const Node& node, GroupNode& group) const {
    const uint32_t devices = context_.plan.devices;
    for (uint32_t team = 0; team < team_.place.teams; ++team) {
      for (const DeviceIndex position : MembersOf(node)) {
        group.ranks.ranks.push_back(team * devices + position);
      }
    }
    const uint32_t rank = team_.place.team * devices + context_.plan.position;
    const auto own = std::ranges::find(group.ranks.ranks, rank);
    if (own == group.ranks.ranks.end() || team_.communicator->rank() != rank) {
      return Internal("the plan's node \"{}\" has no group with this worker in it", node.name);
    }
    std::vector<uint32_t>& ranks = group.ranks.ranks;
    const auto number = static_cast<uint32_t>(own - ranks.begin());
    const Sharers sharers =
        SharersOf(number, static_cast<uint32_t>(ranks.size()), context_.plan.sharers);
    const auto first = ranks.begin() + sharers.first;
    ranks = {first, first + sharers.count};
    group.own = number - sharers.first;
    return OkStatus();
  }

  // The part of each member in a dimension that is whole for the group. `of`: the dimension.
  void FindParts(const GroupNode& group, const Dim& of, int64_t length) {
    const SamplePart samples =
        of.symbol > kBatch ? SamplePartOf(context_.plan.graph.symbols[of.symbol]) : SamplePart();
    ranges_.clear();
    for (size_t m = 0; m < group.positions.size(); ++m) {
      ranges_.push_back(of.symbol == kConstant ? PartAmong(group, m, {0, length})
                                               : SamplesAmong(group, m, samples, of.times));
    }
  }
  static Range PartAmong(const GroupNode& group, size_t member, Range range) {
    auto below = static_cast<int64_t>(group.positions.size());
    for (const int64_t parts : group.axes) {
      below /= parts;
      range = EvenPart(range, parts, static_cast<int64_t>(member) / below % parts);
    }
    return range;
  }
  // Samples are divided in units; see SamplesOf.
  Range SamplesAmong(const GroupNode& group, size_t member, const SamplePart& whole,
                     int64_t times) const {
    const Plan& plan = context_.plan;
    const int64_t n = sizes_[kBatch];
    const int64_t unit = (n + plan.devices - 1) / plan.devices;
    Range units{0, plan.devices};
    for (size_t i = 0; i + 1 < whole.size(); i += 2) {
      units = EvenPart(units, whole[i], plan.position / whole[i + 1] % whole[i]);
    }
    const auto sample = [&](int64_t u) { return std::min(n, u * unit); };
    const int64_t begin = sample(units.begin);
    const Range part = PartAmong(group, member, units);
    return {(sample(part.begin) - begin) * times, (sample(part.end) - begin) * times};
  }

  // Evaluations have no slices: they are counted, as on all workers of the team.
  SliceIndex SliceOf(const Pass& pass) const {
    if (!pass.run.training) return static_cast<SliceIndex>(evaluations_);
    return pass.phases.Has(Phase::kStep) ? 0 : pass.slice;
  }

  Status ShareRows(const CollectiveCall& call, const GroupNode& group, const TensorView& whole) {
    const auto members = static_cast<int64_t>(group.ranks.size());
    const size_t width = whole.bytes() / static_cast<size_t>(std::max<int64_t>(1, whole.dim(0)));
    receive_.clear();
    for (int64_t m = 0; m < members; ++m) {
      receive_.push_back(static_cast<size_t>(EvenPart({0, whole.dim(0)}, members, m).size()) *
                         width);
    }
    const Range own = EvenPart({0, whole.dim(0)}, members, group.own);
    const std::span<std::byte> bytes = BytesOf(whole);
    return team_.communicator->AllGather(
        call, bytes.subspan(static_cast<size_t>(own.begin) * width, receive_[group.own]), receive_,
        bytes);
  }

  // The own rows of all inputs in one message, and those of the others.
  Status ShareNorms(const CollectiveCall& call, const GroupNode& group, PreparedNode& prepared) {
    const auto members = static_cast<int64_t>(group.ranks.size());
    const auto part = [&](const TensorView& whole, int64_t m) {
      return EvenPart({0, whole.dim(0)}, members, m);
    };
    receive_.clear();
    size_t all = 0;
    for (int64_t m = 0; m < members; ++m) {
      int64_t rows = 0;
      for (const TensorView& whole : prepared.outputs) rows += part(whole, m).size();
      receive_.push_back(static_cast<size_t>(rows) * sizeof(float));
      all += receive_.back();
    }
    scratch_.resize(std::max(scratch_.size(), receive_[group.own] + all));
    const std::span<std::byte> own = std::span(scratch_).first(receive_[group.own]);
    const std::span<std::byte> packed = std::span(scratch_).subspan(own.size(), all);
    std::byte* to = own.data();
    for (const TensorView& in : prepared.inputs) to = std::ranges::copy(BytesOf(in), to).out;
    DT_TRY_STATUS(team_.communicator->AllGather(call, own, receive_, packed));
    const std::byte* from = packed.data();
    for (int64_t m = 0; m < members; ++m) {
      for (const TensorView& whole : prepared.outputs) {
        const Range rows = part(whole, m);
        const auto bytes = static_cast<size_t>(rows.size()) * sizeof(float);
        if (bytes == 0) continue;
        std::memcpy(BytesOf(whole).data() + static_cast<size_t>(rows.begin) * sizeof(float), from,
                    bytes);
        from += bytes;
      }
    }
    return OkStatus();
  }

  Status RunNode(const Node& node, const GroupNode& group, PreparedNode& prepared,
                 const Pass& pass) {
    const TensorView& in = prepared.inputs[0];
    const CollectiveCall call{.group = group.ranks,
                              .name = node.name,
                              .node = group.number,
                              .slice = SliceOf(pass),
                              .step = pass.run.step};
    if (node.op == "share_rows") return ShareRows(call, group, in);
    if (node.op == "share_norms") return ShareNorms(call, group, prepared);
    const TensorView& out = prepared.outputs[0];
    const auto dim = static_cast<size_t>(IntAttr(node.attrs, "dim", 0));
    const Graph& graph = context_.plan.graph;
    const auto find = [&](ValueIndex v, const TensorView& view, size_t d) {
      FindParts(group, graph.value(v).shape[d], view.shape[d]);
    };
    Work work{node, group, in, out, team_.communicator.get()};
    if (group.on_card) {
      work.communicator = cards_.get();
      work.copy = [this](const CudaRows& copy) { return cards_->CopyRows(copy); };
    }
    if (node.op == "all_reduce") {
      return work.communicator->AllReduce(call, ReduceOf(node, in), BytesOf(in), BytesOf(out));
    }
    if (node.op == "all_gather") {
      find(node.outputs[0], out, dim);
      return AllGather(call, work, dim);
    }
    if (node.op == "all_to_all") {
      const auto from_dim = static_cast<size_t>(IntAttr(node.attrs, "from_dim", 0));
      find(node.inputs[0], in, dim);
      divided_ = ranges_;
      find(node.outputs[0], out, from_dim);
      return AllToAll(call, work, {dim, from_dim});
    }
    find(node.inputs[0], in, dim);
    if (node.op == "take_part") {
      DT_TRY_STATUS(TakePart(RowsAlong(in, dim), ranges_[group.own], BytesOf(in).data(),
                             BytesOf(out).data(), work.copy));
      return Settle(call, work);
    }
    if (node.op == "reduce_scatter") return ReduceScatter(call, work, dim);
    return Internal("no stream runs operator {} of node {}", node.op, node.name);
  }

  struct Work {
    const Node& node;
    const GroupNode& group;
    const TensorView& in;
    const TensorView& out;
    Communicator* communicator;
    CopyRows copy = CopyRowsOnHost;
  };

  // Copies on a card may be under way.
  Status Settle(const CollectiveCall& call, const Work& work) const {
    return work.group.on_card ? cards_->Settle(call) : OkStatus();
  }
  static std::span<std::byte> BytesOf(const TensorView& view) {
    return {static_cast<std::byte*>(view.data), view.bytes()};
  }
  static Reduce ReduceOf(const Node& node, const TensorView& view) {
    const bool max = TextAttr(node.attrs, "reduce", "sum") == "max";
    return {max ? Reduction::kMax : Reduction::kSum, view.dtype};
  }
  // Bytes of each member's part.
  static void SizesOf(const RowsAlong& rows, const std::vector<Range>& ranges,
                      std::vector<size_t>& sizes) {
    sizes.clear();
    for (const Range& range : ranges) sizes.push_back(rows.BytesOf(range));
  }
  Result<std::span<std::byte>> Scratch(const Work& work, size_t bytes) {
    if (work.group.on_card) {
      DT_TRY(std::byte* const memory, cards_->Scratch(bytes));
      return std::span(memory, bytes);
    }
    if (scratch_.size() < bytes) scratch_.resize(bytes + bytes / 8);
    return std::span(scratch_).first(bytes);
  }

  Status AllGather(const CollectiveCall& call, const Work& work, size_t dim) {
    const RowsAlong rows(work.out, dim);
    SizesOf(rows, ranges_, receive_);
    if (rows.outer == 1) {
      return work.communicator->AllGather(call, BytesOf(work.in), receive_, BytesOf(work.out));
    }
    DT_TRY(const std::span<std::byte> packed, Scratch(work, work.out.bytes()));
    DT_TRY_STATUS(work.communicator->AllGather(call, BytesOf(work.in), receive_, packed));
    DT_TRY_STATUS(Unpack(rows, ranges_, packed.data(), BytesOf(work.out).data(), work.copy));
    return Settle(call, work);
  }

  Status ReduceScatter(const CollectiveCall& call, const Work& work, size_t dim) {
    const RowsAlong rows(work.in, dim);
    SizesOf(rows, ranges_, send_);
    std::span<const std::byte> in = BytesOf(work.in);
    if (rows.outer > 1) {
      DT_TRY(const std::span<std::byte> packed, Scratch(work, work.in.bytes()));
      DT_TRY_STATUS(Pack(rows, ranges_, in.data(), packed.data(), work.copy));
      in = packed;
    }
    return work.communicator->ReduceScatter(call, ReduceOf(work.node, work.in), in, send_,
                                            BytesOf(work.out));
  }

  struct Dims {
    size_t divided = 0, joined = 0;
  };
  Status AllToAll(const CollectiveCall& call, const Work& work, const Dims& dims) {
    const RowsAlong divided(work.in, dims.divided), joined(work.out, dims.joined);
    SizesOf(divided, divided_, send_);
    SizesOf(joined, ranges_, receive_);
    DT_TRY(const std::span<std::byte> packed, Scratch(work, work.in.bytes() + work.out.bytes()));
    const std::span<std::byte> sent = packed.first(work.in.bytes());
    const std::span<std::byte> received = packed.subspan(work.in.bytes());
    DT_TRY_STATUS(Pack(divided, divided_, BytesOf(work.in).data(), sent.data(), work.copy));
    DT_TRY_STATUS(work.communicator->AllToAll(call, sent, {send_, receive_}, received));
    DT_TRY_STATUS(Unpack(joined, ranges_, received.data(), BytesOf(work.out).data(), work.copy));
    return Settle(call, work);
  }

  const RunnerContext& context_;
  TeamLink& team_;
  std::unique_ptr<DeviceCommunicator> cards_;  // Null if nothing communicates between cards.
  std::vector<GroupNode> groups_;              // By node.
  std::span<const int64_t> sizes_;             // By symbol.
  uint64_t evaluations_ = 0;
  std::vector<Range> ranges_, divided_;
  std::vector<size_t> send_, receive_;
  std::vector<std::byte> scratch_;
};

}  // namespace

Result<std::unique_ptr<NodeRunner>> MakeCommRunner(const RunnerContext& context) {
  auto runner = std::make_unique<CommRunner>(context);
  DT_TRY_STATUS(runner->Open());
  return std::unique_ptr<NodeRunner>(std::move(runner));
}

}  // namespace dt::worker
