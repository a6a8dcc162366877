// The tables of a plan that are on this worker. Owned by the train thread; no method may be called
// while nodes run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/cluster/checkpoint_file.h"
#include "common/cluster/taken_parts.h"
#include "common/config/job_config.h"
#include "common/plan/plan.h"
#include "common/rows/taken_rows.h"
#include "worker/lookup/lookup_plan.h"
#include "worker/tables/worker_table.h"

namespace dt::worker {

class WorkerTables {
 public:
  // `steps_before`: see StartMessage; rows and their updates count these steps. `accelerator`
  // outlives it; it may be null if no table of the plan is there. Errors: those of
  // WorkerTable::Create.
  static Result<std::unique_ptr<WorkerTables>> Create(const Plan& plan, const JobConfig& job,
                                                      Step steps_before, Accelerator* accelerator);

  // Calls WorkerTable::Bind of each table for one slice; views() is valid until the next call of
  // any method.
  Status Bind(const LookupPlan& slice, LookupFor purpose);
  // Calls WorkerTable::BindStep of one table, given by its index in the graph.
  Status BindStep(uint32_t table, std::span<const Key> keys, Step step);
  // The update of the step bound last begins; see WorkerTable::BeginUpdate.
  void BeginUpdate();
  TableViews views() const { return views_; }
  size_t size() const { return tables_.size(); }
  WorkerTable& table(size_t index) { return *tables_[index]; }

  // Makes one report for each table; allocates nothing if `sizes` had them before.
  void PutSizes(std::vector<TableReport>& sizes) const;
  Result<std::vector<TableReport>> Reports() const;

  struct CheckpointLocation {
    std::string folder;  // The checkpoint's.
    uint32_t rank = 0;
    Step step = 0;
    uint32_t shards = 1;  // Number of the job's shards.
  };
  // Writes "<folder>/worker-<rank>/rows-0" (common/rows/rows_reader.h), unless there are no tables
  // here. Every rank has the same rows, so only one calls it. Errors: Unavailable naming the file.
  Result<std::vector<CheckpointFile>> Save(const CheckpointLocation& location) const;
  // Loads the rows of these tables, wherever they were when the checkpoint was written. Errors:
  // DataLoss naming what is damaged; Invalid, if it has other tables. After an error only some rows
  // are there.
  Status Load(const std::string& folder, Step step);
  // Replaces the rows by these parts of another job's checkpoint in `folder`, or of files. Errors:
  // as for Load; those of FileRows.
  Status LoadParts(const std::string& folder, const TakenParts& parts);

 private:
  TakenRows::Options OptionsFor(const TakenTable& taken, const WorkerTable& table) const;
  Status LoadRowsOf(const std::string& folder, const RowsHeader& header, const TakenTable& taken,
                    WorkerTable& table) const;
  Status LoadFileRows(const TakenTable& taken, WorkerTable& table) const;

  Step steps_before_ = 0;
  std::vector<std::unique_ptr<WorkerTable>> tables_;
  std::vector<uint32_t> use_of_;  // By table: its index in the graph.
  std::vector<TableView> views_;  // By table of the graph.
};

}  // namespace dt::worker
