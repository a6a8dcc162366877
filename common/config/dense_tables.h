// Dense parameters on servers (train.staleness above 0): two tables beside those of the model. All
// trained parameters, one after the other in the plan's order, are cut into blocks, which are the
// rows of kDenseTable; batch-norm running values are those of kRunningTable. Key = number of the
// block. The last block is filled up with zeros.
#pragma once

#include <string_view>
#include <vector>

#include "common/config/job_config.h"

namespace dt {

inline constexpr uint32_t kDenseBlockFloats = 1024;
// Updated by the job's dense optimizer. L2 and clipping are in the gradients already.
inline constexpr std::string_view kDenseTable = "(dense)";
// A push's gradients are subtracted.
inline constexpr std::string_view kRunningTable = "(running)";

// The two; none if dense parameters are on the workers.
std::vector<TableConfig> DenseTables(const JobConfig& job);
// Those of the model, then DenseTables: the order in which tables are numbered in messages.
std::vector<TableConfig> TablesOnServers(const JobConfig& job);

}  // namespace dt
