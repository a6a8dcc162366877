// Memory for tensors: at a 64-byte boundary, grows and never shrinks. Owned by one thread.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

#include "common/base/check.h"

namespace dt::worker {

class AlignedBuffer {
 public:
  // At least `bytes` bytes. What was inside is lost when it grows; it then takes an eighth more
  // than asked, so that sizes that creep up settle.
  void* Reserve(size_t bytes) {
    if (bytes > capacity_) {
      capacity_ = (bytes + bytes / 8 + 63) / 64 * 64;
      memory_.reset(std::aligned_alloc(64, capacity_));
      DT_CHECK_MSG(memory_ != nullptr, "no memory for {} bytes", capacity_);
    }
    return memory_.get();
  }
  size_t capacity() const { return capacity_; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  size_t capacity_ = 0;
};

}  // namespace dt::worker
