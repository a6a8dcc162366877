#include "test/unit/scheduler/passes/placement/placed_models.h"

#include "test/support/tiny_model.h"

namespace dt::test {

DeviceProfile Speeds(double faster, double link) {
  DeviceProfile profile = DefaultEmulatedProfile(1);
  for (double& flops : profile.accelerator.flops) flops *= faster;
  profile.accelerator.memory_bytes *= faster;
  profile.accelerator.launch_seconds = 4e-6;
  profile.to_accelerator = profile.from_accelerator = {"", 1e-6, link};
  return profile;
}

JobConfig AutomaticJob(std::vector<NodeConfig> nodes, uint32_t batch_size) {
  JobConfig job = TinyJob(std::move(nodes));
  job.cluster.devices = AcceleratorChoice::kEmulated;
  job.train.batch_size = batch_size;
  return job;
}

}  // namespace dt::test
