// Jobs and devices on which automatic placement is tried.
#pragma once

#include <vector>

#include "common/config/job_config.h"
#include "common/profile/device_profile.h"

namespace dt::test {

// An accelerator so many times as fast as the processor, a link of so many bytes a second.
DeviceProfile Speeds(double faster, double link);
// The model, on an emulated accelerator that may be chosen for it.
JobConfig AutomaticJob(std::vector<NodeConfig> nodes, uint32_t batch_size);

}  // namespace dt::test
