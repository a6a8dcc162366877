// Collectives on tensors in the memory of CUDA cards, by NCCL. One communicator for each group, all
// made when the ranks connect, in the order of the plan, since pairs that are made at their first
// use can wait for one another. All use one stream, since the library does not promise that two
// make progress side by side.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "common/device/accelerator_cuda.h"
#include "worker/collective/communicator.h"

namespace dt::worker {

// Sums are in the library's order: they are the same on all members, and not those of other group
// sizes. Terms of several slices are not added here: ReduceTerms is NotYet.
class DeviceCommunicator : public Communicator {
 public:
  // Copies pieces of device memory. A call that follows finds them; Settle waits for them.
  virtual Status CopyRows(const CudaRows& copy) = 0;
  virtual Status Settle(const CollectiveCall& call) = 0;
  // Device memory of at least this size, valid until the next call of Scratch.
  virtual Result<std::byte*> Scratch(size_t bytes) = 0;
};

struct NcclOptions {
  CudaAccelerator& card;  // Outlives the communicator. No other rank uses it.
  uint32_t rank = 0;
  Rendezvous& rendezvous;  // Used while connecting.
  std::string prefix;      // Begins the keys in the rendezvous; another one for each connection.
  MeshLimits limits = {};
};
// Joins the groups of which the rank is a member, in their order; a group is called by its id.
// Returns when all members have joined. Groups of one need no other. Errors: Unavailable, if the
// library is absent or fails; Timeout, naming the group; the status that interrupted it.
Result<std::unique_ptr<DeviceCommunicator>> ConnectNccl(std::span<const RankGroup> groups,
                                                        const NcclOptions& options);

}  // namespace dt::worker
