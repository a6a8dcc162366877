// Commands of the server's main thread to an executor. A command is carried out on the executor's
// thread, a piece at each turn of its loop, so that requests are served meanwhile. One command is
// under way at a time; each has one answer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/cluster/table_report.h"
#include "server/checkpoint/rows_file.h"
#include "server/log/log_location.h"
#include "server/service/executor_state.h"

namespace dt::server {

struct ExecutorAnswer {
  Status status;
  std::vector<TableReport> tables = {};  // For Report: of the shards whose chains end here.
  std::vector<CopySum> copies = {};      // For Report: of all shards with other members.
  MapVersion map = {};                   // For Report: the map by which they are told apart.
  Step complete = 0;                     // For NewView: ShardSet::KnownComplete.
  uint64_t first_segment = 0;            // For Begin, Load and Cut: the log's; 0: there is no log.
};

class ExecutorCommand {
 public:
  virtual ~ExecutorCommand() = default;
  // Does a piece of the command; returns the answer after the last piece.
  virtual std::optional<ExecutorAnswer> Work(TimePoint now, ExecutorState& state) = 0;
  // How long the next piece may wait if nothing else happens.
  virtual Duration timeout() const { return milliseconds(10); }
  // True if the command replaces the rows: no request is served until it has succeeded.
  virtual bool replaces_rows() const { return false; }
};

// Begins with empty shards; if a log is continued, with what its base and its segments hold.
std::unique_ptr<ExecutorCommand> BeginCommand(ShardSetOptions shards, DiskTierOptions disk,
                                              std::optional<LogLocation> log = {});
// Saves the rows after every step before `step` is applied. Answered when the content is fixed;
// Executor::TakeSaved tells when it is written. Timeout naming what is missing, if the steps are
// not applied within `timeout`.
std::unique_ptr<ExecutorCommand> SaveCommand(Step step, CheckpointLocation location,
                                             Duration timeout);
// From now on the workers are those of this view.
std::unique_ptr<ExecutorCommand> NewViewCommand(ViewNumber number, std::vector<ProcessId> workers);
// Loads the rows of a checkpoint.
std::unique_ptr<ExecutorCommand> LoadCommand(RowsToLoad rows);
// Removes from the log what came before the cut of the checkpoint of `step`, which is complete.
std::unique_ptr<ExecutorCommand> CutCommand(Step step);
// Reports the tables at the end of the job. Every step that is held as a whole counts as complete,
// and all of them are applied first.
std::unique_ptr<ExecutorCommand> ReportCommand();

}  // namespace dt::server
