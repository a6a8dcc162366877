// Divides a plan into subgraphs. Slice nodes come in three waves: nodes that need no pulled rows,
// nodes that the row gradients depend on, and the rest. So the first wave can run before a pull
// arrives, and a push can leave before the last wave runs. No edge leads back to an earlier wave,
// so the order stays topological. Each stream takes its nodes in this order. A new subgraph begins
// where a value arrives from another stream, and after a value that another stream awaits. A bucket
// of joins is a subgraph, right behind the one that makes the last of its values.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "common/graph/graph_index.h"
#include "ops/op_spec.h"
#include "scheduler/passes/lowering/lowering.h"

namespace dt::scheduler {
namespace {

enum class Wave : uint8_t { kBeforePull, kUntilPush, kAfterPush };

// Collects nodes, added in a topological order, into subgraphs. A stream waits only once for the
// same subgraph.
class Segments {
 public:
  // `first`: the number of the first subgraph within its pass.
  Segments(const GraphIndex& index, size_t first)
      : index_(index),
        graph_(index.graph()),
        first_(static_cast<uint32_t>(first)),
        of_(graph_.nodes.size(), kNone),
        writer_(graph_.values.size(), kNone) {
    open_.fill(kNone);
    has_rows_.fill(false);
  }

  void Add(NodeIndex n) {
    const Node& node = graph_.nodes[n];
    const auto stream = static_cast<size_t>(StreamOf(index_.traits(n).kind, node));
    std::vector<uint32_t> arrivals;
    AddArrivals(node, stream, arrivals);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (index_.traits(n).writes.Has(i)) writer_[node.inputs[i]] = n;
    }
    const bool rows_arrive = index_.ReadsPulledRows(n) && !std::exchange(has_rows_[stream], true);
    if (open_[stream] == kNone || !arrivals.empty() || rows_arrive ||
        all_[open_[stream]].stage != node.stage) {
      Open(stream, node, arrivals);
      all_.back().needs_rows = rows_arrive;
    }
    all_[open_[stream]].nodes.push_back(n);
    of_[n] = open_[stream];
  }

  // A subgraph of its own. `after_all`: what has been added so far has ended when it begins.
  void AddJoin(const std::vector<NodeIndex>& bucket, bool after_all) {
    constexpr auto kStream = static_cast<size_t>(Stream::kComm);
    std::vector<uint32_t> arrivals;
    for (const NodeIndex n : bucket) AddArrivals(graph_.nodes[n], kStream, arrivals);
    for (uint32_t s = 0; after_all && s < all_.size(); ++s) {
      if (all_[s].stream != Stream::kComm) arrivals.push_back(s);
    }
    if (after_all) CloseAll();
    // The other slices have no joins, so what joins waited for counts for nobody else.
    const auto seen = seen_;
    Open(kStream, graph_.nodes[bucket.front()], arrivals);
    seen_ = seen;
    all_.back().nodes = bucket;
    open_[kStream] = kNone;
  }

  void CloseAll() { open_.fill(kNone); }
  std::vector<Subgraph> Take() { return std::move(all_); }

 private:
  // Adds the subgraphs of other streams for which the node's stream must wait, and ends them.
  void AddArrivals(const Node& node, size_t stream, std::vector<uint32_t>& arrivals) {
    for (const ValueIndex v : node.inputs) {
      const NodeIndex from = writer_[v] == kNone ? graph_.value(v).producer : writer_[v];
      // Nodes of another phase have ended before.
      if (from == kNone || of_[from] == kNone) continue;
      const uint32_t source = of_[from];
      const auto there = static_cast<size_t>(all_[source].stream);
      if (there == stream) continue;
      if (open_[there] == source) open_[there] = kNone;
      if (seen_[stream][there] <= source) arrivals.push_back(source);
    }
  }

  void Open(size_t stream, const Node& node, const std::vector<uint32_t>& arrivals) {
    Subgraph subgraph;
    subgraph.name = node.name;
    subgraph.stream = static_cast<Stream>(stream);
    subgraph.phase = node.phase;
    subgraph.stage = node.stage;
    // Waiting for the last subgraph of each stream is enough.
    std::array<uint32_t, kStreams> last = {};
    for (const uint32_t a : arrivals) {
      uint32_t& latest = last[static_cast<size_t>(all_[a].stream)];
      latest = std::max(latest, a + 1);
    }
    for (size_t k = 0; k < kStreams; ++k) {
      if (last[k] == 0) continue;
      subgraph.waits.push_back(first_ + last[k] - 1);
      seen_[stream][k] = last[k];
    }
    open_[stream] = static_cast<uint32_t>(all_.size());
    all_.push_back(std::move(subgraph));
  }

