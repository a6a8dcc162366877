#include "common/device/emulated_accelerator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/base/pause.h"
#include "common/base/text.h"
#include "common/device/block_allocator.h"

namespace dt {
namespace {

constexpr uint64_t kAlignment = 256;
constexpr uint64_t kPageBytes = 4096;
constexpr Duration kPoll = milliseconds(100);
// Longest delay, so that times do not overflow the clock.
constexpr Duration kLongest = std::chrono::hours(24 * 365);

uint64_t WholePages(uint64_t bytes) {
  return (std::max<uint64_t>(bytes, 1) + kPageBytes - 1) & ~(kPageBytes - 1);
}

Duration TimeOf(double amount, double per_second) {
  if (per_second <= 0) return Duration::zero();
  const std::chrono::duration<double> time(amount / per_second);
  return time < kLongest ? std::chrono::duration_cast<Duration>(time) : kLongest;
}

// Reserved addresses, which get memory when touched (unless PROT_NONE); unmapped with the object.
class Mapping {
 public:
  static Result<Mapping> Make(uint64_t bytes, int protection) {
    void* const begin =
        mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) {
      return WithHint(Unavailable("the system has no {} of addresses for an emulated accelerator",
                                  BytesText(bytes)),
                      "lower cluster.emulated.memory");
    }
    return Mapping(static_cast<std::byte*>(begin), bytes);
  }
  Mapping(Mapping&& other) noexcept : begin_(other.begin_), bytes_(other.bytes_) {
    other.begin_ = nullptr;
  }
  ~Mapping() {
    if (begin_ != nullptr) munmap(begin_, bytes_);
  }
  std::byte* begin() const { return begin_; }

 private:
  Mapping(std::byte* begin, uint64_t bytes) : begin_(begin), bytes_(bytes) {}
  std::byte* begin_;
  uint64_t bytes_;
};

// A part of the device that does one thing at a time for all queues: its kernels, or its link in
// one direction.
class Part {
 public:
  // Reserves the part for work of this length, and returns the time at which the work ends.
  TimePoint Take(Duration time) {
    const TimePoint now = SystemClock().Now();
    if (time <= Duration::zero()) return now;
    MutexLock lock(mutex_);
    busy_until_ = std::max(now, busy_until_) + time;
    return busy_until_;
  }

 private:
  Mutex mutex_;  // Queues of several threads share the part.
  TimePoint busy_until_ DT_GUARDED_BY(mutex_){};
};

class EmulatedEvent : public DeviceEvent {
 public:
  Status Wait(Duration timeout) override {
    const TimePoint deadline = SystemClock().Now() + timeout;
    MutexLock lock(mutex_);
    while (!recorded_ && changed_.WaitUntil(lock, deadline)) {
    }
    if (recorded_) return OkStatus();
    return Timeout("the emulated accelerator did not come to an event within {:.3g} s",
                   std::chrono::duration<double>(timeout).count());
  }
  void SetRecorded() {
    MutexLock lock(mutex_);
    recorded_ = true;
    changed_.NotifyAll();
  }
  bool recorded() {
    MutexLock lock(mutex_);
    return recorded_;
  }

 private:
  // Held only to access the flag, which several threads share.
  Mutex mutex_;
  Condition changed_;
  bool recorded_ DT_GUARDED_BY(mutex_) = false;
};

EmulatedEvent& EmulatedEventOf(DeviceEvent& event) {
  auto* const own = dynamic_cast<EmulatedEvent*>(&event);
  DT_CHECK(own != nullptr);
  return *own;
}

class Emulation : public EmulatedAccelerator {
 public:
  Emulation(const Options& options, Mapping addresses, Mapping memory)
      : speed_(options.speed),
        hurried_(options.skip_delays),
        info_{.kind = DeviceKind::kEmulated,
              .index = 0,
              .name = "emulated accelerator",
              .memory_bytes = options.memory_bytes},
        addresses_(std::move(addresses)),
        memory_(std::move(memory)),
        blocks_(options.memory_bytes, kAlignment) {}

  const DeviceInfo& info() const override { return info_; }

  Result<void*> Allocate(size_t bytes) override {
    MutexLock lock(mutex_);
    if (const auto offset = blocks_.Allocate(bytes)) return addresses_.begin() + *offset;
    return WithHint(
        Unavailable("out of memory on the emulated accelerator: {} asked, {} of {} used, {} free "
                    "in one piece",
                    BytesText(bytes), BytesText(blocks_.bytes_used()),
                    BytesText(blocks_.bytes_total()), BytesText(blocks_.largest_free())),
        "lower train.batch_size, move tables or nodes off the accelerator, or raise "
        "cluster.emulated.memory");
  }
  void Free(void* device) override {
    if (device == nullptr) return;
    MutexLock lock(mutex_);
    blocks_.Free(OffsetOf(device));
  }
  uint64_t bytes_used() const override {
    MutexLock lock(mutex_);
    return blocks_.bytes_used();
  }

