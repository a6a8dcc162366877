// What one batch slice reads from the tables: its distinct keys, grouped by shard and table, and
// for each lookup where its ids' rows are. Made by a LookupPlanner, then only read. Where the
// shards are is nothing that it knows: the client looks that up when it sends.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "worker/data/batch.h"

namespace dt::worker {

// Rows [first, first + rows) of a table: those in one shard.
struct RowGroup {
  ShardId shard;
  uint32_t table = 0;  // Index into Graph::tables.
  uint32_t first = 0;
  uint32_t rows = 0;
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
  // Of tables on servers: shards ascending, within a shard tables in the job's order, none empty.
  std::vector<RowGroup> groups;
};

}  // namespace dt::worker
