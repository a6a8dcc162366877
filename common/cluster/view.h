// The members of a job: the servers, with their shards, and the workers. A view is a value. A
// change of the map has a new map version, a change of the set of workers a new number, and a
// return to a checkpoint a new generation.
#pragma once

#include <vector>

#include "common/cluster/shard_map.h"

namespace dt {

struct View {
  Generation generation;
  ViewNumber number;
  ShardMap map;                    // Includes the servers.
  std::vector<ProcessId> workers;  // In rank order.
  DT_FIELDS(generation, number, map, workers)
  friend bool operator==(const View&, const View&) = default;
};

}  // namespace dt
