// An accelerator as the engine sees it: memory of its own, in-order queues, events, copies that run
// beside the computing. Two back ends: CUDA cards, and an emulation in host memory
// (emulated_accelerator.h) that every test can run. Kernels are not started here: ops/ has them, by
// kind of device.
//
// Addresses of device memory are the device's; the host never follows one.
#pragma once

#include <cstddef>
#include <memory>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/device/devices.h"

namespace dt {

// A point in a queue's work. Recorded by one queue, awaited by others and by the host; may be
// recorded again once nobody waits for it. Any thread, one at a time.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // The host waits. Errors: Timeout; what broke the queue.
  virtual Status Wait(Duration timeout) = 0;
};

// Work in the order it is given. One thread at a time. Errors are those of the device, and stay: a
// queue that failed refuses everything after.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;
  // Pinned memory of the same accelerator is read and written in its turn. Other host memory has
  // been read when CopyToDevice returns; CopyToHost may block until it is written.
  virtual Status CopyToDevice(void* device, const void* host, size_t bytes) = 0;
  virtual Status CopyToHost(void* host, const void* device, size_t bytes) = 0;
  virtual Status CopyOnDevice(void* to, const void* from, size_t bytes) = 0;
  virtual Status Record(DeviceEvent& event) = 0;
  // What is given from now on waits for the event; the host does not. REQUIRES: recorded.
  virtual Status WaitFor(DeviceEvent& event) = 0;
};

class Accelerator {
 public:
  virtual ~Accelerator() = default;
  virtual const DeviceInfo& info() const = 0;

  // Aligned to 256 bytes. Error: Unavailable, with what is asked, used and there. Any thread.
  virtual Result<void*> Allocate(size_t bytes) = 0;
  virtual void Free(void* device) = 0;
  virtual uint64_t bytes_used() const = 0;
  // Host memory that copies go from and to without another copy. Aligned to 4096 bytes.
  virtual Result<void*> AllocatePinned(size_t bytes) = 0;
  virtual void FreePinned(void* host) = 0;

  virtual Result<std::unique_ptr<DeviceQueue>> NewQueue() = 0;
  virtual Result<std::unique_ptr<DeviceEvent>> NewEvent() = 0;
};

// Memory that goes with its scope; empty by default. `Memory` is released by its accelerator, which
// outlives it.
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

// Card `index`. Unavailable, with the reason, if it cannot be used.
Result<std::unique_ptr<Accelerator>> OpenCudaAccelerator(int32_t index);

}  // namespace dt
