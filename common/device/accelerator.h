// An accelerator as the engine sees it: its own memory, in-order queues, events, and copies that
// run beside computation. There are two back ends: CUDA cards, and an emulation in host memory
// (emulated_accelerator.h) that every test can run. Kernels are not started here: ops/ contains
// them for each kind of device.
//
// Addresses of device memory are valid on the device only; the host never dereferences one.
#pragma once

#include <cstddef>
#include <memory>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/device/devices.h"

namespace dt {

// A point in the work of a queue. One queue records it; other queues and the host wait for it. It
// may be recorded again once nobody waits for it. Any thread, one at a time.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Blocks the host until the point is reached. Errors: Timeout; the error that broke the queue.
  virtual Status Wait(Duration timeout) = 0;
};

// Executes work in the order in which it is given. One thread at a time. Errors are those of the
// device and are permanent: after a failure the queue refuses everything.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;
  // Pinned memory of the same accelerator is read or written when the queue reaches the copy. Other
  // host memory has been read when CopyToDevice returns, and CopyToHost may block until it is
  // written.
  virtual Status CopyToDevice(void* device, const void* host, size_t bytes) = 0;
  virtual Status CopyToHost(void* host, const void* device, size_t bytes) = 0;
  virtual Status CopyOnDevice(void* to, const void* from, size_t bytes) = 0;
  virtual Status Record(DeviceEvent& event) = 0;
  // Work that is given later waits for the event; the host does not. REQUIRES: recorded.
  virtual Status WaitFor(DeviceEvent& event) = 0;
};

class Accelerator {
 public:
  virtual ~Accelerator() = default;
  virtual const DeviceInfo& info() const = 0;

  // Memory aligned to 256 bytes. Error: Unavailable, with the bytes requested, used and free. Any
  // thread.
  virtual Result<void*> Allocate(size_t bytes) = 0;
  virtual void Free(void* device) = 0;
  virtual uint64_t bytes_used() const = 0;
  // Host memory that the device can copy directly, without another copy. Aligned to 4096 bytes.
  virtual Result<void*> AllocatePinned(size_t bytes) = 0;
  virtual void FreePinned(void* host) = 0;

  virtual Result<std::unique_ptr<DeviceQueue>> NewQueue() = 0;
  virtual Result<std::unique_ptr<DeviceEvent>> NewEvent() = 0;
};

// Memory that is released at the end of its scope; empty by default. The accelerator outlives it.
template <Result<void*> (Accelerator::*allocate)(size_t), void (Accelerator::*release)(void*)>
class AcceleratorMemory {
 public:
  AcceleratorMemory() = default;
  static Result<AcceleratorMemory> Make(Accelerator& on, size_t bytes) {
    DT_TRY(void* const data, (on.*allocate)(bytes));
    return AcceleratorMemory(on, data, bytes);
  }
  AcceleratorMemory(AcceleratorMemory&& other) noexcept { *this = std::move(other); }
  AcceleratorMemory& operator=(AcceleratorMemory&& other) noexcept {
    std::swap(on_, other.on_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~AcceleratorMemory() {
    if (data_ != nullptr) (on_->*release)(data_);
  }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  AcceleratorMemory(Accelerator& on, void* data, size_t bytes)
      : on_(&on), data_(data), bytes_(bytes) {}
  Accelerator* on_ = nullptr;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};
using DeviceMemory = AcceleratorMemory<&Accelerator::Allocate, &Accelerator::Free>;
using PinnedMemory = AcceleratorMemory<&Accelerator::AllocatePinned, &Accelerator::FreePinned>;

// Opens CUDA card `index`. Unavailable, with the reason, if it cannot be used.
Result<std::unique_ptr<Accelerator>> OpenCudaAccelerator(int32_t index);

}  // namespace dt
