#include "common/device/accelerator_cuda.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <unordered_map>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/base/pause.h"
#include "common/base/text.h"

namespace dt {
namespace {

// Most events complete after a few polls. For the others the thread sleeps, at first about as long
// as the precision of the system's timers.
constexpr int kLooksWithoutPause = 64;
constexpr Duration kFirstPause = std::chrono::microseconds(20);
constexpr Duration kLongestPause = std::chrono::microseconds(500);

// Size of each of the blocks through which host memory that is not pinned is copied to a card.
constexpr size_t kStagedBytes = size_t{512} << 10;
constexpr Duration kStagedTimeout = std::chrono::minutes(10);

constexpr std::string_view kLateErrors =
    "a card reports errors late: an earlier kernel or copy may be the cause";

class Event : public DeviceEvent {
 public:
  Event(const CudaTable& table, const std::string& card, CudaEvent* event)
      : table_(table), card_(card), event_(event) {}
  ~Event() override { table_.destroy_event(event_); }

  Status Wait(Duration timeout) override {
    const TimePoint deadline = SystemClock().Now() + timeout;
    Duration pause = kFirstPause;
    for (int look = 1;; ++look) {
      bool done = false;
      if (const CudaError error = table_.query(event_, &done); error != nullptr) {
        return WithHint(Unavailable("{}: {}", card_, error), kLateErrors);
      }
      if (done) return OkStatus();
      if (look < kLooksWithoutPause) continue;
      const TimePoint now = SystemClock().Now();
      if (now >= deadline) {
        return Timeout("{} did not come to an event within {:.3g} s", card_,
                       std::chrono::duration<double>(timeout).count());
      }
      PauseUntil(std::min(deadline, now + pause));
      pause = std::min(kLongestPause, pause + pause / 2);
    }
  }

  CudaEvent* get() const { return event_; }

 private:
  const CudaTable& table_;
  const std::string& card_;
  CudaEvent* const event_;
};

CudaEvent* CudaEventOf(DeviceEvent& event) {
  auto* const own = dynamic_cast<Event*>(&event);
  DT_CHECK(own != nullptr);
  return own->get();
}

class Card : public CudaAccelerator {
 public:
  Card(const CudaTable& table, const DeviceInfo& info)
      : table_(table),
        info_(info),
        card_(fmt::format("CUDA card {} ({})", info.index, info.name)) {}

  const DeviceInfo& info() const override { return info_; }
  const CudaTable& table() const override { return table_; }
  const std::string& name() const { return card_; }

  Result<void*> Allocate(size_t bytes) override {
    void* device = nullptr;
    if (const CudaError error = table().allocate(info_.index, bytes, &device); error != nullptr) {
      return NoRoom(bytes, error);
    }
    MutexLock lock(mutex_);
    bytes_of_.emplace(device, bytes);
    bytes_used_ += bytes;
    return device;
  }
  void Free(void* device) override {
    if (device == nullptr) return;
    {
      MutexLock lock(mutex_);
      const auto found = bytes_of_.find(device);
      DT_CHECK(found != bytes_of_.end());
      bytes_used_ -= found->second;
      bytes_of_.erase(found);
    }
    table().free(info_.index, device);  // Fails only on a broken card, which has been reported.
  }
  uint64_t bytes_used() const override {
    MutexLock lock(mutex_);
    return bytes_used_;
  }

  Result<void*> AllocatePinned(size_t bytes) override {
    void* host = nullptr;
    const CudaError error = table().allocate_pinned(info_.index, bytes, &host);
    if (error == nullptr) {
      MutexLock lock(mutex_);
      pinned_.emplace(static_cast<const std::byte*>(host), bytes);
      return host;
    }
    return WithHint(Unavailable("{}: no {} of host memory for copies could be pinned: {}", card_,
                                BytesText(bytes), error),
                    "lower train.batch_size, or raise the limit of locked memory (ulimit -l)");
  }
  void FreePinned(void* host) override {
    {
      MutexLock lock(mutex_);
      pinned_.erase(static_cast<const std::byte*>(host));
    }
    table().free_pinned(host);
  }
  // Whether all of it is inside one block from AllocatePinned.
  bool IsPinned(const void* host, size_t bytes) const {
    const auto* const begin = static_cast<const std::byte*>(host);
    MutexLock lock(mutex_);
    auto piece = pinned_.upper_bound(begin);
    if (piece == pinned_.begin()) return false;
    --piece;
    return begin + bytes <= piece->first + piece->second;
  }

  Result<std::unique_ptr<DeviceQueue>> NewQueue() override;
  Result<std::unique_ptr<DeviceEvent>> NewEvent() override {
    CudaEvent* event = nullptr;
    const CudaError error = table().make_event(info_.index, &event);
    if (error != nullptr) return Unavailable("{}: no event could be made: {}", card_, error);
    return std::make_unique<Event>(table(), card_, event);
  }

 private:
  Status NoRoom(size_t bytes, CudaError given) const {
    const std::string error = given;  // The next call may overwrite it.
    uint64_t free = 0, total = 0;
    const bool known = table().memory_info(info_.index, &free, &total) == nullptr;
    const std::string there = known
                                  ? fmt::format("{} of {} free", BytesText(free), BytesText(total))
                                  : "the rest unknown";
    return WithHint(
        Unavailable("{}: no room for {}, {} used by this process, {}: {}", card_, BytesText(bytes),
                    BytesText(bytes_used()), there, error),
        "lower train.batch_size, move tables or nodes off the card, or free it of other "
        "processes");
  }

