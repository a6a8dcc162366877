// A worker that joins a running job gets its state from one that trains: the dense parameters with
// their optimizer state, the tables on workers, and how far the current order is. Afterwards both
// have the same bits, which checksums confirm.
#pragma once

#include "common/base/clock.h"
#include "common/base/status.h"
#include "worker/collective/communicator.h"
#include "worker/memory/parameters.h"
#include "worker/tables/worker_tables.h"
#include "worker/train/trainer.h"

namespace dt::worker {

struct SharedState {
  Parameters& parameters;
  WorkerTables& tables;
  OrderProgress& order;
  uint64_t& samples_before;  // Trained by orders before this one.
  TimePoint now;             // By this process's clock.
};

struct ShareLink {
  Communicator& communicator;
  const CollectiveCall& call;  // Its group: those that share.
  uint32_t from = 0;           // The member that has the state.

  bool gives() const { return call.group.ranks[from] == communicator.rank(); }
};

// All members of the group call it. Errors: those of Communicator; Internal, if what has come is
// not what was sent; those of WorkerTable::Restore.
Status ShareState(const ShareLink& link, const SharedState& state);

}  // namespace dt::worker