  const GraphIndex& index_;
  const Graph& graph_;
  const uint32_t first_;
  std::vector<uint32_t> of_;       // Indexed by node: its subgraph.
  std::vector<NodeIndex> writer_;  // Indexed by value: the last node that wrote it in place.
  std::vector<Subgraph> all_;
  std::array<uint32_t, kStreams> open_;  // Indexed by stream: its subgraph that still takes nodes.
  std::array<bool, kStreams> has_rows_;
  // [a][b]: stream a has waited for the subgraphs of stream b below this number.
  std::array<std::array<uint32_t, kStreams>, kStreams> seen_ = {};
};

// The joins of a graph, bucket by bucket in the order in which they communicate. What is copied for
// them alone is copied right before, so that the accelerator is not interrupted more often.
class Buckets {
 public:
  explicit Buckets(const GraphIndex& index)
      : graph_(index.graph()), is_copy_(graph_.nodes.size(), false) {
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (node.phase != Phase::kSlice || !index.Is(n, OpKind::kCopy)) continue;
      if (node.outputs.empty()) continue;  // It refreshes a replica.
      const auto readers = index.readers(node.outputs[0]);
      is_copy_[n] = !readers.empty() && std::ranges::all_of(readers, [this](NodeIndex reader) {
        return graph_.nodes[reader].phase == Phase::kJoin;
      });
    }
    std::map<int64_t, std::vector<NodeIndex>> by_number;
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (node.phase == Phase::kJoin) by_number[IntAttr(node.attrs, "number", 0)].push_back(n);
    }
    for (auto& [number, nodes] : by_number) buckets_.push_back(std::move(nodes));
  }

  // A node that is added with a bucket.
  bool Takes(NodeIndex n) const { return is_copy_[n]; }
  // Adds the next buckets whose values have all been made by nodes that were added.
  void AddReady(std::vector<bool>& added, Segments& to) {
    for (; next_ < buckets_.size() && IsReady(buckets_[next_], added); ++next_) {
      AddCopies(buckets_[next_], added, to);
      to.AddJoin(buckets_[next_], false);
    }
  }
  void AddRest(std::vector<bool>& added, Segments& to) {
    for (size_t b = next_; b < buckets_.size(); ++b) AddCopies(buckets_[b], added, to);
    for (; next_ < buckets_.size(); ++next_) {
      to.AddJoin(buckets_[next_], JoinsRows(buckets_[next_]));
    }
  }

 private:
  void AddCopies(const std::vector<NodeIndex>& bucket, std::vector<bool>& added, Segments& to) {
    for (const NodeIndex n : bucket) {
      for (const ValueIndex v : graph_.nodes[n].inputs) {
        const NodeIndex copy = graph_.value(v).producer;
        if (copy == kNone || !is_copy_[copy] || added[copy]) continue;
        to.Add(copy);
        added[copy] = true;
      }
    }
  }
  // Rows of tables are joined when all nodes of the slices have ended: their memory may move.
  bool JoinsRows(const std::vector<NodeIndex>& bucket) const {
    return graph_.nodes[bucket.front()].op == "sum_rows";
  }
  bool IsReady(const std::vector<NodeIndex>& bucket, const std::vector<bool>& added) const {
    if (JoinsRows(bucket)) return false;
    return std::ranges::all_of(bucket, [&](NodeIndex n) {
      return std::ranges::all_of(graph_.nodes[n].inputs, [&](ValueIndex v) {
        NodeIndex producer = graph_.value(v).producer;
        if (producer != kNone && is_copy_[producer]) {
          producer = graph_.value(graph_.nodes[producer].inputs[0]).producer;
        }
        return producer == kNone || added[producer];
      });
    });
  }

  const Graph& graph_;
  std::vector<bool> is_copy_;  // By node: a copy for joins.
  std::vector<std::vector<NodeIndex>> buckets_;
  size_t next_ = 0;
};

class Cutter {
 public:
  explicit Cutter(const GraphIndex& index)
      : index_(index), graph_(index.graph()), wave_(graph_.nodes.size(), Wave::kBeforePull) {}

