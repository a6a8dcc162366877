// Goal: the emulation keeps accelerator.h's contract and is as strict as a GPU: access by the host
// faults, full memory refuses allocations, and operations take the time that the speeds imply.
#include "common/device/emulated_accelerator.h"

#include <atomic>
#include <cstring>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/pause.h"

namespace dt {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;
constexpr Duration kQueueTimeout = seconds(20);

std::unique_ptr<EmulatedAccelerator> Make(EmulatedAccelerator::Options options = {}) {
  return EmulatedAccelerator::Create(options).value();
}

double SecondsOf(const auto& work) {
  const TimePoint begin = SystemClock().Now();
  work();
  return SecondsBetween(begin, SystemClock().Now());
}

std::vector<int> Numbers(size_t count, int first) {
  std::vector<int> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = first + static_cast<int>(i);
  return numbers;
}

TEST(EmulatedAccelerator, SaysWhatItIs) {
  const auto device = Make({.memory_bytes = 64 * kMiB, .speed = {}});
  EXPECT_EQ(device->info().kind, DeviceKind::kEmulated);
  EXPECT_EQ(device->info().memory_bytes, 64 * kMiB);
  EXPECT_EQ(device->info().name, "emulated accelerator");
}

TEST(EmulatedAcceleratorDeathTest, HostAccessOfADeviceAddressFaults) {
  const auto device = Make();
  auto* const address = static_cast<volatile int*>(device->Allocate(64).value());
  EXPECT_DEATH(*address = 1, "");
  EXPECT_DEATH(static_cast<void>(*address), "");
  // A kernel may access the memory.
  *static_cast<int*>(device->Real(const_cast<int*>(address))) = 1;
}

TEST(EmulatedAcceleratorDeathTest, CopiesBesideABlockAreBugs) {
  const auto device = Make();
  void* const block = device->Allocate(256).value();
  const auto queue = device->NewQueue().value();
  std::vector<std::byte> host(1024);
  EXPECT_DEATH(queue->CopyToDevice(block, host.data(), 257).IgnoreError(), "IsAllocated");
  EXPECT_DEATH(queue->CopyToHost(block, block, 8).IgnoreError(), "IsDeviceAddress");
  EXPECT_DEATH(queue->CopyToDevice(host.data(), host.data(), 8).IgnoreError(), "IsDeviceAddress");
  device->Free(block);
  EXPECT_DEATH(queue->CopyToHost(host.data(), block, 8).IgnoreError(), "IsAllocated");
}

TEST(EmulatedAccelerator, MemoryIsAlignedLimitedAndUsedAgain) {
  const auto device = Make({.memory_bytes = 2 * kMiB, .speed = {}});
  void* const small = device->Allocate(1000).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(small) % 256, 0u);
  EXPECT_EQ(device->bytes_used(), 1024u);
  const Status full = device->Allocate(2 * kMiB).status();
  EXPECT_EQ(full.code(), StatusCode::kUnavailable);
  EXPECT_THAT(ToText(full), HasSubstr("2 MiB asked, 1 KiB of 2 MiB used"));
  EXPECT_THAT(ToText(full), HasSubstr("cluster.emulated.memory"));
  device->Free(small);
  device->Free(nullptr);
  EXPECT_EQ(device->bytes_used(), 0u);
  EXPECT_EQ(device->Allocate(2 * kMiB).value(), small);
}

TEST(EmulatedAccelerator, MemoryGoesWithItsScope) {
  const auto device = Make({.memory_bytes = kMiB, .speed = {}});
  {
    const DeviceMemory whole = DeviceMemory::Make(*device, kMiB).value();
    EXPECT_EQ(whole.bytes(), kMiB);
    EXPECT_FALSE(DeviceMemory::Make(*device, 1).ok());
    const PinnedMemory pinned = PinnedMemory::Make(*device, 100).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pinned.data()) % 4096, 0u);
    std::memset(pinned.data(), 1, pinned.bytes());
  }
  EXPECT_EQ(device->bytes_used(), 0u);
}

TEST(EmulatedAccelerator, MoreThanThisMachinesMemoryMayBeOffered) {
  const auto device = Make({.memory_bytes = uint64_t{1} << 36, .speed = {}});
  EXPECT_TRUE(device->Allocate(size_t{1} << 35).ok());
  const auto none = EmulatedAccelerator::Create({.memory_bytes = uint64_t{1} << 62, .speed = {}});
  EXPECT_EQ(none.status().code(), StatusCode::kUnavailable);
}

TEST(EmulatedAccelerator, CopiesArriveBothWaysAndOnTheDevice) {
  const auto device = Make();
  const auto queue = device->NewQueue().value();
  const std::vector<int> sent = Numbers(1000, 7);
  const size_t bytes = sent.size() * sizeof(int);
  void* const first = device->Allocate(bytes).value();
  void* const second = device->Allocate(bytes).value();
  ASSERT_TRUE(queue->CopyToDevice(first, sent.data(), bytes).ok());
  ASSERT_TRUE(queue->CopyOnDevice(second, first, bytes).ok());
  ASSERT_TRUE(queue->CopyToDevice(nullptr, nullptr, 0).ok());
  EXPECT_EQ(std::memcmp(device->Real(second), sent.data(), bytes), 0);
  std::vector<int> got(sent.size());
  ASSERT_TRUE(queue->CopyToHost(got.data(), second, bytes).ok());
  EXPECT_EQ(got, sent);
}

