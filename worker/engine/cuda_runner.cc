#include "worker/engine/cuda_runner.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "ops/cuda/call.h"

namespace dt::worker {
namespace {

constexpr Duration kDeviceTimeout = std::chrono::minutes(10);
// Values of B whose calls and graphs are kept. A job has a few: that of full slices, those of the
// last batch, and the same for evaluation.
constexpr size_t kBatchesMax = 16;

struct DestroyGraph {
  const CudaTable* table = nullptr;
  void operator()(CudaGraph* graph) const { table->destroy_graph(graph); }
};
using OwnedGraph = std::unique_ptr<CudaGraph, DestroyGraph>;

struct KernelNode {
  NodeIndex index;
  const CudaKernel* kernel;
  CudaNode node;
};

// Successive nodes of a subgraph, of which either all or none can be captured in a graph.
struct Segment {
  size_t begin = 0, end = 0;
  bool can_capture = false;
  bool has_run = false;  // It has run with the current addresses.
  OwnedGraph graph;
};

// The work of a subgraph for one B.
struct Work {
  std::vector<KernelNode> nodes;
  std::vector<Segment> segments;
};

// The work for a lane. What it uses on the card stays in place while other lanes go on.
struct LaneWork {
  DeviceMemory run, scratch;
  PinnedMemory sent_run;
  std::unique_ptr<DeviceEvent> run_sent;
  size_t scratch_bytes = 0;         // The largest need of a node.
  std::vector<int64_t> capacities;  // Extents of the symbols after B with which works was made.
  std::vector<int64_t> batches;     // Values of B in works.
  // Nodes of Phase::kStep do not depend on B.
  using Key = std::pair<const Subgraph*, int64_t>;
  std::map<Key, Work> works;
};

class CudaRunner : public NodeRunner {
 public:
  CudaRunner(const RunnerContext& context, CudaAccelerator& card)
      : context_(context), card_(card), table_(card.table()), lanes_(context.lanes) {}

  Status Open() {
    DT_TRY_STATUS(CheckNodes());
    DT_TRY(std::unique_ptr<DeviceQueue> queue, card_.NewQueue());
    queue_.reset(dynamic_cast<CudaQueue*>(queue.release()));
    DT_CHECK(queue_ != nullptr);
    for (LaneWork& lane : lanes_) {
      DT_TRY(lane.run, DeviceMemory::Make(card_, sizeof(CudaRun)));
      DT_TRY(lane.sent_run, PinnedMemory::Make(card_, sizeof(CudaRun)));
      DT_TRY(lane.run_sent, card_.NewEvent());
      DT_TRY_STATUS(queue_->Record(*lane.run_sent));
    }
    return OkStatus();
  }

  Status Begin(const Pass& pass) override {
    LaneWork& lane = lanes_[pass.lane];
    FollowExtents(pass, lane);
    for (const Subgraph& subgraph : *pass.subgraphs) {
      if (subgraph.stream != Stream::kGpu || !pass.phases.Has(subgraph.phase)) continue;
      DT_TRY_STATUS(MakeWork(subgraph, pass, lane));
    }
    DT_TRY_STATUS(GrowScratch(lane));
    return SendRun(pass, lane);
  }

  Status Run(const Subgraph& subgraph, const Pass& pass) override {
    LaneWork& lane = lanes_[pass.lane];
    Work& work = lane.works.at(KeyOf(subgraph, pass));
    if (Place(pass.lane, work)) {
      for (Segment& segment : work.segments) {
        segment.graph.reset();
        segment.has_run = false;
      }
    }
    for (Segment& segment : work.segments) {
      // The first run launches single kernels: it loads their code, which is not for a graph to do,
      // and a B that never comes again needs no graph.
      if (!segment.can_capture || !std::exchange(segment.has_run, true)) {
        DT_TRY_STATUS(LaunchTimed(work, segment, pass));
      } else {
        DT_TRY_STATUS(LaunchGraph(work, segment, subgraph, pass));
      }
    }
    return OkStatus();
  }

  Status Record(DeviceEvent& event) override { return queue_->Record(event); }
  Status WaitFor(DeviceEvent& event, Duration) override { return queue_->WaitFor(event); }
  uint64_t graphs_made() const override { return graphs_made_; }

