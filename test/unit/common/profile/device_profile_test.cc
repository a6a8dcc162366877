#include "common/profile/device_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dt {
namespace {

using testing::HasSubstr;

std::string ProblemsOf(const std::string& text) {
  return std::string(MessageOf(ParseDeviceProfile(text, "p.yaml", DefaultCardProfile(8)).status()));
}

TEST(DeviceProfile, IsReadAsItIsWritten) {
  DeviceProfile profile = DefaultCardProfile(16);
  profile.cpu = {
      "measured 2026-01-31", "a \"CPU\" \\ 16 threads", {1e12, 1.5e12, 3e12}, 1.25e11, 0};
  profile.to_accelerator = {"measured 2026-01-31", 2.5e-6, 4e10};
  profile.server = {"measured 2026-01-31", 1e-4, 0, 2e9};
  const Result<DeviceProfile> read =
      ParseDeviceProfile(ToYaml(profile), "p.yaml", DefaultEmulatedProfile(1));
  ASSERT_TRUE(read.ok()) << ToText(read.status());
  EXPECT_EQ(*read, profile);
}

TEST(DeviceProfile, WhatAFileLeavesOutKeepsItsDefault) {
  const DeviceProfile defaults = DefaultCardProfile(4);
  const Result<DeviceProfile> read = ParseDeviceProfile(
      "cpu: {source: measured, fp32_flops: 5e11}\nto_accelerator: {source: measured}\n", "p.yaml",
      defaults);
  ASSERT_TRUE(read.ok()) << ToText(read.status());
  EXPECT_EQ(read->cpu.flops[0], 5e11);
  EXPECT_EQ(read->cpu.memory_bytes, defaults.cpu.memory_bytes);
  EXPECT_EQ(read->accelerator, defaults.accelerator);
  EXPECT_EQ(SourceText(*read),
            "constants: cpu, to_accelerator measured; accelerator, from_accelerator, server "
            "shipped default");
}

TEST(DeviceProfile, DefaultsSayThatTheyAre) {
  EXPECT_EQ(
      SourceText(DefaultEmulatedProfile(2)),
      "constants: cpu, accelerator, to_accelerator, from_accelerator, server shipped default");
}

TEST(DeviceProfile, MistakesNameFileLineAndKey) {
  EXPECT_THAT(ProblemsOf("cpu:\n  fp32_flops: fast\n"),
              HasSubstr("p.yaml:2: cpu.fp32_flops: found \"fast\", expected a number above 0"));
  EXPECT_THAT(ProblemsOf("cpu: {fp32_flops: 0}\n"), HasSubstr("expected a number above 0"));
  EXPECT_THAT(ProblemsOf("to_accelerator: {latency_seconds: -1}\n"),
              HasSubstr("expected a number from 0 on"));
  EXPECT_THAT(ProblemsOf("cpu: {fp23_flops: 1e9}\n"), HasSubstr("did you mean \"fp32_flops\"?"));
  EXPECT_THAT(ProblemsOf("gpu: {}\n"), HasSubstr("gpu: is no key of a device profile"));
  EXPECT_THAT(ProblemsOf("accelerator: 3\n"), HasSubstr("expected a map"));
  EXPECT_THAT(ProblemsOf("- 1\n"), HasSubstr("expected a device profile"));
  EXPECT_THAT(ProblemsOf("cpu: {source: [1]}\n"), HasSubstr("expected a text"));
}

TEST(DeviceProfile, AnAbsentFileIsNamed) {
  const auto read = ReadDeviceProfile("/nowhere/p.yaml", DefaultCardProfile(4));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(MessageOf(read.status())), HasSubstr("/nowhere/p.yaml"));
}

TEST(ComputeRates, TheSlowerOfArithmeticAndMemoryCounts) {
  ComputeRates rates;
  rates.flops = {100, 400, 800};
  rates.memory_bytes = 10;
  EXPECT_EQ(rates.SecondsOf(800, 10, Arithmetic::kFp32), 8);
  EXPECT_EQ(rates.SecondsOf(800, 10, Arithmetic::kBf16), 1);
  EXPECT_EQ(rates.SecondsOf(800, 50, Arithmetic::kTf32), 5);
}

}  // namespace
}  // namespace dt
