#include "common/device/devices.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

TEST(Devices, HostHasThreadsAndMemory) {
  const DeviceInfo host = HostDevice();
  EXPECT_EQ(NameOf(host.kind), "cpu");
  EXPECT_NE(host.name, "0 hardware threads");
  EXPECT_GT(host.memory_bytes, 64u << 20);
}

TEST(Devices, WithoutTheLibraryTheReasonIsGiven) {
  // The test program is in a folder that does not contain the library.
  const Result<std::vector<DeviceInfo>> cards = FindCudaDevices();
  ASSERT_FALSE(cards.ok());
  EXPECT_EQ(cards.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(ToText(cards.status()).find("libdovetail_cuda.so"), std::string::npos);
}

}  // namespace
}  // namespace dt
