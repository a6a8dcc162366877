// The tables of a plan that live on this worker. Owned by the train thread; no method is called
// while nodes run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/cluster/checkpoint_file.h"
#include "common/config/job_config.h"
#include "common/plan/plan.h"
#include "worker/lookup/lookup_plan.h"
#include "worker/tables/worker_table.h"

namespace dt::worker {

class WorkerTables {
 public:
  // `accelerator` outlives it; may be null if no table of the plan lies there. Errors: those of
  // WorkerTable::Create.
  static Result<std::unique_ptr<WorkerTables>> Create(const Plan& plan, const JobConfig& job,
                                                      Accelerator* accelerator);

  // WorkerTable::Bind of each, for one slice; views() holds until the next call of any method.
  Status Bind(const LookupPlan& slice, LookupFor purpose);
  // WorkerTable::BindStep of a table of the graph.
  Status BindStep(uint32_t table, std::span<const Key> keys, Step step);
  TableViews views() const { return views_; }

  // One for each table; takes no memory where there was room.
  void PutSizes(std::vector<TableReport>& sizes) const;
  Result<std::vector<TableReport>> Reports() const;

  struct CheckpointLocation {
    std::string folder;  // Of the checkpoint.
    uint32_t rank = 0;
    Step step = 0;
    uint32_t shards = 1;  // Of the job.
  };
  // Writes "<folder>/worker-<rank>/rows-0" (common/rows/rows_reader.h), unless there are no tables
  // here. Every rank has the same rows: one writes them. Error: Unavailable, naming the file.
  Result<std::vector<CheckpointFile>> Save(const CheckpointLocation& location) const;
  // The rows of these tables, wherever they lived when the checkpoint was written. Errors: DataLoss
  // naming what is damaged; Invalid, other tables. After an error some of the rows are there.
  Status Load(const std::string& folder, Step step);

 private:
  std::vector<std::unique_ptr<WorkerTable>> tables_;
  std::vector<uint32_t> use_of_;  // By table: its index in the graph.
  std::vector<TableView> views_;  // By table of the graph.
};

}  // namespace dt::worker