  // Immutable.
  const CudaTable table_;
  const DeviceInfo info_;
  const std::string card_;
  // Any thread may allocate.
  mutable Mutex mutex_;
  std::unordered_map<void*, size_t> bytes_of_ DT_GUARDED_BY(mutex_);
  uint64_t bytes_used_ DT_GUARDED_BY(mutex_) = 0;
  std::map<const std::byte*, size_t> pinned_ DT_GUARDED_BY(mutex_);
};

class Queue : public CudaQueue {
 public:
  Queue(Card& card, CudaStream* stream) : card_(card), table_(card.table()), stream_(stream) {}
  ~Queue() override { table_.destroy_stream(stream_); }

  Status CopyToDevice(void* device, const void* host, size_t bytes) override {
    DT_TRY_STATUS(broken_);
    if (card_.IsPinned(host, bytes)) return CopyPinned(device, host, bytes);
    const auto* from = static_cast<const std::byte*>(host);
    for (auto* to = static_cast<std::byte*>(device); bytes > 0;) {
      const size_t piece = std::min(bytes, kStagedBytes);
      DT_TRY_STATUS(CopyStaged(to, from, piece));
      to += piece;
      from += piece;
      bytes -= piece;
    }
    return OkStatus();
  }
  Status CopyToHost(void* host, const void* device, size_t bytes) override {
    DT_TRY_STATUS(broken_);
    return Copied(table_.copy_to_host(stream_, host, device, bytes), bytes, "from");
  }
  Status CopyOnDevice(void* to, const void* from, size_t bytes) override {
    DT_TRY_STATUS(broken_);
    return Copied(table_.copy_on_device(stream_, to, from, bytes), bytes, "on");
  }
  Status Record(DeviceEvent& event) override {
    DT_TRY_STATUS(broken_);
    return Checked(table_.record(stream_, CudaEventOf(event)), "recording an event");
  }
  Status WaitFor(DeviceEvent& event) override {
    DT_TRY_STATUS(broken_);
    return Checked(table_.wait_for(stream_, CudaEventOf(event)), "waiting for an event");
  }

  CudaStream* stream() const override { return stream_; }
  Status Checked(CudaError error, std::string_view doing) override {
    if (error != nullptr && broken_.ok()) {
      broken_ = WithHint(Unavailable("{}: {} failed: {}", card_.name(), doing, error), kLateErrors);
    }
    return broken_;
  }

 private:
  // A pinned block, on its way to the card until its event.
  struct Staged {
    PinnedMemory memory;
    std::unique_ptr<DeviceEvent> sent;
  };

  Status CopyPinned(void* device, const void* host, size_t bytes) {
    return Copied(table_.copy_to_device(stream_, device, host, bytes), bytes, "to");
  }
  // While one block is copied the next one is filled.
  Status CopyStaged(void* device, const void* host, size_t bytes) {
    Staged& block = staged_[next_staged_++ % staged_.size()];
    if (block.sent == nullptr) {
      DT_TRY(block.memory, PinnedMemory::Make(card_, kStagedBytes));
      DT_TRY(block.sent, card_.NewEvent());
    } else {
      DT_TRY_STATUS(block.sent->Wait(kStagedTimeout));
    }
    std::memcpy(block.memory.data(), host, bytes);
    DT_TRY_STATUS(CopyPinned(device, block.memory.data(), bytes));
    return Record(*block.sent);
  }

  // The text is made for errors only.
  Status Copied(CudaError error, size_t bytes, std::string_view where) {
    if (error == nullptr) return OkStatus();
    return Checked(error, fmt::format("a copy of {} {} it", BytesText(bytes), where));
  }

  Card& card_;
  const CudaTable& table_;
  CudaStream* const stream_;
  std::array<Staged, 2> staged_;  // From their first use on.
  size_t next_staged_ = 0;
  Status broken_;
};

Result<std::unique_ptr<DeviceQueue>> Card::NewQueue() {
  CudaStream* stream = nullptr;
  const CudaError error = table().make_stream(info_.index, &stream);
  if (error != nullptr) return Unavailable("{}: no stream could be made: {}", card_, error);
  return std::make_unique<Queue>(*this, stream);
}

}  // namespace

Result<std::unique_ptr<CudaAccelerator>> CudaAccelerator::Open(const CudaLibrary& library,
                                                               int32_t index) {
  DT_TRY(const CudaDevice found, library.Describe(index));
  DT_TRY_STATUS(library.Probe(index));
  return Over(library.table(), {.kind = DeviceKind::kCuda,
                                .index = index,
                                .name = found.name,
                                .memory_bytes = found.memory_bytes,
                                .uuid = UuidText(found),
                                .why_alone = WhyAlone(library.table())});
}

std::unique_ptr<CudaAccelerator> CudaAccelerator::Over(const CudaTable& table,
                                                       const DeviceInfo& info) {
  return std::make_unique<Card>(table, info);
}

Result<std::unique_ptr<Accelerator>> OpenCudaAccelerator(int32_t index) {
  DT_TRY(const CudaLibrary library, CudaLibrary::OpenForCards());
  DT_TRY_STATUS(library.CountDevices().status());
  return CudaAccelerator::Open(library, index);
}

}  // namespace dt
