#include "server/storage/removals.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::server {

// The disk does things in order: when it removes the shard's rows, it has all that were on their
// way.
void Removals::Begin(ShardId shard, uint64_t rows_below) {
  below_.OnShardGone(rows_below);
  below_.Seal();
  const bool no_disk = below_.runs().empty() && disk_.db() == nullptr;
  removals_.push_back({shard, fetcher_.begun(), no_disk, no_disk});
}

void Removals::Work() {
  for (Removal& removal : removals_) {
    if (!removal.given && !below_.runs_wait()) removal.given = disk_.TryRemove(removal.shard);
  }
  std::erase_if(removals_, [&](const Removal& removal) {
    return removal.done && fetcher_.ended() >= removal.fetches;
  });
}

void Removals::OnRemoved(ShardId shard) {
  const auto removal = std::ranges::find(removals_, shard, &Removal::shard);
  DT_CHECK(removal != removals_.end());
  removal->done = true;
}

bool Removals::Contains(ShardId shard) const {
  return std::ranges::find(removals_, shard, &Removal::shard) != removals_.end();
}

}  // namespace dt::server
