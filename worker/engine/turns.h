// The turns of the engine: runs of a part of the plan, each in the memory of a lane. Tells each
// stream what it runs next. A stream keeps the order of its subgraphs within a turn. Between turns
// it takes the earliest one that can go on, so that what waits holds up nothing else; only the
// stream of communication keeps the order of the turns, too, because all workers must communicate
// in one order. Any thread.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/engine/node_runner.h"

namespace dt::worker {

class Turns {
 public:
  // Without overlap, a subgraph begins when the one before it in the plan has ended.
  Turns(size_t lanes, bool overlap) : overlap_(overlap), turns_(lanes) {}

  // Begins the next turn. REQUIRES: the turn before in its lane has ended.
  void Begin(const Pass& pass);
  void GiveRows(size_t lane);

  struct Work {
    const Pass* pass = nullptr;  // Valid until the subgraph has ended.
    uint64_t turn = 0;           // Its number, from 1 on.
    uint32_t subgraph = 0;
  };
  // Blocks until the stream can run a subgraph; nothing after a failure. The caller then calls End.
  std::optional<Work> Next(Stream stream);
  // The same; nothing if the lane's turn has ended.
  std::optional<Work> NextUntil(Stream stream, size_t lane);
  void End(const Work& work);
  // Nothing begins and every wait returns `status` from now on; the first failure counts.
  void Fail(Status status);

  // Errors: the failure; Timeout.
  Status WaitFor(size_t lane, uint32_t subgraph, Duration timeout);
  // Waits until the lane's turn has ended.
  Status WaitForTurn(size_t lane, Duration timeout);
  // After a failure: returns when no subgraph runs any more.
  void WaitUntilIdle(Duration timeout);

 private:
  struct Turn {
    uint64_t number = 0;  // 0: there was none yet.
    Pass pass;
    bool has_rows = false;
    size_t left = 0;  // Subgraphs that have not ended.
    std::vector<bool> ended;
    std::array<uint32_t, kStreams> next = {};  // By stream: its next subgraph.
  };
  std::optional<Work> Find(Stream stream) DT_REQUIRES(mutex_);
  uint32_t NextOf(Turn& turn, Stream stream) DT_REQUIRES(mutex_);
  bool IsReady(const Turn& turn, uint32_t subgraph) const DT_REQUIRES(mutex_);
  bool EndedBefore(const Turn& turn, uint32_t subgraph) const DT_REQUIRES(mutex_);

  const bool overlap_;
  mutable Mutex mutex_;
  Condition changed_;
  std::vector<Turn> turns_ DT_GUARDED_BY(mutex_);  // By lane.
  uint64_t begun_ DT_GUARDED_BY(mutex_) = 0;
  size_t running_ DT_GUARDED_BY(mutex_) = 0;  // Subgraphs.
  Status status_ DT_GUARDED_BY(mutex_);
};

}  // namespace dt::worker
