// Memory for tensors, aligned to 64 bytes; it grows and never shrinks. Owned by one thread.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/device/accelerator.h"

namespace dt::worker {

class AlignedBuffer {
 public:
  // With an accelerator, which outlives the buffer, memory is pinned for copies from and to it.
  explicit AlignedBuffer(Accelerator* pinned_for = nullptr) : pinned_for_(pinned_for) {}

  // Returns at least `bytes` bytes. The content is lost when the buffer grows; it then takes an
  // eighth more than asked, so that slowly growing sizes settle.
  void* Reserve(size_t bytes) {
    if (bytes > capacity_) Grow((bytes + bytes / 8 + 63) / 64 * 64);
    return pinned_.data() != nullptr ? pinned_.data() : memory_.get();
  }
  size_t capacity() const { return capacity_; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  void Grow(size_t bytes) {
    capacity_ = bytes;
    pinned_ = PinnedMemory();
    memory_.reset();
    if (pinned_for_ != nullptr && Pin(bytes)) return;
    memory_.reset(std::aligned_alloc(64, bytes));
    DT_CHECK_MSG(memory_ != nullptr, "no memory for {} bytes", bytes);
  }
  // If pinning fails, copies are just slower.
  bool Pin(size_t bytes) {
    Result<PinnedMemory> pinned = PinnedMemory::Make(*pinned_for_, bytes);
    if (!pinned.ok()) {
      LogWarn("device.not_pinned", {{"bytes", bytes}, {"why", MessageOf(pinned.status())}});
      return false;
    }
    pinned_ = *std::move(pinned);
    return true;
  }

  Accelerator* pinned_for_;
  std::unique_ptr<void, Free> memory_;
  PinnedMemory pinned_;
  size_t capacity_ = 0;
};

}  // namespace dt::worker
