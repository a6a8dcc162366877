// The newest that has come from the scheduler of the job's members: the shard map, and the number
// of the view that is announced. Any thread.
#pragma once

#include <atomic>
#include <optional>
#include <utility>

#include "common/base/mutex.h"
#include "common/cluster/shard_map.h"

namespace dt {

class LatestView {
 public:
  // An older map is passed over.
  void Set(ShardMap map) {
    MutexLock lock(mutex_);
    if (!map_.has_value() || map_->version < map.version) map_ = std::move(map);
  }

  void Announce(ViewNumber number) { announced_ = number.value(); }
  ViewNumber announced() const { return ViewNumber(announced_); }

  // The map, if it is newer than `version`.
  std::optional<ShardMap> NewerThan(MapVersion version) const {
    MutexLock lock(mutex_);
    return map_.has_value() && version < map_->version ? map_ : std::nullopt;
  }

 private:
  mutable Mutex mutex_;
  std::optional<ShardMap> map_ DT_GUARDED_BY(mutex_);
  std::atomic<uint64_t> announced_ = 0;
};

}  // namespace dt
