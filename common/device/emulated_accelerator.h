// The device behind `device: gpu` on machines without a card. Device addresses are in a reserved
// range that cannot be accessed (PROT_NONE); the real memory is mapped elsewhere, at a constant
// distance that only queues and kernels add. Host code that dereferences a device address therefore
// faults, as it would with a card. Work runs at once, on the thread that gives it, with the CPU's
// kernels.
//
// A speed can be set: work then takes at least as long as it would at that speed, so that the
// overlap of copies and computation can be measured on a machine with few cores.
#pragma once

#include <functional>

#include "common/device/accelerator.h"

namespace dt {

struct EmulatedSpeed {      // 0: no limit.
  double flops = 0;         // Operations per second.
  double memory_bytes = 0;  // Bytes per second of kernels.
  double link_bytes = 0;    // Bytes per second of copies, in each direction.
};

class EmulatedAccelerator : public Accelerator {
 public:
  struct Options {
    uint64_t memory_bytes = uint64_t{4} << 30;
    EmulatedSpeed speed;
    // Polled on any thread while work imitates its duration; true ends all such delays.
    std::function<bool()> skip_delays = {};
  };
  // Error: Unavailable, if the system has no address space for it.
  static Result<std::unique_ptr<EmulatedAccelerator>> Create(const Options& options);

  // For kernels: the real address of device memory. REQUIRES: it was allocated here.
  virtual void* Real(void* device) const = 0;
  // Reserves the device for a kernel that begins now, and returns the time at which it ends at the
  // set speed. Kernels of all queues follow one another. Any thread.
  virtual TimePoint Occupy(double flops, double bytes) = 0;
  // Returns at `end`, or soon after `skip_delays` is true. Any thread.
  virtual void Await(TimePoint end) = 0;
};

}  // namespace dt
