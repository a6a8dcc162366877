// Which servers hold which shards while the job runs: makes newcomers members of chains once they
// have caught up, gives shards to servers that have joined, and takes them from servers that drain.
// The copying is the servers' work; here are only the versions of the map, one small change after
// the other.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/control/messages.h"
#include "scheduler/shards/balance.h"
#include "scheduler/shards/copy_rate.h"
#include "scheduler/state/job_context.h"

namespace dt::scheduler {

class ShardMoves {
 public:
  explicit ShardMoves(JobContext& job) : job_(job) {}

  // A tail tells, again and again, that a newcomer has caught up.
  void OnCopied(const Member& from, const ShardCopiedMessage& copied);

  // Changes the map as far as it is time for it. REQUIRES: the job trains, and no order is out
  // during which a shard may not change its tail.
  void Advance(TimePoint now);

  // A server's heartbeat.
  void OnReport(TimePoint now, const Member& from, const HeartbeatMessage& report);

  // Shards to be copied, those under way included, until all is as it should be with the servers of
  // now.
  uint32_t CopiesLeft() const;
  std::optional<double> bytes_per_second() const { return rate_.bytes_per_second(); }

  // Whether a server that joins a running job may use enough memory for its share of the rows that
  // stay in memory. Errors: Invalid.
  Status CheckMemory(const JoinMessage& join) const;

  // Servers that drain and have nothing left.
  std::vector<ProcessId> Drained() const;

  // The server is to give away its shards. Errors: Invalid, if it is no server of the job, or if
  // too few others would be left.
  Status Drain(TimePoint now, ProcessId server);

 private:
  BalanceInput InputFor(const ShardMap& map) const;

  JobContext& job_;
  CopyRate rate_;
  std::map<ShardId, ShardCopiedMessage> copied_;  // Told since the last Advance.
};

}  // namespace dt::scheduler
