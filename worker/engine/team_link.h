// The way from a worker to the others of its team, and of other teams.
#pragma once

#include <atomic>
#include <cstdint>

#include "worker/collective/communicator.h"
#include "worker/memory/parameters.h"

namespace dt::worker {

struct TeamLink {
  Communicator& communicator;
  TeamPlace place;  // The workers of a team have consecutive ranks.
  // True after a communication has failed: some worker may be lost.
  std::atomic<bool> broken = false;
};

}  // namespace dt::worker
