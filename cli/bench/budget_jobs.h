// The jobs that `dovetail bench train --budget` measures if no other is named.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"

namespace dt::cli {

// Writes samples and the jobs that train on them into a folder; returns the jobs' files. 13 numbers
// and 26 columns of keys, which are drawn from a million a column with a Zipf distribution (1.05).
// Errors: those of writing files.
Result<std::vector<std::string>> WriteBudgetJobs(const std::string& folder);

}  // namespace dt::cli
