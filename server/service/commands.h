// What the server's main thread has an executor do. A command is carried out on the executor's
// thread, a piece at each turn of its loop, so that requests are served meanwhile. One at a time;
// each has one answer.
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
  std::vector<TableReport> tables = {};  // Report.
  uint64_t first_segment = 0;            // Begin, Load, Cut: of the log; 0: there is none.
};

class ExecutorCommand {
 public:
  virtual ~ExecutorCommand() = default;
  // A piece of it; the answer with the last one.
  virtual std::optional<ExecutorAnswer> Work(TimePoint now, ExecutorState& state) = 0;
  // How long the next piece may wait while nothing else happens.
  virtual Duration timeout() const { return milliseconds(10); }
  // The rows become others: no request is served until it has ended well.
  virtual bool replaces_rows() const { return false; }
};

// Empty shards; with a log that is gone on with, what its base and its segments hold.
std::unique_ptr<ExecutorCommand> BeginCommand(ShardSetOptions shards, DiskTierOptions disk,
                                              std::optional<LogLocation> log = {});
// Waits until every step before `step` is applied: Timeout after `timeout`, with what is missing.
// Answered when what is to be saved is fixed; Executor::TakeSaved tells when it is written.
std::unique_ptr<ExecutorCommand> SaveCommand(Step step, CheckpointLocation location,
                                             Duration timeout);
// The rows of a checkpoint.
std::unique_ptr<ExecutorCommand> LoadCommand(std::string folder, Step step, Generation generation);
// A checkpoint holds every step before `step`: the log forgets them.
std::unique_ptr<ExecutorCommand> CutCommand(Step step);
// The job is over, so every step that is held as a whole counts as complete. Waits until all is
// applied.
std::unique_ptr<ExecutorCommand> ReportCommand();

}  // namespace dt::server
