// Goal: a plan assumes only what all workers' accelerators have in common, and takes their speeds
// from the source that the job names. Method: small sets of accelerators, and written-out profiles.
#include "scheduler/passes/placement/devices.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/tiny_model.h"

namespace dt::scheduler {
namespace {

using test::TinyAccelerator;
using test::TinyJob;
using ::testing::HasSubstr;

TEST(PlanDevicesTest, AllWorkersMustHaveOneAndTheSmallestCounts) {
  const DeviceInfo small = TinyAccelerator(100);
  DeviceInfo card = TinyAccelerator(200);
  card.kind = DeviceKind::kCuda;
  EXPECT_FALSE(CommonAccelerator({}, 1).has_value());
  EXPECT_FALSE(CommonAccelerator(std::vector{card}, 2).has_value());
  EXPECT_EQ(CommonAccelerator(std::vector{card, card}, 2)->name, card.name);
  const DeviceInfo common = *CommonAccelerator(std::vector{card, small}, 2);
  EXPECT_EQ(common.kind, DeviceKind::kEmulated);
  EXPECT_EQ(common.memory_bytes, 100);
}

TEST(PlanDevicesTest, AnEmulatedAcceleratorsSpeedsAreItsProfile) {
  JobConfig job = TinyJob({});
  job.cluster.emulated = {.flops = 2e12f, .memory_bandwidth = 3 << 20, .link_bandwidth = 5 << 20};
  const DeviceProfile profile = *ProfileOf(job, TinyAccelerator(), 4);
  EXPECT_FLOAT_EQ(static_cast<float>(profile.accelerator.flops[0]), 2e12f);
  EXPECT_EQ(profile.accelerator.memory_bytes, 3 << 20);
  EXPECT_EQ(profile.to_accelerator.bytes, 5 << 20);
  EXPECT_EQ(profile.from_accelerator.bytes, 5 << 20);
  EXPECT_EQ(profile.cpu, DefaultEmulatedProfile(4).cpu);
  EXPECT_THAT(SourceText(profile), HasSubstr("cluster.emulated"));
  DeviceInfo card = TinyAccelerator();
  card.kind = DeviceKind::kCuda;
  EXPECT_EQ(*ProfileOf(job, card, 4), DefaultCardProfile(4));
  job.parallel.profile = "no/such/profile.yaml";
  EXPECT_THAT(ToText(ProfileOf(job, card, 4).status()), HasSubstr("no/such/profile.yaml"));
}

TEST(PlanDevicesTest, AProfileOfAnotherDeviceIsWarnedOf) {
  JobConfig job = TinyJob({});
  job.parallel.profile = ::testing::TempDir() + "profile_of_another_device.yaml";
  DeviceInfo card = TinyAccelerator();
  card.kind = DeviceKind::kCuda;
  card.name = "Some Card 100";
  const auto warning = [&](const std::string& measured, const DeviceInfo& on) {
    std::ofstream(job.parallel.profile)
        << "accelerator: {name: " << measured << ", source: measured 2026-01-31}\n";
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(ProfileOf(job, on, 4).ok());
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(warning("emulated", TinyAccelerator()), "");
  EXPECT_EQ(warning("Some Card 100", card), "");
  const std::string on_card = warning("emulated", card);
  for (const char* part : {job.parallel.profile.c_str(), "is emulated (measured 2026-01-31)",
                           "the workers have Some Card 100", "dovetail bench devices --out"}) {
    EXPECT_THAT(on_card, HasSubstr(part));
  }
  EXPECT_THAT(warning("Some Card 100", TinyAccelerator()), HasSubstr("is Some Card 100 ("));
}

TEST(PlanDevicesTest, CardsCommunicateIfEachWorkerHasItsOwn) {
  const DeviceInfo card{.kind = DeviceKind::kCuda, .name = "Card", .uuid = "a1"};
  std::vector<DeviceInfo> two = {card, card};
  EXPECT_EQ(CommonAccelerator(two, 2)->why_alone, "two workers share a card");
  two[1].uuid = "a2";
  EXPECT_EQ(CommonAccelerator(two, 2)->why_alone, "");
  two[1].why_alone = "libnccl.so.2 cannot be loaded";
  EXPECT_EQ(CommonAccelerator(two, 2)->why_alone, "libnccl.so.2 cannot be loaded");
  two[1] = TinyAccelerator();
  EXPECT_EQ(CommonAccelerator(two, 2)->why_alone, "not every worker has a card");
}

TEST(PlanDevicesTest, WhatOneOfTheWorkersLacksCounts) {
  std::vector<DeviceInfo> two = {TinyAccelerator(), TinyAccelerator()};
  two[0].without_kernel = {"fm"};
  two[1].without_kernel = {"cin", "fm"};
  EXPECT_THAT(CommonAccelerator(two, 2)->without_kernel, ::testing::ElementsAre("cin", "fm"));
}

}  // namespace
}  // namespace dt::scheduler
