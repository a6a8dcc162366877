// The plan that the scheduler sends to a worker: the final graph of its position in a team, divided
// into subgraphs, with their order and the memory layout. A plain value; plan_codec.h turns it into
// bytes.
#pragma once

#include <string>
#include <vector>

#include "common/graph/graph.h"
#include "common/graph/op_traits.h"
#include "common/specs/column.h"

namespace dt {

// Each stream runs its work in order: the CPU, the accelerator, the copies between them in each
// direction, and the communication with other workers.
enum class Stream : uint8_t { kCpu, kGpu, kToGpu, kToCpu, kComm };
inline constexpr size_t kStreams = 5;

// Nodes that one stream runs without interruption, in this order: convex, and of one stage and
// phase. A subgraph begins when the previous one of its stream and all in `waits` have ended.
// Therefore a new subgraph begins wherever a value arrives from another stream or another stream
// waits for one.
//
// Subgraphs of Phase::kJoin communicate what all slices of a step leave: what they wait for has
// ended in every slice that this worker runs. They stand among the subgraphs of slices: while the
// last slice runs, the stream of communication keeps the order of this list.
struct Subgraph {
  std::string name;
  Stream stream = Stream::kCpu;
  Phase phase = Phase::kSlice;
  uint32_t stage = 0;
  bool needs_rows = false;  // Waits for the pulled rows.
  // Subgraphs of other streams, earlier in the same pass and phase; of a join also those of slices.
  std::vector<uint32_t> waits;
  std::vector<NodeIndex> nodes;
  DT_FIELDS(name, stream, phase, stage, needs_rows, waits, nodes)
  friend bool operator==(const Subgraph&, const Subgraph&) = default;
};

struct Plan {
  Graph graph;
  std::vector<ColumnSpec> columns;  // The data set's columns, in its order.
  uint32_t batch_size = 0;
  uint32_t slices = 0;
  uint64_t seed = 0;
  // The workers that compute a slice together, and which of them has this plan.
  uint32_t devices = 1;
  uint32_t position = 0;
  // Workers that have the same parameters share their updates in groups of so many; 0: all of them.
  uint32_t sharers = 0;
  // Subgraphs in an order in which they could run one by one. Training runs the slice subgraphs
  // once for each slice, then the joins and the step subgraphs once. A join is a bucket of
  // sum_slices and gather_slices nodes with the same number, which travel together, or all sum_rows
  // nodes.
  std::vector<Subgraph> train;
  std::vector<Subgraph> evaluate;  // Forward only; computes LossSpec::output.
  // Memory plan: the slot of each value, kNone for values from outside. Values of kind kNode with
  // the same slot share memory: all uses of one have ended before another is written, or both are
  // the same bytes (MemoryOwners). The values of a slot are on one device. Evaluation uses the same
  // slots.
  std::vector<uint32_t> slot;
  uint32_t slot_count = 0;
  DT_FIELDS(graph, columns, batch_size, slices, seed, devices, position, sharers, train, evaluate,
            slot, slot_count)
  friend bool operator==(const Plan&, const Plan&) = default;
};

// Workers that have the same parameters are numbered team by team. Those with numbers [first,
// first + count) share their updates, and each has part number - first of count of the rows.
struct Sharers {
  uint32_t first = 0, count = 1;
};
// The sharers of worker `number`, one of `workers`. `group`: see Plan::sharers.
Sharers SharersOf(uint32_t number, uint32_t workers, uint32_t group);

// The stream that runs the node, whose operator is of this kind.
Stream StreamOf(OpKind kind, const Node& node);
std::string_view NameOf(Stream stream);
// True for the streams whose nodes are copies between devices.
bool CarriesCopies(Stream stream);
// By value: true if it is read after the slice pass, because a step node reads it, it is pushed, or
// it is reported.
std::vector<bool> KeptValues(const Graph& graph);

}  // namespace dt
