// Rows of one width in the memory of a device, numbered from 0: the host's, or an accelerator's.
// Owned by one thread; nobody else may use the rows while a method runs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/device/accelerator.h"

namespace dt::worker {

class RowMemory {
 public:
  virtual ~RowMemory() = default;
  // Room for `rows` rows; those before `used` stay as they are. Error: Unavailable, too little
  // memory; then nothing has changed.
  virtual Status Resize(uint32_t rows, uint32_t used) = 0;
  // Whole rows from number `first` on. REQUIRES: there is room.
  virtual Status Write(uint32_t first, std::span<const float> rows) = 0;
  // The first `rows` rows, as the host can read them: in place, or brought to `copy`. Valid until
  // the next call of any method.
  virtual Result<std::span<const float>> Look(uint32_t rows, std::vector<float>& copy) = 0;

  void* data() const { return data_; }  // The device's address.
  uint32_t room() const { return room_; }

 protected:
  void* data_ = nullptr;
  uint32_t room_ = 0;
};

// `accelerator`: null for the host's memory; it outlives the rows. Error: Unavailable, no queue.
Result<std::unique_ptr<RowMemory>> MakeRowMemory(uint32_t width, Accelerator* accelerator);

}  // namespace dt::worker
