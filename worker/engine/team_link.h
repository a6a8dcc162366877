// The way from a worker to the others of its team.
#pragma once

#include <atomic>
#include <cstdint>

#include "worker/collective/communicator.h"

namespace dt::worker {

struct TeamLink {
  Communicator& communicator;
  uint32_t first_rank = 0;  // The rank of position 0 of the team; the others follow.
  // True after a communication has failed: some worker may be lost.
  std::atomic<bool> broken = false;
};

}  // namespace dt::worker
