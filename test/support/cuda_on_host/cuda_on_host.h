// A CUDA card made of host threads: the CUDA kernels compiled for the processor (see cuda_runtime.h
// here), and under them streams, events, memory and graphs that behave as a card's do.
//
// Card 0 does its work as it is given. On any other each stream has a thread, which now and then
// waits a little before it goes on, by its card's number as a seed: what is read or written without
// waiting for it shows.
#pragma once

#include <memory>

#include "common/device/accelerator_cuda.h"
#include "common/device/cuda_table.h"

namespace dt::test {

// All of a table but counting and trying cards. "Device" memory is the host's, and holds NaN at
// first. Ends the program if a copy's device side is not memory of a card or its host side is, or
// if work of a stream that captures cannot be captured.
CudaTable TableOnHost();
std::unique_ptr<CudaAccelerator> OpenCardOnHost(int32_t card);

// Since the program began, of all cards.
struct UseOfCards {
  uint64_t allocations = 0;  // Of device and pinned memory.
  uint64_t captures = 0, graph_launches = 0;
  uint64_t waiting_copies = 0;  // From and to memory that is not pinned.
};
UseOfCards UseOnHost();

}  // namespace dt::test
