// The tables that a job has on its servers; if workers are asynchronous, the blocks of dense
// parameters are among them.
#pragma once

#include <vector>

#include "common/config/job_config.h"
#include "server/table/table_spec.h"

namespace dt::server {

std::vector<TableSpec> TableSpecsOf(const JobConfig& job);

}  // namespace dt::server
