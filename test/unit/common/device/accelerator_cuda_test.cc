// Goal: errors of a CUDA device reach people as sentences, and memory is counted. Method: the
// library of fake_cuda.cc and the device made of host threads; if available, also the real library
// and device.
#include "common/device/accelerator_cuda.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/cuda_on_host/cuda_on_host.h"

namespace dt {
namespace {

using ::testing::HasSubstr;

constexpr Duration kTimeout = seconds(20);

class FakeCard : public ::testing::Test {
 protected:
  const CudaLibrary library_ = CudaLibrary::Open(DT_FAKE_CUDA).value();
  const std::unique_ptr<CudaAccelerator> card_ = CudaAccelerator::Open(library_, 0).value();
};

std::string TextOfError(const Status& status) {
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  return ToText(status);
}

TEST_F(FakeCard, SaysWhatItIs) {
  EXPECT_EQ(card_->info().kind, DeviceKind::kCuda);
  EXPECT_EQ(card_->info().name, "fake card 0");
  EXPECT_EQ(card_->info().memory_bytes, 1u << 20);
}

TEST_F(FakeCard, CardsThatDoNotWorkAreRefused) {
  EXPECT_THAT(TextOfError(CudaAccelerator::Open(library_, 1).status()), HasSubstr("wrong sums"));
  EXPECT_THAT(TextOfError(CudaAccelerator::Open(library_, 2).status()),
              HasSubstr("no kernel image"));
  EXPECT_THAT(TextOfError(CudaAccelerator::Open(library_, 3).status()), HasSubstr("ordinal"));
}

TEST_F(FakeCard, WithoutTheLibraryTheReasonIsGiven) {
  EXPECT_THAT(TextOfError(OpenCudaAccelerator(0).status()), HasSubstr("libdovetail_cuda.so"));
}

TEST_F(FakeCard, MemoryIsCountedAndItsEndIsASentence) {
  {
    const DeviceMemory block = DeviceMemory::Make(*card_, 512 << 10).value();
    EXPECT_EQ(card_->bytes_used(), 512u << 10);
    const std::string text = TextOfError(card_->Allocate(768 << 10).status());
    EXPECT_THAT(text, HasSubstr("CUDA card 0 (fake card 0): no room for 768 KiB, 512 KiB used by "
                                "this process, 512 KiB of 1 MiB free: out of memory"));
    EXPECT_THAT(text, HasSubstr("train.batch_size"));
  }
  EXPECT_EQ(card_->bytes_used(), 0u);
  card_->Free(nullptr);
  const PinnedMemory pinned = PinnedMemory::Make(*card_, 100).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pinned.data()) % 4096, 0u);
  EXPECT_THAT(TextOfError(card_->AllocatePinned(2 << 20).status()), HasSubstr("too much to pin"));
}

TEST_F(FakeCard, EventsAreAwaitedOrTimeOut) {
  const auto queue = card_->NewQueue().value();
  const auto event = card_->NewEvent().value();
  const TimePoint begin = SystemClock().Now();
  EXPECT_EQ(event->Wait(milliseconds(5)).code(), StatusCode::kDeadlineExceeded);
  EXPECT_GE(SystemClock().Now() - begin, milliseconds(5));
  ASSERT_TRUE(queue->Record(*event).ok());
  EXPECT_TRUE(event->Wait(kTimeout).ok());
  EXPECT_TRUE(queue->WaitFor(*event).ok());
}

TEST_F(FakeCard, AQueueThatFailedRefusesWhatFollows) {
  const auto queue = card_->NewQueue().value();
  const DeviceMemory block = DeviceMemory::Make(*card_, 64).value();
  std::array<std::byte, 64> host = {};
  ASSERT_TRUE(queue->CopyToDevice(block.data(), host.data(), 64).ok());
  const std::string text = TextOfError(queue->CopyToHost(host.data(), block.data(), 13));
  EXPECT_THAT(text, HasSubstr("CUDA card 0 (fake card 0): a copy of 13 B from it failed: invalid "
                              "argument"));
  EXPECT_EQ(TextOfError(queue->CopyToDevice(block.data(), host.data(), 64)), text);
  const auto event = card_->NewEvent().value();
  EXPECT_EQ(TextOfError(queue->Record(*event)), text);
  EXPECT_TRUE(card_->NewQueue().value()->CopyToHost(host.data(), block.data(), 64).ok());
}

TEST_F(FakeCard, AnEventTellsWhatBrokeTheQueue) {
  const auto queue = card_->NewQueue().value();
  const auto event = card_->NewEvent().value();
  const DeviceMemory block = DeviceMemory::Make(*card_, 64).value();
  const std::array<std::byte, 64> host = {};
  ASSERT_TRUE(queue->CopyToDevice(block.data(), host.data(), 14).ok());
  ASSERT_TRUE(queue->Record(*event).ok());
  const std::string text = TextOfError(event->Wait(kTimeout));
  EXPECT_THAT(text, HasSubstr("CUDA card 0 (fake card 0): an illegal memory access"));
  EXPECT_THAT(text, HasSubstr("earlier kernel"));
}

