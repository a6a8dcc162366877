// What the scheduler hands to every worker: the final graph, cut into subgraphs, with the order and
// the memory of one rank. A plain value; plan_codec.h turns it into bytes.
#pragma once

#include <string>
#include <vector>

#include "common/graph/graph.h"
#include "common/graph/op_traits.h"
#include "common/specs/column.h"

namespace dt {

// What runs work in order: the processor, the accelerator, and copies each way between them.
enum class Stream : uint8_t { kCpu, kGpu, kToGpu, kToCpu };
inline constexpr size_t kStreams = 4;

// Nodes that one stream runs without a pause, in this order: convex, of one stage and phase. It
// begins when the one before it on its stream and all of `waits` have ended; so it is cut where a
// value arrives, or is awaited elsewhere.
struct Subgraph {
  std::string name;
  Stream stream = Stream::kCpu;
  Phase phase = Phase::kSlice;
  uint32_t stage = 0;
  bool needs_rows = false;      // Waits for the pulled rows.
  std::vector<uint32_t> waits;  // Subgraphs of other streams, earlier in the same pass and phase.
  std::vector<NodeIndex> nodes;
  DT_FIELDS(name, stream, phase, stage, needs_rows, waits, nodes)
  friend bool operator==(const Subgraph&, const Subgraph&) = default;
};

struct Plan {
  Graph graph;
  std::vector<ColumnSpec> columns;  // Of the data set, in its order.
  uint32_t batch_size = 0;
  uint32_t slices = 0;
  uint64_t seed = 0;
  // Subgraphs in an order in which they could run one by one. Training: for each slice the slice
  // subgraphs, then once the step subgraphs, the first of which is the communication (sum_slices,
  // gather_slices and sum_rows nodes, one exchange).
  std::vector<Subgraph> train;
  std::vector<Subgraph> evaluate;  // Forward only; gives LossSpec::output.
  // Memory plan: values of kind kNode with equal slot share memory: all that touches one of them
  // has ended before the other is written. slot[v] for each value, kNone for values from outside.
  // Values of a slot lie on one device. Evaluation uses the same slots.
  std::vector<uint32_t> slot;
  uint32_t slot_count = 0;
  DT_FIELDS(graph, columns, batch_size, slices, seed, train, evaluate, slot, slot_count)
  friend bool operator==(const Plan&, const Plan&) = default;
};

// The stream that runs nodes of this kind on this device.
Stream StreamOf(OpKind kind, Device device);
std::string_view NameOf(Stream stream);
// True for the streams whose nodes are copies between devices.
bool CarriesCopies(Stream stream);
// Values that are read after the slice pass: by step nodes, pushed, or reported. By value.
std::vector<bool> KeptValues(const Graph& graph);

}  // namespace dt
