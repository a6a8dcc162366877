// The job files of configs/, and columns with which they can be planned without their data.
#pragma once

#include <filesystem>
#include <vector>

#include "common/config/job_config.h"

namespace dt::test {

std::vector<std::filesystem::path> ShippedJobs();
// The columns of a libsvm file without declared columns.
std::vector<ColumnSpec> ColumnsOf(const JobConfig& job);

}  // namespace dt::test
