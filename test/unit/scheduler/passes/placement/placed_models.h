// Jobs and devices for tests of automatic placement.
#pragma once

#include <vector>

#include "common/config/job_config.h"
#include "common/profile/device_profile.h"

namespace dt::test {

// An accelerator `faster` times as fast as the CPU, with a link of `link` bytes per second.
DeviceProfile Speeds(double faster, double link);
// The model as a job that may choose an emulated accelerator.
JobConfig AutomaticJob(std::vector<NodeConfig> nodes, uint32_t batch_size);

}  // namespace dt::test
