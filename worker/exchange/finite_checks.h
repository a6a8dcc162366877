// Check that what a step computes is finite before others get it; the error names the first value
// that is not.
#pragma once

#include <span>

#include "common/base/status.h"
#include "common/graph/graph.h"
#include "common/graph/graph_index.h"
#include "worker/memory/bindings.h"

namespace dt::worker {

// A slice that runs, or the one that ran last.
struct SliceAtHand {
  Step step = 0;
  SliceIndex slice = 0;
  uint64_t first_sample = 0;  // Position in the epoch.
  uint32_t samples = 0;
};

// Errors of all functions: Unavailable naming the step and the value.
Status CheckLosses(const Graph& graph, const Bindings& bindings, const SliceAtHand& slice);
// `row_grads`: by table of the graph.
Status CheckRowGrads(const Graph& graph, RowSpans row_grads, const SliceAtHand& slice);
// Checks the gradients of tables on the worker that are updated by this slice alone. Gradients on
// the accelerator are not checked: they show in the next loss.
Status CheckUpdatedRows(const GraphIndex& index, const Bindings& bindings,
                        const SliceAtHand& slice);
// `sums`: the gradient of a table on the worker, summed over all slices.
Status CheckRowSums(const TableUse& table, std::span<const float> sums, Step step);
// `sums`: over all slices; empty if no other rank adds to this rank's gradients, which are then
// checked themselves. Gradients on the accelerator are not checked: they show in the next loss.
Status CheckDenseGrads(const Graph& graph, const Bindings& bindings, std::span<const float> sums,
                       Step step);

}  // namespace dt::worker