  Result<void*> AllocatePinned(size_t bytes) override {
    void* const host = std::aligned_alloc(kPageBytes, WholePages(bytes));
    if (host != nullptr) return host;
    return WithHint(Unavailable("this machine has no {} of memory for copies from and to the "
                                "accelerator",
                                BytesText(bytes)),
                    "lower train.batch_size");
  }
  void FreePinned(void* host) override { std::free(host); }

  Result<std::unique_ptr<DeviceQueue>> NewQueue() override;
  Result<std::unique_ptr<DeviceEvent>> NewEvent() override {
    return std::make_unique<EmulatedEvent>();
  }

  void* Real(void* device) const override { return memory_.begin() + OffsetOf(device); }
  TimePoint Occupy(double flops, double bytes) override {
    return kernels_.Take(std::max(TimeOf(flops, speed_.flops), TimeOf(bytes, speed_.memory_bytes)));
  }
  void Await(TimePoint end) override {
    for (TimePoint now = SystemClock().Now(); now < end; now = SystemClock().Now()) {
      if (hurried_ && hurried_()) return;
      PauseUntil(std::min(end, now + kPoll));
    }
  }

  // The real address of a range inside one block.
  std::byte* RealRange(const void* device, size_t bytes) const {
    const uint64_t offset = OffsetOf(device);
    MutexLock lock(mutex_);
    DT_CHECK(blocks_.IsAllocated(offset, bytes));
    return memory_.begin() + offset;
  }
  bool IsDeviceAddress(const void* address) const {
    const auto* const at = static_cast<const std::byte*>(address);
    return at >= addresses_.begin() && at < addresses_.begin() + info_.memory_bytes;
  }
  // Reserves the link for a transfer that begins now, and returns the time at which it ends.
  TimePoint ToDevice(size_t bytes) { return to_device_.Take(LinkTime(bytes)); }
  TimePoint ToHost(size_t bytes) { return to_host_.Take(LinkTime(bytes)); }

 private:
  Duration LinkTime(size_t bytes) const {
    return TimeOf(static_cast<double>(bytes), speed_.link_bytes);
  }
  uint64_t OffsetOf(const void* device) const {
    DT_CHECK(IsDeviceAddress(device));
    return static_cast<uint64_t>(static_cast<const std::byte*>(device) - addresses_.begin());
  }

  // Immutable.
  const EmulatedSpeed speed_;
  const std::function<bool()> hurried_;
  const DeviceInfo info_;
  const Mapping addresses_, memory_;
  // Any thread may allocate, as on a card.
  mutable Mutex mutex_;
  BlockAllocator blocks_ DT_GUARDED_BY(mutex_);
  Part kernels_, to_device_, to_host_;
};

// All work is finished when its call returns, so an event is reached as soon as it is recorded.
class EmulatedQueue : public DeviceQueue {
 public:
  explicit EmulatedQueue(Emulation& on) : on_(on) {}

  Status CopyToDevice(void* device, const void* host, size_t bytes) override {
    if (bytes == 0) return OkStatus();
    DT_CHECK(!on_.IsDeviceAddress(host));
    const TimePoint end = on_.ToDevice(bytes);
    std::memcpy(on_.RealRange(device, bytes), host, bytes);
    on_.Await(end);
    return OkStatus();
  }
  Status CopyToHost(void* host, const void* device, size_t bytes) override {
    if (bytes == 0) return OkStatus();
    DT_CHECK(!on_.IsDeviceAddress(host));
    const TimePoint end = on_.ToHost(bytes);
    std::memcpy(host, on_.RealRange(device, bytes), bytes);
    on_.Await(end);
    return OkStatus();
  }
  Status CopyOnDevice(void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return OkStatus();
    const TimePoint end = on_.Occupy(0, 2.0 * static_cast<double>(bytes));
    std::memmove(on_.RealRange(to, bytes), on_.RealRange(from, bytes), bytes);
    on_.Await(end);
    return OkStatus();
  }
  Status Record(DeviceEvent& event) override {
    EmulatedEventOf(event).SetRecorded();
    return OkStatus();
  }
  Status WaitFor(DeviceEvent& event) override {
    DT_CHECK(EmulatedEventOf(event).recorded());
    return OkStatus();
  }

 private:
  Emulation& on_;
};

Result<std::unique_ptr<DeviceQueue>> Emulation::NewQueue() {
  return std::make_unique<EmulatedQueue>(*this);
}

}  // namespace

Result<std::unique_ptr<EmulatedAccelerator>> EmulatedAccelerator::Create(const Options& options) {
  const uint64_t bytes = WholePages(options.memory_bytes);
  DT_TRY(Mapping addresses, Mapping::Make(bytes, PROT_NONE));
  DT_TRY(Mapping memory, Mapping::Make(bytes, PROT_READ | PROT_WRITE));
  return std::make_unique<Emulation>(options, std::move(addresses), std::move(memory));
}

}  // namespace dt
