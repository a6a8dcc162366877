// YAML → JobConfig. All problems of a file are reported at once, one line each:
//   file:line: key.path: what was found, what is allowed[; did you mean "…"?]
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/config/job_config.h"

namespace dt {

struct LoadOptions {
  std::vector<std::string> overrides;  // "a.b.c=value", the value is YAML; applied in order.
  uint32_t auto_slices = 0;            // The meaning of `slices: auto`; 0: the teams of workers.
  // Whether columns get their constants from data.stats. Else they have none: for commands that
  // read no data, or take them from a checkpoint.
  bool constants = true;
};

// Reads the file and the template that its `model.use` names, expands ${NAME:-default}, applies
// overrides and checks everything. Error: Invalid (NotYet if every problem is a mechanism that is
// not available yet). Its message has one problem a line and ends with "N problems, nothing
// started".
Result<JobConfig> LoadJob(const std::string& path, const LoadOptions& options);

// The columns, if the configuration alone determines them (format criteo, or explicit `columns`);
// empty if only the data tells them (libsvm and libffm without `columns`).
std::vector<ColumnSpec> ConfiguredColumns(const DataConfig& data);

// The files that a path or a glob names, sorted. A glob without a match is returned as it is, and
// so is a remote path, whose patterns the reader of the data expands.
std::vector<std::string> ExpandGlob(const std::string& pattern);

}  // namespace dt
