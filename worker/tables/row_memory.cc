#include "worker/tables/row_memory.h"

#include <algorithm>
#include <cstdlib>

#include "common/base/text.h"

namespace dt::worker {
namespace {

constexpr Duration kTimeout = std::chrono::minutes(1);

// Memory of the heap: the kernel moves large blocks without copying them, and provides pages when
// they are touched.
class HostRows : public RowMemory {
 public:
  explicit HostRows(uint32_t width) : row_bytes_(width * sizeof(float)) {}
  ~HostRows() override { std::free(data_); }

  Status Resize(uint32_t rows, uint32_t) override {
    const size_t bytes = std::max<size_t>(rows * row_bytes_, 64);
    void* const moved = std::realloc(data_, bytes);
    if (moved == nullptr) return Unavailable("the system has no {} of memory", BytesText(bytes));
    data_ = moved;
    room_ = rows;
    return OkStatus();
  }
  Status Write(uint32_t first, std::span<const float> rows) override {
    std::ranges::copy(rows, At(first));
    return OkStatus();
  }
  Result<std::span<const float>> Look(uint32_t rows, std::vector<float>&) override {
    return std::span<const float>(At(0), rows * row_bytes_ / sizeof(float));
  }

 private:
  float* At(uint32_t row) const {
    return reinterpret_cast<float*>(static_cast<std::byte*>(data_) + row * row_bytes_);
  }
  const size_t row_bytes_;
};

class DeviceRows : public RowMemory {
 public:
  DeviceRows(uint32_t width, Accelerator& accelerator)
      : row_bytes_(width * sizeof(float)), accelerator_(accelerator) {}
  Status Open() {
    DT_TRY(queue_, accelerator_.NewQueue());
    DT_TRY(done_, accelerator_.NewEvent());
    return OkStatus();
  }

  // The old and the new memory exist at the same time, until the rows are copied.
  Status Resize(uint32_t rows, uint32_t used) override {
    DT_TRY(DeviceMemory memory,
           DeviceMemory::Make(accelerator_, std::max<size_t>(rows * row_bytes_, 64)));
    if (used > 0) {
      DT_TRY_STATUS(queue_->CopyOnDevice(memory.data(), data_, used * row_bytes_));
      DT_TRY_STATUS(Finish());
    }
    memory_ = std::move(memory);
    data_ = memory_.data();
    room_ = rows;
    return OkStatus();
  }
  Status Write(uint32_t first, std::span<const float> rows) override {
    if (rows.empty()) return OkStatus();
    DT_TRY_STATUS(queue_->CopyToDevice(At(first), rows.data(), rows.size_bytes()));
    return Finish();
  }
  Result<std::span<const float>> Look(uint32_t rows, std::vector<float>& copy) override {
    copy.resize(rows * row_bytes_ / sizeof(float));
    if (rows == 0) return std::span<const float>();
    DT_TRY_STATUS(queue_->CopyToHost(copy.data(), data_, rows * row_bytes_));
    DT_TRY_STATUS(Finish());
    return std::span<const float>(copy);
  }

 private:
  std::byte* At(uint32_t row) const { return static_cast<std::byte*>(data_) + row * row_bytes_; }
  Status Finish() {
    DT_TRY_STATUS(queue_->Record(*done_));
    return done_->Wait(kTimeout);
  }

  const size_t row_bytes_;
  Accelerator& accelerator_;
  DeviceMemory memory_;
  std::unique_ptr<DeviceQueue> queue_;
  std::unique_ptr<DeviceEvent> done_;
};

}  // namespace

Result<std::unique_ptr<RowMemory>> MakeRowMemory(uint32_t width, Accelerator* accelerator) {
  if (accelerator == nullptr) return std::make_unique<HostRows>(width);
  auto rows = std::make_unique<DeviceRows>(width, *accelerator);
  DT_TRY_STATUS(rows->Open());
  return rows;
}

}  // namespace dt::worker
