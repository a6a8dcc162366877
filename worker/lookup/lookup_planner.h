// Makes a LookupPlan from a batch. Keeps its working memory, and reuses the memory of the plan that
// it fills, so that recycled plans cost no allocation. Owned by one thread.
//
// Rows of a table are numbered shard by shard, so that the answer for a group is one contiguous
// piece of the table's rows.
#pragma once

#include <vector>

#include "common/base/status.h"
#include "common/config/model_config.h"
#include "common/plan/plan.h"
#include "worker/lookup/key_numbering.h"
#include "worker/lookup/lookup_plan.h"

namespace dt::worker {

enum class LookupFor { kTrain, kEvaluate };  // Evaluation needs no transposed lists.

// For each table of the graph: its index in the job, which names it in messages.
std::vector<uint32_t> WireTables(const Graph& graph, const std::vector<TableConfig>& tables);

// A table besides those of the graph: every training slice reads the same keys of it.
struct DenseBlockTable {
  TableId id;
  std::vector<Key> keys;
  uint32_t dim = 0;
  uint32_t wire = 0;  // The table's index in the job.
};

class LookupPlanner {
 public:
  // `plan` outlives the planner. `shards`: those of the job. `wire_tables`: for the tables of the
  // graph, then for the fixed tables, which are numbered after those of the graph.
  LookupPlanner(const Plan& plan, uint32_t shards, std::vector<uint32_t> wire_tables,
                std::vector<DenseBlockTable> fixed = {});
  // Fills all of `plan` but batch and rows, from plan.batch. Tables on the worker are in no group.
  // Errors: Invalid, if a slice has more than 2^32 ids; Malformed naming column and sample, if the
  // table has no such key.
  Status Fill(LookupFor purpose, LookupPlan& plan);
  // Fills in the keys of the fixed tables only.
  void FillFixed(LookupPlan& plan);

 private:
  void GroupTables();
  Status NumberKeys(uint32_t table, LookupPlan& plan);
  void FillTable(uint32_t table, uint32_t numbered, LookupPlan& plan);
  Status CheckKeys(uint32_t table, const LookupPlan& plan) const;
  std::span<const Key> KeysOf(const LookupSpec& spec, const Batch& batch, LookupLists& lists);
  void NumberFixed(bool with_keys, LookupPlan& plan);
  void NumberRows(uint32_t table, LookupPlan& plan);
  void FillGroups(LookupPlan& plan) const;
  void FillWeights(const LookupSpec& spec, const Batch& batch, LookupLists& lists) const;

  const Plan& plan_;
  const uint32_t shards_;
  const std::vector<DenseBlockTable> fixed_;
  std::vector<uint32_t> table_order_;  // Tables on servers, ascending by index in the job.
  // [table][shard]: the shard's first row; the last entry is the number of rows.
  std::vector<std::vector<uint32_t>> shard_first_;
  std::vector<std::vector<uint32_t>> lookups_of_;  // By table of the graph.
  // Groups of tables whose lookups read the same lists of columns: these see the same keys, which
  // are numbered once. Ascending, as are their first tables.
  std::vector<std::vector<uint32_t>> same_keys_;

  KeyNumbering numbering_;
  std::vector<Key> joined_;         // Keys of several columns, side by side.
  std::vector<Key> distinct_;       // By first occurrence.
  std::vector<uint32_t> row_of_;    // Rows of the keys in distinct_.
  std::vector<uint32_t> shard_of_;  // Shards of the keys in distinct_.
};

}  // namespace dt::worker
