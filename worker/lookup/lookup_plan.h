// What one batch slice reads from the tables: its distinct keys, grouped by shard and table, and
// for each lookup the rows of its ids. Made by a LookupPlanner, then only read. It does not say
// which servers have the shards: the client finds that out when it sends.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "worker/data/batch.h"

namespace dt::worker {

// Rows [first, first + rows) of a table, all in one shard.
struct RowGroup {
  ShardId shard;
  uint32_t table = 0;  // Index into Graph::tables.
  uint32_t first = 0;
  uint32_t rows = 0;
};

// The lists of one lookup of Graph::lookups; InputKind says what each list holds.
struct LookupLists {
  std::vector<uint32_t> index;
  std::vector<uint32_t> ends;                 // Ragged only.
  std::vector<float> weights;                 // Weighted only.
  std::vector<uint32_t> row_ends, row_order;  // Training only.
};

struct LookupPlan {
  Batch batch;
  std::vector<uint64_t> rows;            // In the data set: sample i is row rows[i].
  std::vector<std::vector<Key>> tables;  // By table of the graph: the distinct keys in row order.
  std::vector<LookupLists> lookups;
  // Tables on servers only: shards ascending, within a shard tables in the job's order, none empty.
  std::vector<RowGroup> groups;
};

}  // namespace dt::worker
