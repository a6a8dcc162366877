// A block of zeroed memory for indexes and rows: large ones come from the kernel, on huge pages
// where it has them, and cost nothing until touched; small ones from the heap.
#pragma once

#include <cstddef>
#include <utility>

namespace dt::server {

class PageMemory {
 public:
  PageMemory() = default;
  // 64-byte aligned.
  static PageMemory Zeroed(size_t bytes);
  ~PageMemory();
  PageMemory(PageMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  PageMemory& operator=(PageMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  std::byte* data() { return static_cast<std::byte*>(data_); }
  const std::byte* data() const { return static_cast<const std::byte*>(data_); }
  size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace dt::server
