// The way from a worker to the others of its team, and of other teams.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "worker/collective/communicator.h"
#include "worker/collective/communicator_nccl.h"
#include "worker/collective/mesh.h"
#include "worker/memory/parameters.h"

namespace dt::worker {

// Used by one thread at a time: by the engine's thread of communication from the begin of a step's
// last own slice until its exchange has finished, and while an update runs.
struct TeamLink {
  // Connects this worker's card with those of the others of these groups.
  using ConnectCards = std::function<Result<std::unique_ptr<DeviceCommunicator>>(
      std::span<const RankGroup> groups, CudaAccelerator& card)>;

  // The workers of a team have consecutive ranks.
  explicit TeamLink(std::unique_ptr<Mesh> to_others, uint32_t team_size = 1)
      : mesh(std::move(to_others)),
        communicator(MakeMeshCommunicator(*mesh)),
        place{mesh->rank() / team_size, mesh->size() / team_size},
        all(RankGroup::All(mesh->size())) {}

  const std::unique_ptr<Mesh> mesh;
  const std::unique_ptr<Communicator> communicator;
  const TeamPlace place;
  const RankGroup all;
  ConnectCards connect_cards = {};  // Empty: this worker has no way to do so.
};

}  // namespace dt::worker
