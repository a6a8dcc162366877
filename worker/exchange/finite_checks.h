// What a step computes must be finite before others get it: the error says where it first was not.
#pragma once

#include <span>

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/graph/graph_index.h"
#include "worker/memory/bindings.h"

namespace dt::worker {

// A slice that runs, or ran last.
struct SliceAtHand {
  Step step = 0;
  SliceIndex slice = 0;
  uint64_t first_sample = 0;  // Of the epoch.
  uint32_t samples = 0;
};

// Errors of all: Unavailable, with step and place.
Status CheckLosses(const Graph& graph, const Bindings& bindings, const SliceAtHand& slice);
// row_grads: by table of the graph.
Status CheckRowGrads(const Graph& graph, TableRows row_grads, const SliceAtHand& slice);
// Of the gradients of tables on the worker that the slice alone updates; what lies on the
// accelerator shows in the next loss.
Status CheckUpdatedRows(const GraphIndex& index, const Bindings& bindings,
                        const SliceAtHand& slice);
// Of a table on the worker: `sums` of all slices.
Status CheckRowSums(const TableUse& table, std::span<const float> sums, Step step);
// `sums`: of all slices; empty if nobody adds to this rank's gradients, which are then looked at
// themselves. What lies on the accelerator shows in the next loss.
Status CheckDenseGrads(const Graph& graph, const Bindings& bindings, std::span<const float> sums,
                       Step step);

}  // namespace dt::worker