  void FindWaves() {
    std::vector<bool> needs_rows(graph_.nodes.size(), false);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const ValueIndex v : graph_.nodes[n].inputs) {
        const NodeIndex from = graph_.value(v).producer;
        if (from == kNone ? index_.IsPulledRows(v) : needs_rows[from]) needs_rows[n] = true;
      }
    }
    std::vector<ValueIndex> pushed;
    for (const TableUse& table : graph_.tables) {
      if (table.row_grad != kNone) pushed.push_back(table.row_grad);
    }
    const std::vector<bool> for_push = AncestorsOf(pushed);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (needs_rows[n]) wave_[n] = for_push[n] ? Wave::kUntilPush : Wave::kAfterPush;
    }
    // A node without inputs runs in the wave of its first reader.
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      if (graph_.nodes[n].inputs.empty()) wave_[n] = WaveOfFirstReader(graph_.nodes[n]);
    }
  }

  // Nodes that the values depend on.
  std::vector<bool> AncestorsOf(const std::vector<ValueIndex>& values) const {
    std::vector<bool> found(graph_.nodes.size(), false);
    for (const ValueIndex v : values) {
      if (graph_.value(v).producer != kNone) found[graph_.value(v).producer] = true;
    }
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      if (!found[n]) continue;
      for (const ValueIndex v : graph_.nodes[n].inputs) {
        if (graph_.value(v).producer != kNone) found[graph_.value(v).producer] = true;
      }
    }
    return found;
  }

  // Nodes that only make outputs for scoring, which training does not read.
  std::vector<bool> OnlyForScoring() const {
    std::vector<bool> output(graph_.values.size(), false), only(graph_.nodes.size(), false);
    for (const LossSpec& loss : graph_.losses) output[loss.output] = true;
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      const Node& node = graph_.nodes[n];
      if (node.phase != Phase::kSlice || node.outputs.size() != 1) continue;
      const ValueIndex v = node.outputs[0];
      const std::span<const NodeIndex> readers = index_.readers(v);
      only[n] = (output[v] || !readers.empty()) &&
                std::ranges::all_of(readers, [&](NodeIndex reader) { return only[reader]; });
    }
    return only;
  }

  std::vector<NodeIndex> InWaves() const {
    std::vector<NodeIndex> nodes;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) nodes.push_back(static_cast<NodeIndex>(n));
    const auto last = static_cast<int>(Wave::kAfterPush);
    std::ranges::stable_sort(nodes, {}, [&](NodeIndex n) {
      return graph_.nodes[n].phase != Phase::kSlice ? last + 1 : static_cast<int>(wave_[n]);
    });
    return nodes;
  }

  // The subgraphs of the chosen slice nodes, wave by wave, and those of joins between them.
  std::vector<Subgraph> SliceSubgraphs(const std::vector<bool>& chosen, bool with_joins) const {
    Segments segments(index_, 0);
    Buckets buckets(index_);
    std::vector<bool> added(graph_.nodes.size(), false);
    for (const Wave wave : {Wave::kBeforePull, Wave::kUntilPush, Wave::kAfterPush}) {
      for (size_t n = 0; n < graph_.nodes.size(); ++n) {
        if (!chosen[n] || graph_.nodes[n].phase != Phase::kSlice || wave_[n] != wave) continue;
        if (with_joins && buckets.Takes(static_cast<NodeIndex>(n))) continue;
        segments.Add(static_cast<NodeIndex>(n));
        added[n] = true;
        if (with_joins) buckets.AddReady(added, segments);
      }
      segments.CloseAll();
    }
    if (with_joins) buckets.AddRest(added, segments);
    return segments.Take();
  }

  // `before`: number of subgraphs before them.
  std::vector<Subgraph> StepSubgraphs(size_t before) const {
    Segments segments(index_, before);
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].phase == Phase::kStep) segments.Add(n);
    }
    return segments.Take();
  }

 private:
  Wave WaveOfFirstReader(const Node& node) const {
    Wave first = Wave::kAfterPush;
    for (const ValueIndex v : node.outputs) {
      for (const NodeIndex reader : index_.readers(v)) first = std::min(first, wave_[reader]);
    }
    return first;
  }

  const GraphIndex& index_;
  const Graph& graph_;
  std::vector<Wave> wave_;
};

}  // namespace

std::vector<NodeIndex> NodesInStreamOrder(const GraphIndex& index) {
  Cutter cutter(index);
  cutter.FindWaves();
  return cutter.InWaves();
}

void CutIntoSubgraphs(Plan& plan) {
  const GraphIndex index(plan.graph, TraitsOf);
  Cutter cutter(index);
  cutter.FindWaves();
  std::vector<bool> trained = cutter.OnlyForScoring();
  trained.flip();
  plan.train = cutter.SliceSubgraphs(trained, true);
  for (Subgraph& step : cutter.StepSubgraphs(plan.train.size()))
    plan.train.push_back(std::move(step));
  std::vector<ValueIndex> outputs;
  for (const LossSpec& loss : plan.graph.losses) outputs.push_back(loss.output);
  plan.evaluate = cutter.SliceSubgraphs(cutter.AncestorsOf(outputs), false);
}

}  // namespace dt::scheduler