TEST(EmulatedAccelerator, AnEventThatNobodyRecordsTimesOut) {
  const auto device = Make();
  const auto event = device->NewEvent().value();
  EXPECT_EQ(event->Wait(milliseconds(1)).code(), StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(device->NewQueue().value()->Record(*event).ok());
  EXPECT_TRUE(event->Wait(Duration::zero()).ok());
}

TEST(EmulatedAcceleratorDeathTest, WaitingForWhatIsNotRecordedIsABug) {
  const auto device = Make();
  const auto event = device->NewEvent().value();
  const auto queue = device->NewQueue().value();
  EXPECT_DEATH(queue->WaitFor(*event).IgnoreError(), "recorded");
}

// Data that one thread's queue copied before an event is visible to another queue after it.
TEST(EmulatedAccelerator, EventsOrderQueuesOfSeveralThreads) {
  const auto device = Make();
  constexpr int kThreads = 4, kRounds = 50;
  constexpr size_t kCount = 500, kBytes = kCount * sizeof(int);
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&device, t] {
      const auto up = device->NewQueue().value();
      const auto down = device->NewQueue().value();
      for (int round = 0; round < kRounds; ++round) {
        const DeviceMemory block = DeviceMemory::Make(*device, kBytes).value();
        const auto there = device->NewEvent().value();
        const std::vector<int> sent = Numbers(kCount, t * 1000 + round);
        std::jthread sender([&] {
          EXPECT_TRUE(up->CopyToDevice(block.data(), sent.data(), kBytes).ok());
          EXPECT_TRUE(up->Record(*there).ok());
        });
        std::vector<int> got(kCount);
        ASSERT_TRUE(there->Wait(kQueueTimeout).ok());
        ASSERT_TRUE(down->WaitFor(*there).ok());
        ASSERT_TRUE(down->CopyToHost(got.data(), block.data(), kBytes).ok());
        ASSERT_EQ(got, sent);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(device->bytes_used(), 0u);
}

TEST(EmulatedAccelerator, CopiesTakeTheirTimeOnOneLinkForEachWay) {
  // A copy of 1 MB takes 20 ms.
  const auto device = Make({.memory_bytes = 64 * kMiB, .speed = {.link_bytes = 50e6}});
  constexpr size_t kBytes = 1000000;
  const DeviceMemory block = DeviceMemory::Make(*device, kBytes).value();
  std::vector<std::byte> host(kBytes), other(kBytes);
  const auto up = [&] {
    const auto queue = device->NewQueue().value();
    EXPECT_TRUE(queue->CopyToDevice(block.data(), host.data(), kBytes).ok());
  };
  EXPECT_GE(SecondsOf(up), 0.02);
  const double both_up = SecondsOf([&] {
    const DeviceMemory second = DeviceMemory::Make(*device, kBytes).value();
    std::jthread beside([&] {
      const auto queue = device->NewQueue().value();
      EXPECT_TRUE(queue->CopyToDevice(second.data(), other.data(), kBytes).ok());
    });
    up();
  });
  EXPECT_GE(both_up, 0.04) << "two copies the same way share the link";
}

TEST(EmulatedAccelerator, AnEventIsOverWhenTheCopyBeforeItIs) {
  const auto device = Make({.memory_bytes = 64 * kMiB, .speed = {.link_bytes = 100e6}});
  constexpr size_t kBytes = 3000000;
  const DeviceMemory block = DeviceMemory::Make(*device, kBytes).value();
  const auto event = device->NewEvent().value();
  const std::vector<std::byte> host(kBytes);
  const TimePoint begin = SystemClock().Now();
  std::jthread copier([&] {
    const auto queue = device->NewQueue().value();
    EXPECT_TRUE(queue->CopyToDevice(block.data(), host.data(), kBytes).ok());
    EXPECT_TRUE(queue->Record(*event).ok());
  });
  EXPECT_TRUE(event->Wait(kQueueTimeout).ok());
  EXPECT_GE(SecondsBetween(begin, SystemClock().Now()), 0.03);
}

TEST(EmulatedAccelerator, AKernelEndsByItsSlowerPart) {
  const auto device = Make({.memory_bytes = kMiB, .speed = {.flops = 1e9, .memory_bytes = 1e8}});
  const TimePoint begun = SystemClock().Now();
  const TimePoint first = device->Occupy(10, 1e6);
  EXPECT_GE(first - begun, milliseconds(10));
  EXPECT_LT(first - begun, seconds(5));
  EXPECT_EQ(device->Occupy(1e6, 10) - first, milliseconds(1)) << "one after the other";
  const TimePoint at_once = Make()->Occupy(1e12, 1e12);
  EXPECT_LE(at_once, SystemClock().Now()) << "no speed is set";
  EXPECT_GE(SecondsOf([] { PauseUntil(SystemClock().Now() + milliseconds(2)); }), 0.002);
  EXPECT_LT(SecondsOf([&] { PauseUntil(begun - seconds(5)); }), 1);
}

TEST(EmulatedAccelerator, InAHurryNothingTakesTime) {
  std::atomic<bool> skip_delays = false;
  const auto device = Make({.memory_bytes = kMiB,
                            .speed = {.flops = 1e-300, .memory_bytes = 1, .link_bytes = 1},
                            .skip_delays = [&] { return skip_delays.load(); }});
  const DeviceMemory block = DeviceMemory::Make(*device, 1024).value();
  std::vector<std::byte> host(1024);
  const auto queue = device->NewQueue().value();
  std::jthread later([&] {
    PauseUntil(SystemClock().Now() + milliseconds(50));
    skip_delays = true;
  });
  EXPECT_LT(SecondsOf([&] {
              device->Await(device->Occupy(1e12, 1e12));
              EXPECT_TRUE(queue->CopyToDevice(block.data(), host.data(), 1024).ok());
              EXPECT_TRUE(queue->CopyToHost(host.data(), block.data(), 1024).ok());
              EXPECT_TRUE(queue->CopyOnDevice(block.data(), block.data(), 1024).ok());
            }),
            10);
}

}  // namespace
}  // namespace dt
