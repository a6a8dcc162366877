// Rows of one width, numbered from 0, in the memory of the host or of an accelerator. Owned by one
// thread; nothing else may use the rows while a method runs.
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
  // Makes room for `rows` rows; the first `used` rows stay as they are. Errors: Unavailable, if
  // there is too little memory; nothing has changed then.
  virtual Status Resize(uint32_t rows, uint32_t used) = 0;
  // Writes whole rows from number `first` on. REQUIRES: there is room.
  virtual Status Write(uint32_t first, std::span<const float> rows) = 0;
  // The first `rows` rows for the host to read: in place, or copied to `copy`. Valid until the next
  // call of any method.
  virtual Result<std::span<const float>> Look(uint32_t rows, std::vector<float>& copy) = 0;

  void* data() const { return data_; }  // The device's address.
  uint32_t room() const { return room_; }

 protected:
  void* data_ = nullptr;
  uint32_t room_ = 0;
};

// `accelerator`: null for the host's memory; it outlives the rows. Errors: Unavailable, if there is
// no queue.
Result<std::unique_ptr<RowMemory>> MakeRowMemory(uint32_t width, Accelerator* accelerator);

}  // namespace dt::worker
