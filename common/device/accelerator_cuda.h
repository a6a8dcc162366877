// A CUDA card as an Accelerator. Those who launch kernels and graphs on it take streams and the
// table from here.
#pragma once

#include <string_view>

#include "common/device/accelerator.h"
#include "common/device/cuda_library.h"

namespace dt {

class CudaQueue : public DeviceQueue {
 public:
  // For the calls of CudaTable. The queue's thread; lives as long as the queue.
  virtual CudaStream* stream() const = 0;
  // What such a call gave, as a sentence: "CUDA card 0 (name): <doing> failed: …". After an error
  // the queue refuses everything.
  virtual Status Checked(CudaError error, std::string_view doing) = 0;
};

class CudaAccelerator : public Accelerator {
 public:
  // Unavailable, with the reason, if the card is absent or does not run this build's code.
  static Result<std::unique_ptr<CudaAccelerator>> Open(const CudaLibrary& library, int32_t index);
  // By the functions of `table`, which is not tried: a card that is known to work.
  static std::unique_ptr<CudaAccelerator> Over(const CudaTable& table, const DeviceInfo& info);
  virtual const CudaTable& table() const = 0;
};

}  // namespace dt