TEST_F(FakeCard, LaunchesShareTheQueuesState) {
  const auto queue = card_->NewQueue().value();
  auto* const launches = dynamic_cast<CudaQueue*>(queue.get());
  ASSERT_NE(launches, nullptr);
  EXPECT_NE(launches->stream(), nullptr);
  EXPECT_TRUE(launches->Checked(nullptr, "node \"a\"").ok());
  EXPECT_THAT(TextOfError(launches->Checked("unspecified launch failure", "node \"a\"")),
              HasSubstr("node \"a\" failed: unspecified launch failure"));
  EXPECT_FALSE(launches->Checked(nullptr, "node \"b\"").ok());
}

// The copy passes through pinned blocks, which are fewer than it needs, on a device that is late.
TEST(CardOnHost, MemoryThatIsNotPinnedHasBeenReadWhenTheCopyReturns) {
  constexpr size_t kBytes = (5 << 19) + 12345;
  const auto card = test::OpenCardOnHost(3);
  const auto queue = card->NewQueue().value();
  const auto end = card->NewEvent().value();
  const DeviceMemory block = DeviceMemory::Make(*card, kBytes).value();
  const PinnedMemory got = PinnedMemory::Make(*card, kBytes).value();
  std::vector<std::byte> sent(kBytes), want;
  const uint64_t before = test::UseOnHost().waiting_copies;
  for (const size_t factor : {7, 11}) {
    for (size_t i = 0; i < kBytes; ++i) sent[i] = static_cast<std::byte>(i * factor >> 3);
    want = sent;
    ASSERT_TRUE(queue->CopyToDevice(block.data(), sent.data(), kBytes).ok());
    std::ranges::fill(sent, std::byte{0});
    ASSERT_TRUE(queue->CopyToHost(got.data(), block.data(), kBytes).ok());
    ASSERT_TRUE(queue->Record(*end).ok());
    ASSERT_TRUE(end->Wait(kTimeout).ok());
    EXPECT_EQ(std::memcmp(got.data(), want.data(), kBytes), 0);
  }
  EXPECT_EQ(test::UseOnHost().waiting_copies, before);
}

#ifdef DT_REAL_CUDA
TEST(RealCard, CopiesArriveWhereThereIsOne) {
  const CudaLibrary library = CudaLibrary::Open(DT_REAL_CUDA).value();
  if (!library.CountDevices().ok()) GTEST_SKIP() << "no card here";
  const auto card = CudaAccelerator::Open(library, 0).value();
  const auto up = card->NewQueue().value();
  const auto down = card->NewQueue().value();
  const auto there = card->NewEvent().value();
  const auto back = card->NewEvent().value();
  constexpr size_t kBytes = 1 << 20;
  const PinnedMemory sent = PinnedMemory::Make(*card, kBytes).value();
  const PinnedMemory got = PinnedMemory::Make(*card, kBytes).value();
  for (size_t i = 0; i < kBytes; ++i) sent.data()[i] = static_cast<std::byte>(i * 7);
  const DeviceMemory first = DeviceMemory::Make(*card, kBytes).value();
  const DeviceMemory second = DeviceMemory::Make(*card, kBytes).value();
  ASSERT_TRUE(up->CopyToDevice(first.data(), sent.data(), kBytes).ok());
  ASSERT_TRUE(up->CopyOnDevice(second.data(), first.data(), kBytes).ok());
  ASSERT_TRUE(up->Record(*there).ok());
  ASSERT_TRUE(down->WaitFor(*there).ok());
  ASSERT_TRUE(down->CopyToHost(got.data(), second.data(), kBytes).ok());
  ASSERT_TRUE(down->Record(*back).ok());
  ASSERT_TRUE(back->Wait(kTimeout).ok());
  EXPECT_EQ(std::memcmp(got.data(), sent.data(), kBytes), 0);
  EXPECT_THAT(TextOfError(card->Allocate(size_t{1} << 50).status()), HasSubstr("free"));
}

TEST(RealCard, CapturedWorkRunsWhenItIsLaunchedAndAgain) {
  const CudaLibrary library = CudaLibrary::Open(DT_REAL_CUDA).value();
  if (!library.CountDevices().ok()) GTEST_SKIP() << "no card here";
  const auto card = CudaAccelerator::Open(library, 0).value();
  const CudaTable& cuda = card->table();
  const auto queue = card->NewQueue().value();
  CudaStream* const stream = dynamic_cast<CudaQueue&>(*queue).stream();
  const auto end = card->NewEvent().value();
  const PinnedMemory sent = PinnedMemory::Make(*card, 64).value();
  const PinnedMemory got = PinnedMemory::Make(*card, 64).value();
  const DeviceMemory block = DeviceMemory::Make(*card, 64).value();
  std::memset(got.data(), 0, 64);
  CudaGraph* graph = nullptr;
  ASSERT_EQ(cuda.begin_capture(stream), nullptr);
  ASSERT_TRUE(queue->CopyToDevice(block.data(), sent.data(), 64).ok());
  ASSERT_TRUE(queue->CopyToHost(got.data(), block.data(), 64).ok());
  ASSERT_EQ(cuda.end_capture(stream, &graph), nullptr);
  for (int value = 1; value <= 3; ++value) {
    std::memset(sent.data(), value, 64);
    EXPECT_NE(got.data()[0], static_cast<std::byte>(value));
    ASSERT_EQ(cuda.launch_graph(stream, graph), nullptr);
    ASSERT_TRUE(queue->Record(*end).ok());
    ASSERT_TRUE(end->Wait(kTimeout).ok());
    EXPECT_EQ(got.data()[63], static_cast<std::byte>(value));
  }
  cuda.destroy_graph(graph);
}
#endif

}  // namespace
}  // namespace dt
