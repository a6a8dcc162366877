// Dense parameters on servers (train.staleness above 0) are stored in two tables in addition to
// those of the model. All trained parameters, one after the other in the plan's order, are cut into
// blocks, which are the rows of kDenseTable. The running values of batch norm are cut in the same
// way into the rows of kRunningTable. A row's key is the number of its block. The last block is
// padded with zeros.
#pragma once

#include <string_view>
#include <vector>

#include "common/config/job_config.h"

namespace dt {

inline constexpr uint32_t kDenseBlockFloats = 1024;
// The job's dense optimizer updates it. L2 and clipping are already in the pushed gradients.
inline constexpr std::string_view kDenseTable = "(dense)";
// Its optimizer subtracts the pushed gradients.
inline constexpr std::string_view kRunningTable = "(running)";

// The two tables; empty if dense parameters are on the workers.
std::vector<TableConfig> DenseTables(const JobConfig& job);
// The model's tables, then DenseTables. Messages number tables in this order.
std::vector<TableConfig> TablesOnServers(const JobConfig& job);

}  // namespace dt
