// Keeps the rows of one executor within its memory budget: writes cold rows out in sorted runs. A
// clock with counts finds the cold rows (key_index.h). Owned by the executor's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "server/shard/shard_set.h"
#include "server/storage/rows_below.h"
#include "server/storage/tier_progress.h"

namespace dt::server {

// How an executor's memory is divided.
struct TierBudget {
  explicit TierBudget(uint64_t memory_bytes);

  uint64_t memory_bytes;  // All of it: rows, indexes and what the tier needs.
  uint64_t run_bytes;     // Size of one run on its way to disk.
  uint64_t cache_bytes;   // Size of the cache for blocks of files on disk.
};

class Evictor {
 public:
  // While this many runs are being written, no other rows leave.
  static constexpr size_t kRunsMax = 2;

  // The other objects outlive it.
  Evictor(const TierBudget& budget, ShardSet& shards, RowsBelow& below,
          const TierProgress& progress)
      : budget_(budget), shards_(shards), below_(below), progress_(progress) {}

  // Limit for the rows and indexes of all shards.
  uint64_t bytes_max() const;
  // Evicts rows if there are too many; takes some milliseconds at most.
  void Work();
  // True if memory is full while the disk is behind, so that no update may make rows. `tier_bytes`:
  // the tier's own memory.
  bool IsFull(uint64_t tier_bytes) const;

 private:
  // The share of all rows that has to leave, at least; 0: none.
  double ShareToLeave() const;
  std::vector<EmbeddingTable*> Evictable();
  bool HasRoom(const EmbeddingTable& table, double share) const;
  uint64_t Sweep(EmbeddingTable& table);

  const TierBudget budget_;
  ShardSet& shards_;
  RowsBelow& below_;
  const TierProgress& progress_;
  size_t hand_ = 0;     // Which of the evictable tables is being swept.
  uint64_t swept_ = 0;  // Buckets swept since the progress count was swept_at_.
  uint64_t swept_at_ = 0;
};

}  // namespace dt::server
