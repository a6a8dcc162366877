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
  uint32_t auto_slices = 0;            // What `slices: auto` means here; 0: cluster.workers.
};

// Reads the file, `use:` templates it names, expands ${NAME:-default}, applies overrides, checks
// everything. Error: Invalid (or NotYet, if every problem is a mechanism that is not available yet)
// whose message holds one problem a line and closes with "N problems, nothing started".
Result<JobConfig> LoadJob(const std::string& path, const LoadOptions& options);

// The columns that the configuration alone determines (format criteria and explicit `columns`);
// empty where only the data tells (libsvm and libffm without `columns`).
std::vector<ColumnSpec> ConfiguredColumns(const DataConfig& data);

// The files that a path or a glob names, sorted. A glob that matches none is taken for a path.
std::vector<std::string> ExpandGlob(const std::string& pattern);

}  // namespace dt