 private:
  static LaneWork::Key KeyOf(const Subgraph& subgraph, const Pass& pass) {
    return {&subgraph, subgraph.phase == Phase::kSlice ? pass.extents[kBatch] : 0};
  }

  const Node& NodeOf(NodeIndex n) const { return context_.plan.graph.nodes[n]; }

  // Finds everything that may be wrong with a plan, before anything runs.
  Status CheckNodes() const {
    const Graph& graph = context_.plan.graph;
    const std::vector<int64_t> ones(graph.symbols.size(), 1);
    for (NodeIndex n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      if (StreamOf(context_.index.traits(n).kind, node) != Stream::kGpu) continue;
      if (table_.find_kernel(node.op.c_str()) == nullptr) {
        return WithHint(NotYet("operator {} of node {} has no CUDA kernel", node.op, node.name),
                        "take its tag off, or set cluster.devices to emulated");
      }
      DT_TRY_STATUS(CudaNode::Make(graph, node, ones).status());
    }
    return OkStatus();
  }

  // Drops all work that was made for other capacities, or when there are too many values of B.
  static void FollowExtents(const Pass& pass, LaneWork& lane) {
    const auto capacities = pass.extents.subspan(kBatch + 1);
    const int64_t batch = pass.extents[kBatch];
    const bool is_new = std::ranges::find(lane.batches, batch) == lane.batches.end();
    if (!std::ranges::equal(capacities, lane.capacities) ||
        (is_new && lane.batches.size() == kBatchesMax)) {
      lane.works.clear();
      lane.batches.clear();
      lane.capacities.assign(capacities.begin(), capacities.end());
    }
    if (is_new || lane.batches.empty()) lane.batches.push_back(batch);
  }

  Status MakeWork(const Subgraph& subgraph, const Pass& pass, LaneWork& lane) {
    const auto [at, is_new] = lane.works.try_emplace(KeyOf(subgraph, pass));
    if (!is_new) return OkStatus();
    Work& work = at->second;
    for (const NodeIndex n : subgraph.nodes) {
      const CudaKernel* const kernel = table_.find_kernel(NodeOf(n).op.c_str());
      DT_TRY(CudaNode node, CudaNode::Make(context_.plan.graph, NodeOf(n), pass.extents));
      CudaCall& call = node.call();
      call.run = reinterpret_cast<const CudaRun*>(lane.run.data());
      call.stream = queue_->stream();
      call.first_sample = FirstSampleOf(NodeOf(n), pass);
      if (kernel->scratch_bytes != nullptr) {
        lane.scratch_bytes = std::max(lane.scratch_bytes, kernel->scratch_bytes(call));
      }
      const bool can_capture = kernel->can_capture == nullptr || kernel->can_capture(call);
      if (work.segments.empty() || work.segments.back().can_capture != can_capture) {
        const size_t begin = work.nodes.size();
        work.segments.push_back({.begin = begin, .can_capture = can_capture});
      }
      work.nodes.push_back({n, kernel, std::move(node)});
      work.segments.back().end = work.nodes.size();
    }
    return OkStatus();
  }

  // The work is for one B, which says where the part of a device begins.
  uint64_t FirstSampleOf(const Node& node, const Pass& pass) const {
    const Plan& plan = context_.plan;
    const SamplePart part = IntsAttr(node.attrs, "sample_part");
    const Range samples = SamplesOf(part, pass.sizes[kBatch], plan.devices, plan.position);
    return static_cast<uint64_t>(samples.begin);
  }

  // All nodes of a lane share the scratch memory, because they run one after the other.
  Status GrowScratch(LaneWork& lane) {
    if (lane.scratch_bytes <= lane.scratch.bytes()) return OkStatus();
    lane.scratch = DeviceMemory();
    DT_TRY(lane.scratch, DeviceMemory::Make(card_, lane.scratch_bytes + lane.scratch_bytes / 8));
    return OkStatus();
  }

