// Batch → LookupPlan. Keeps its working memory, and uses the memory that the plan brings along, so
// that recycled plans cost no allocation. One thread.
//
// Rows of a table are numbered shard by shard, so that what a group's answer carries is one piece
// of the table's rows.
#pragma once

#include <vector>

#include "common/base/status.h"
#include "common/config/model_config.h"
#include "common/plan/plan.h"
#include "worker/lookup/key_numbering.h"
#include "worker/lookup/lookup_plan.h"

namespace dt::worker {

enum class LookupFor { kTrain, kEvaluate };  // Evaluation needs no transposed lists.

// By table of the graph: its index in the job, which is what travels.
std::vector<uint32_t> WireTables(const Graph& graph, const std::vector<TableConfig>& tables);

// Besides those of the graph: a table of which every training slice reads the same keys.
struct DenseBlockTable {
  TableId id;
  std::vector<Key> keys;
  uint32_t dim = 0;
  uint32_t wire = 0;  // Its index in the job.
};

class LookupPlanner {
 public:
  // `plan` outlives the planner. shards: of the job. wire_tables: of the graph, then of the fixed
  // tables, which are numbered after those of the graph.
  LookupPlanner(const Plan& plan, uint32_t shards, std::vector<uint32_t> wire_tables,
                std::vector<DenseBlockTable> fixed = {});
  // Fills all but batch and rows from plan.batch. Rows of tables on the worker do not travel.
  // Errors: Invalid, more ids than 2^32 in one slice; Malformed, a key that the table has not, with
  // its column and sample.
  Status Fill(LookupFor purpose, LookupPlan& plan);
  // The keys of the fixed tables alone.
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
  std::vector<uint32_t> table_order_;  // Tables on servers, ascending on the wire.
  std::vector<std::vector<uint32_t>>
      shard_first_;  // [table][shard]: first row, and one past the end.
  std::vector<std::vector<uint32_t>> lookups_of_;  // By table of the graph.
  // Tables of the graph whose lookups read the same lists of columns see the same keys, which are
  // numbered once. Ascending, and by their first table.
  std::vector<std::vector<uint32_t>> same_keys_;

  KeyNumbering numbering_;
  std::vector<Key> joined_;         // Keys of several columns, side by side.
  std::vector<Key> distinct_;       // By first occurrence.
  std::vector<uint32_t> row_of_;    // By first occurrence: the row.
  std::vector<uint32_t> shard_of_;  // By first occurrence: the row's shard.
};

}  // namespace dt::worker
