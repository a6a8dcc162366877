// One shard: its part of every table, and the clock that says when what it is pushed is applied.
// Owned by its executor's thread; no I/O, no time.
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

// What applying contributions needs beside the shard: one for the shards of a thread, kept between
// uses, so that it allocates nothing in steady state.
struct ShardScratch {
  GradientSum sum;
  std::vector<const GroupView*> groups;  // Of the pushes at hand, in the order of summing.
  std::vector<EmbeddingTable::PushRun> pushes;
  std::vector<EmbeddingTable::KeyRun> keys;
};

class Shard {
 public:
  // `rows`: of all shards of the executor, by table; they outlive it.
  Shard(ShardId id, std::span<const std::unique_ptr<TableRows>> rows,
        std::unique_ptr<ShardClock> clock);

  ShardId id() const { return id_; }
  const ShardClock& clock() const { return *clock_; }
  // Every step before it is applied.
  Step now() const { return clock_->now(); }

  // As ShardClock. residency: of the disk below memory; null: there is none.
  Status Take(Contribution contribution, ShardScratch& scratch, Residency* residency);
  void Advance(Step step, ShardScratch& scratch, Residency* residency);

  // Forgets keys, rows and contributions.
  void Reset(Step step);

  EmbeddingTable& table(uint32_t index) { return tables_[index]; }
  const EmbeddingTable& table(uint32_t index) const { return tables_[index]; }
  size_t tables() const { return tables_.size(); }
  uint64_t index_bytes() const;  // And what the lives of rows are counted with.
  uint64_t bytes() const;        // The same with the rows in memory.

  // For expiry by time: the shard runs for so long since the last call.
  void PassTime(Duration elapsed);

  // For a shard that changes its server: what it was pushed goes along with its rows.
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
