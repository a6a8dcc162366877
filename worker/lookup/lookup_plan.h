// What one batch slice reads from the tables: its distinct keys, grouped as they travel, and for
// each lookup where its ids' rows are. Made by a LookupPlanner, then only read.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/net/frame.h"
#include "worker/data/batch.h"

namespace dt::worker {

// Rows [first, first + rows) of a table: those in one shard.
struct RowGroup {
  ShardId shard;
  uint32_t table = 0;  // Index into Graph::tables.
  uint32_t first = 0;
  uint32_t rows = 0;
};

// One executor's part, in wire order: shards ascending, tables ascending within a shard, none
// empty.
struct ExecutorKeys {
  std::vector<RowGroup> groups;
  Frame keys;  // u64, of all groups.
};

// Index into Graph::lookups gives one of these; InputKind says what each list holds.
struct LookupLists {
  std::vector<uint32_t> index;
  std::vector<uint32_t> ends;                 // Ragged only.
  std::vector<float> weights;                 // Weighted only.
  std::vector<uint32_t> row_ends, row_order;  // Training only.
};

struct LookupPlan {
  Batch batch;
  std::vector<uint64_t> rows;            // Of the data set: sample i is row rows[i].
  std::vector<std::vector<Key>> tables;  // By table of the graph: the distinct keys in row order.
  std::vector<LookupLists> lookups;
  std::vector<ExecutorKeys> executors;  // As Routes::executors.
};

}  // namespace dt::worker
