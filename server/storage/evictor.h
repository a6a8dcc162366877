// Keeps the rows of one executor within its memory: cold rows leave in sorted runs (clock with
// counts, key_index.h). Owned by the executor's thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "server/shard/shard_set.h"
#include "server/storage/rows_below.h"
#include "server/storage/tier_progress.h"

namespace dt::server {

// How an executor's memory is shared out.
struct TierBudget {
  explicit TierBudget(uint64_t memory_bytes);

  uint64_t memory_bytes;  // Rows, indexes, and what the tier needs.
  uint64_t run_bytes;     // One run on its way to disk.
  uint64_t cache_bytes;   // The disk's cache of blocks.
};

class Evictor {
 public:
  static constexpr size_t kRunsMax = 2;  // No more rows leave while so many runs are being written.

  // All of them outlive it. `tables`: of all shards.
  Evictor(const TierBudget& budget, ShardSet& shards, std::span<EmbeddingTable* const> tables,
          RowsBelow& below, const TierProgress& progress);

  // What rows and indexes of all shards may take.
  uint64_t bytes_max() const;
  // Rows leave, if there are too many; takes some milliseconds at most.
  void Work();
  // An update would make more rows than memory can take while the disk is behind. `tier_bytes`: the
  // tier's own memory.
  bool IsFull(uint64_t tier_bytes) const;

 private:
  // The part of all rows that has to leave, at least; 0: none.
  double ShareToLeave() const;
  bool HasRoom(const EmbeddingTable& table, double share) const;
  uint64_t Sweep(EmbeddingTable& table);

  const TierBudget budget_;
  ShardSet& shards_;
  RowsBelow& below_;
  const TierProgress& progress_;
  std::vector<EmbeddingTable*> evictable_;  // Tables whose rows may leave.
  size_t hand_ = 0;                         // The table of evictable_ that is swept now.
  uint64_t swept_ = 0;                      // Buckets since progress swept_at_.
  uint64_t swept_at_ = 0;
};

}  // namespace dt::server
