// A CUDA card as an Accelerator. Code that launches kernels and graphs on it gets the stream and
// the table of functions from here.
#pragma once

#include <string_view>

#include "common/device/accelerator.h"
#include "common/device/cuda_library.h"

namespace dt {

class CudaQueue : public DeviceQueue {
 public:
  // The stream for calls of CudaTable. Only on the queue's thread; lives as long as the queue.
  virtual CudaStream* stream() const = 0;
  // Converts the result of such a call to a Status: "CUDA card 0 (name): <doing> failed: …". After
  // an error the queue refuses everything.
  virtual Status Checked(CudaError error, std::string_view doing) = 0;
};

class CudaAccelerator : public Accelerator {
 public:
  // Unavailable, with the reason, if the card is absent or cannot run this build's code.
  static Result<std::unique_ptr<CudaAccelerator>> Open(const CudaLibrary& library, int32_t index);
  // A card that is known to work; it calls the functions of `table` without a test.
  static std::unique_ptr<CudaAccelerator> Over(const CudaTable& table, const DeviceInfo& info);
  virtual const CudaTable& table() const = 0;
};

}  // namespace dt
