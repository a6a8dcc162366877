// One shard: its part of every table, and the clock that says when pushes to it are applied. Owned
// by its executor's thread; no I/O, no time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "server/shard/gradient_sum.h"
#include "server/shard/residency.h"
#include "server/shard/shard_clock.h"
#include "server/table/embedding_table.h"

namespace dt::server {

// Working memory for applying contributions. The shards of a thread share one, and it is kept, so
// that it allocates nothing in steady state.
struct ShardScratch {
  GradientSum sum;
  std::vector<const GroupView*> groups;  // Groups of the current pushes, in the order of summing.
  std::vector<EmbeddingTable::PushRun> pushes;
  std::vector<EmbeddingTable::KeyRun> keys;
};

class Shard {
 public:
  // `rows`: the rows of all shards of the executor, by table; they outlive the shard.
  Shard(ShardId id, std::span<const std::unique_ptr<TableRows>> rows,
        std::unique_ptr<ShardClock> clock);

  ShardId id() const { return id_; }
  const ShardClock& clock() const { return *clock_; }
  // Every step before now() is applied.
  Step now() const { return clock_->now(); }

  // See ShardClock. `residency`: the disk below memory; null: there is none.
  Status Take(Contribution contribution, ShardScratch& scratch, Residency* residency);
  void Advance(Step step, ShardScratch& scratch, Residency* residency);

  // Forgets keys, rows and contributions.
  void Reset(Step step);

  EmbeddingTable& table(uint32_t index) { return tables_[index]; }
  const EmbeddingTable& table(uint32_t index) const { return tables_[index]; }
  size_t tables() const { return tables_.size(); }
  uint64_t index_bytes() const;  // Indexes and the sketches of admission.
  uint64_t bytes() const;        // Indexes, sketches and the rows in memory.

  // For expiry by time: adds the time for which the shard has run since the last call.
  void PassTime(Duration elapsed);

  // For a shard that moves to another server: the pushes that it holds go along with its rows.
  std::unique_ptr<ShardClock> TakeClock() { return std::move(clock_); }
  void SetClock(std::unique_ptr<ShardClock> clock) { clock_ = std::move(clock); }

 private:
  class Updater;

  ShardId id_;
  std::span<const std::unique_ptr<TableRows>> rows_;
  std::vector<EmbeddingTable> tables_;
  std::unique_ptr<ShardClock> clock_;
};

}  // namespace dt::server
