// The newest shard map that has come from the scheduler. Any thread.
#pragma once

#include <optional>
#include <utility>

#include "common/base/mutex.h"
#include "common/cluster/shard_map.h"

namespace dt {

class LatestMap {
 public:
  // An older map is passed over.
  void Set(ShardMap map) {
    MutexLock lock(mutex_);
    if (!map_.has_value() || map_->version < map.version) map_ = std::move(map);
  }

  // The map, if it is newer than `version`.
  std::optional<ShardMap> NewerThan(MapVersion version) const {
    MutexLock lock(mutex_);
    return map_.has_value() && version < map_->version ? map_ : std::nullopt;
  }

 private:
  mutable Mutex mutex_;
  std::optional<ShardMap> map_ DT_GUARDED_BY(mutex_);
};

}  // namespace dt
