// What `device: gpu` means where there is no card. Device addresses lie in a reservation that
// nobody may touch (PROT_NONE); the real memory is mapped elsewhere, at a constant distance that
// only queues and kernels add. So host code that follows a device address faults, as it would on a
// card. Work runs on the thread that gives it, with the CPU's kernels.
//
// A speed can be set: work then takes at least as long as it would at that speed, so that overlap
// can be measured on a machine that has few cores.
#pragma once

#include <functional>

#include "common/device/accelerator.h"

namespace dt {

struct EmulatedSpeed {      // 0: as fast as it goes.
  double flops = 0;         // A second.
  double memory_bytes = 0;  // A second, of kernels.
  double link_bytes = 0;    // A second, each way, of copies.
};

class EmulatedAccelerator : public Accelerator {
 public:
  struct Options {
    uint64_t memory_bytes = uint64_t{4} << 30;
    EmulatedSpeed speed;
    // Asked while work takes its time, on any thread: if true, no work takes any more.
    std::function<bool()> hurried = {};
  };
  // Error: Unavailable, no address space.
  static Result<std::unique_ptr<EmulatedAccelerator>> Create(Options options);

  // For kernels: where the device's memory really is. REQUIRES: allocated here.
  virtual void* Real(void* device) const = 0;
  // Until when a kernel that begins now occupies the device, by the speed: kernels follow one
  // another, whichever queues they belong to. Any thread.
  virtual TimePoint Occupy(double flops, double bytes) = 0;
  // Returns then, or soon after `hurried` is true. Any thread.
  virtual void Await(TimePoint end) = 0;
};

}  // namespace dt