  Status SendRun(const Pass& pass, LaneWork& lane) {
    // Does not block: the last copy belonged to the pass before, which has ended.
    DT_TRY_STATUS(lane.run_sent->Wait(kDeviceTimeout));
    *reinterpret_cast<CudaRun*>(lane.sent_run.data()) = CudaRunOf(pass.run, pass.sizes);
    const size_t used = offsetof(CudaRun, sizes) + pass.sizes.size() * sizeof(int64_t);
    DT_TRY_STATUS(queue_->CopyToDevice(lane.run.data(), lane.sent_run.data(), used));
    return queue_->Record(*lane.run_sent);
  }

  // Sets the current addresses; true if any of them is new.
  bool Place(size_t lane, Work& work) {
    bool moved = false;
    const auto place = [&moved](void*& at, void* now) {
      moved |= at != now;
      at = now;
    };
    for (KernelNode& kernel : work.nodes) {
      PreparedNode& prepared = context_.prepare(lane, kernel.index);
      for (size_t i = 0; i < prepared.inputs.size(); ++i) {
        place(kernel.node.input(i).data, prepared.inputs[i].data);
      }
      for (size_t i = 0; i < prepared.outputs.size(); ++i) {
        place(kernel.node.output(i).data, prepared.outputs[i].data);
      }
      place(kernel.node.call().scratch, lanes_[lane].scratch.data());
      ++prepared.runs;
    }
    return moved;
  }

  Status Launch(KernelNode& kernel) {
    const CudaError error = kernel.kernel->launch(kernel.node.call());
    if (error == nullptr) return OkStatus();
    const Node& node = NodeOf(kernel.index);
    return queue_->Checked(error, fmt::format("node \"{}\" ({})", node.name, node.op));
  }

  Timeline* TimelineOf(const Pass& pass) const {
    return pass.run.training ? context_.timeline : nullptr;
  }

  Status LaunchTimed(Work& work, const Segment& segment, const Pass& pass) {
    for (size_t i = segment.begin; i < segment.end; ++i) {
      const Node& node = NodeOf(work.nodes[i].index);
      const TimelineSpan span(TimelineOf(pass), {Track::kGpu, node.name, node.op}, pass.run.step,
                              pass.slice);
      const TimePoint begun = SystemClock().Now();
      DT_TRY_STATUS(Launch(work.nodes[i]));
      context_.prepare(pass.lane, work.nodes[i].index).time += SystemClock().Now() - begun;
    }
    return OkStatus();
  }

  Status LaunchGraph(Work& work, Segment& segment, const Subgraph& subgraph, const Pass& pass) {
    const TimelineSpan span(TimelineOf(pass), {Track::kGpu, subgraph.name, "cuda graph"},
                            pass.run.step, pass.slice);
    if (segment.graph == nullptr) DT_TRY_STATUS(Capture(work, segment));
    return queue_->Checked(table_.launch_graph(queue_->stream(), segment.graph.get()),
                           "launching a graph");
  }

  Status Capture(Work& work, Segment& segment) {
    DT_TRY_STATUS(queue_->Checked(table_.begin_capture(queue_->stream()), "beginning a graph"));
    Status launched;
    for (size_t i = segment.begin; i < segment.end && launched.ok(); ++i) {
      launched = Launch(work.nodes[i]);
    }
    // Also after an error, because the stream captures until then.
    CudaGraph* graph = nullptr;
    const CudaError error = table_.end_capture(queue_->stream(), &graph);
    segment.graph = OwnedGraph(graph, DestroyGraph{&table_});
    ++graphs_made_;
    DT_TRY_STATUS(launched);
    return queue_->Checked(error, "ending a graph");
  }

  const RunnerContext& context_;
  CudaAccelerator& card_;
  const CudaTable& table_;
  std::vector<LaneWork> lanes_;
  uint64_t graphs_made_ = 0;
  // Declared last: ends its work before what it uses is destroyed.
  std::unique_ptr<CudaQueue> queue_;
};

}  // namespace

Result<std::unique_ptr<NodeRunner>> MakeCudaRunner(const RunnerContext& context,
                                                   CudaAccelerator& card) {
  auto runner = std::make_unique<CudaRunner>(context, card);
  DT_TRY_STATUS(runner->Open());
  return runner;
}

}  // namespace dt::worker
