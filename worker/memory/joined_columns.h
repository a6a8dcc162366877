// Puts columns of a batch side by side, as inputs of the graph need them.
#pragma once

#include "common/graph/graph_specs.h"
#include "common/layout/layout.h"
#include "worker/data/batch.h"
#include "worker/memory/aligned_buffer.h"

namespace dt::worker {

// The part of an input that a worker has: samples of the slice, and `width` numbers of each.
struct InputPart {
  Range samples;
  size_t width = 0;
};

// An input of one of the column kinds, [samples, width], in `memory`. REQUIRES: the batch has
// samples; ids are below 2^32 (CheckIds).
void* JoinColumns(const InputSpec& spec, const InputPart& part, const Batch& batch,
                  AlignedBuffer& memory);

}  // namespace dt::worker
