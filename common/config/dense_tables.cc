#include "common/config/dense_tables.h"

#include "common/base/hash.h"

namespace dt {
namespace {

TableConfig Blocks(std::string_view name, const OptimizerSpec& optimizer) {
  TableConfig table;
  table.name = name;
  table.id = TableIdOf(name);
  table.dim = kDenseBlockFloats;
  table.init = {InitKind::kZeros, 0};  // Never read: blocks are set before they are used.
  table.optimizer = optimizer;
  return table;
}

// The optimizer for blocks, which works element by element. Clipping and L2 need the whole gradient
// or every step, so the workers apply them.
OptimizerSpec OfBlocks(OptimizerSpec spec) {
  spec.l2 = 0;
  spec.clip_row_norm = 0;
  spec.scope = UpdateScope::kTouched;
  spec.l2_scope = L2Scope::kTouched;  // Decay applies once for each push.
  spec.kind = ForDense(InfoOf(spec.kind));
  return spec;
}

}  // namespace

std::vector<TableConfig> DenseTables(const JobConfig& job) {
  if (!job.train.asynchronous()) return {};
  OptimizerSpec subtract;
  subtract.kind = OptimizerKind::kSgd;
  subtract.lr = 1;
  std::vector<TableConfig> tables = {Blocks(kDenseTable, OfBlocks(job.optimizer.spec)),
                                     Blocks(kRunningTable, subtract)};
  tables.back().scheduled = false;
  return tables;
}

std::vector<TableConfig> TablesOnServers(const JobConfig& job) {
  std::vector<TableConfig> tables = job.model.tables;
  for (TableConfig& table : DenseTables(job)) tables.push_back(std::move(table));
  return tables;
}

}  // namespace dt
