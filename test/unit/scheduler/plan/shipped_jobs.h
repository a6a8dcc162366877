// The job files of configs/, and columns to plan them without their data.
#pragma once

#include <filesystem>
#include <vector>

#include "common/config/job_config.h"

namespace dt::test {

std::vector<std::filesystem::path> ShippedJobs();
// What a libsvm file without declared columns gives.
std::vector<ColumnSpec> ColumnsOf(const JobConfig& job);

}  // namespace dt::test
