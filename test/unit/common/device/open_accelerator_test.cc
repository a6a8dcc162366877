// Goal: without a GPU, each value of cluster.devices does what docs/job-file.md says. The test
// program is in a folder that does not contain the CUDA library.
#include "common/device/open_accelerator.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

ClusterConfig With(AcceleratorChoice choice) {
  ClusterConfig cluster;
  cluster.devices = choice;
  cluster.emulated.memory_bytes = 64 << 20;
  return cluster;
}

TEST(OpenAccelerator, WithoutACardAutoAndEmulatedAreEmulated) {
  for (const AcceleratorChoice choice : {AcceleratorChoice::kAuto, AcceleratorChoice::kEmulated}) {
    const auto found = FindAccelerator(With(choice)).value();
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->kind, DeviceKind::kEmulated);
    EXPECT_EQ(found->memory_bytes, 64u << 20);
    const auto opened = OpenAccelerator(With(choice)).value();
    EXPECT_EQ(opened->info(), *found);
    EXPECT_TRUE(opened->Allocate(64 << 20).ok());
    EXPECT_FALSE(opened->Allocate(1).ok());
  }
}

TEST(OpenAccelerator, CpuMeansNone) {
  EXPECT_EQ(FindAccelerator(With(AcceleratorChoice::kCpu)).value(), std::nullopt);
  const Status none = OpenAccelerator(With(AcceleratorChoice::kCpu)).status();
  EXPECT_NE(ToText(none).find("cluster.devices is cpu"), std::string::npos) << none;
}

TEST(OpenAccelerator, CudaWithoutACardSaysWhyAndWhatToDo) {
  for (const Status& status : {FindAccelerator(With(AcceleratorChoice::kCuda)).status(),
                               OpenAccelerator(With(AcceleratorChoice::kCuda)).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_NE(ToText(status).find("libdovetail_cuda.so"), std::string::npos) << status;
    EXPECT_NE(ToText(status).find("cluster.devices"), std::string::npos) << status;
  }
}

TEST(OpenAccelerator, TheEmulationTakesItsSpeedsFromTheJob) {
  ClusterConfig cluster = With(AcceleratorChoice::kEmulated);
  cluster.emulated.link_bandwidth = 100'000'000;
  const auto device = OpenAccelerator(cluster).value();
  const DeviceMemory block = DeviceMemory::Make(*device, 1'000'000).value();
  const std::vector<std::byte> host(1'000'000);
  const TimePoint begin = SystemClock().Now();
  ASSERT_TRUE(device->NewQueue().value()->CopyToDevice(block.data(), host.data(), 1'000'000).ok());
  EXPECT_GE(SystemClock().Now() - begin, milliseconds(10));
}

}  // namespace
}  // namespace dt
