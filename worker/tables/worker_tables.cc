#include "worker/tables/worker_tables.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/graph/graph_index.h"
#include "ops/op_spec.h"

namespace dt::worker {

Result<std::unique_ptr<WorkerTables>> WorkerTables::Create(const Plan& plan, const JobConfig& job,
                                                           Step steps_before,
                                                           Accelerator* accelerator) {
  auto tables = std::make_unique<WorkerTables>();
  tables->steps_before_ = steps_before;
  const Graph& graph = plan.graph;
  const GraphIndex index(graph, TraitsOf);
  tables->views_.resize(graph.tables.size());
  for (uint32_t t = 0; t < graph.tables.size(); ++t) {
    const TableUse& use = graph.tables[t];
    if (use.store == kNone) continue;
    const auto config = std::ranges::find(job.model.tables, use.id, &TableConfig::id);
    DT_CHECK_MSG(config != job.model.tables.end(), "the plan has table {}, the job not", use.name);
    const bool updated = !index.writers(use.store).empty();
    const bool joined = std::ranges::find(graph.symbols, "S." + use.name) != graph.symbols.end();
    const bool there = graph.value(use.store).device == Device::kGpu;
    DT_CHECK(!there || accelerator != nullptr);
    DT_TRY(auto table, WorkerTable::Create({.table = *config,
                                            .seed = plan.seed,
                                            .expected_rows = use.expected_rows,
                                            .updated = updated && !joined,
                                            .accelerator = there ? accelerator : nullptr}));
    tables->views_[t] = table->view();
    tables->tables_.push_back(std::move(table));
    tables->use_of_.push_back(t);
  }
  return tables;
}

Status WorkerTables::Bind(const LookupPlan& slice, LookupFor purpose) {
  for (size_t i = 0; i < tables_.size(); ++i) {
    const uint32_t t = use_of_[i];
    DT_TRY_STATUS(tables_[i]->Bind(slice.tables[t], steps_before_ + slice.batch.step, purpose));
    views_[t] = tables_[i]->view();
  }
  return OkStatus();
}

Status WorkerTables::BindStep(uint32_t table, std::span<const Key> keys, Step step) {
  const auto at = std::ranges::find(use_of_, table);
  DT_CHECK(at != use_of_.end());
  WorkerTable& own = *tables_[static_cast<size_t>(at - use_of_.begin())];
  DT_TRY_STATUS(own.BindStep(keys, steps_before_ + step));
  views_[table] = own.view();
  return OkStatus();
}

void WorkerTables::BeginUpdate() {
  for (const auto& table : tables_) table->BeginUpdate();
}

void WorkerTables::PutSizes(std::vector<TableReport>& sizes) const {
  sizes.resize(tables_.size());
  for (size_t i = 0; i < tables_.size(); ++i) tables_[i]->PutSizes(sizes[i]);
}

Result<std::vector<TableReport>> WorkerTables::Reports() const {
  std::vector<TableReport> reports;
  for (const auto& table : tables_) {
    DT_TRY(reports.emplace_back(), table->Report());
  }
  return reports;
}

}  // namespace dt::worker
