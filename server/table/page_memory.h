// A block of zeroed memory for indexes and rows: large blocks come from the kernel and cost nothing
// until they are touched; small ones come from the heap.
#pragma once

#include <cstddef>
#include <utility>

namespace dt::server {

class PageMemory {
 public:
  enum class Pages {
    kHuge,   // Huge pages where the kernel has them: small ones make address translation dominate.
    kSmall,  // Small pages until UseHugePages, for memory of which little may ever be touched.
  };

  PageMemory() = default;
  // The block is 64-byte aligned; from 2 MiB on, it is aligned to huge pages.
  static PageMemory Zeroed(size_t bytes, Pages pages = Pages::kHuge);
  ~PageMemory();
  PageMemory(PageMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  PageMemory& operator=(PageMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  // Memory that is first touched from now on is on huge pages.
  void UseHugePages();
  // Gives the whole huge pages of [begin, end) back to the kernel. Their content is lost.
  void Release(size_t begin, size_t end);

  std::byte* data() { return static_cast<std::byte*>(data_); }
  const std::byte* data() const { return static_cast<const std::byte*>(data_); }
  size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace dt::server
