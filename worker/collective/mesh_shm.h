// The mesh of ranks that share a host's memory. connect_mesh.cc finds out whether they do.
#pragma once

#include <memory>
#include <vector>

#include "common/net/shm/shm_memory.h"
#include "worker/collective/mesh.h"

namespace dt::worker {

// A rank as the others see it.
struct ShmPeer {
  SharedMemory memory;  // ShmSegmentBytes, zeros at first; all ranks write to it.
  OwnedFd process;      // A pidfd, which tells that the process has ended.
};

size_t ShmSegmentBytes(uint32_t ranks);
// `peers`: by rank, this one among them.
std::unique_ptr<Mesh> MakeShmMesh(const MeshOptions& options, std::vector<ShmPeer> peers);

}  // namespace dt::worker
