// A CUDA device made of host threads: CUDA kernels compiled for the CPU (see cuda_runtime.h here),
// with streams, events, memory and graphs that behave as those of a device.
//
// Card 0 does work at once in the calling thread. On every other card each stream has a thread,
// which sometimes pauses before it goes on (seeded by the card's number), so that missing
// synchronization is noticed.
#pragma once

#include <memory>

#include "common/device/accelerator_cuda.h"
#include "common/device/cuda_table.h"

namespace dt::test {

// A complete table except for the functions that count and test devices. "Device" memory is host
// memory and initially NaN. Ends the program if the device side of a copy is not device memory, or
// the host side is, or if work that cannot be captured is given to a capturing stream.
CudaTable TableOnHost();
// NCCL among such cards, other than card 0; part of TableOnHost.
NcclTable NcclOnHost();
std::unique_ptr<CudaAccelerator> OpenCardOnHost(int32_t card);

// Counts of all cards since the program began.
struct UseOfCards {
  uint64_t allocations = 0;  // Allocations of device memory and pinned memory.
  uint64_t captures = 0, graph_launches = 0;
  uint64_t waiting_copies = 0;  // Copies from and to memory that is not pinned.
};
UseOfCards UseOnHost();

}  // namespace dt::test
