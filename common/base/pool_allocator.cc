#include "common/base/pool_allocator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>

#include "common/base/immortal.h"
#include "common/base/mutex.h"

namespace dt {
namespace {

using Heap = std::allocator<std::byte>;

constexpr size_t kSmallest = 32, kLargest = 64 << 10;
constexpr size_t kKeptBytesMax = 1 << 20;  // Limit for the free blocks of each size.
constexpr size_t kSizes = std::countr_zero(kLargest) - std::countr_zero(kSmallest) + 1;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeeps = false;  // The sanitizers then find uses of freed blocks.
#else
constexpr bool kKeeps = true;
#endif

// Free blocks of one size, linked: each holds the address of the next.
class Shelf {
 public:
  void* Take() {
    MutexLock lock(mutex_);
    if (first_ == nullptr) return nullptr;
    Free* const block = std::exchange(first_, first_->next);
    --count_;
    return block;
  }
  bool Put(void* block, size_t count_max) {
    MutexLock lock(mutex_);
    if (count_ >= count_max) return false;
    first_ = std::construct_at(static_cast<Free*>(block), first_);
    ++count_;
    return true;
  }

 private:
  struct Free {
    Free* next;
  };
  Mutex mutex_;
  Free* first_ DT_GUARDED_BY(mutex_) = nullptr;
  size_t count_ DT_GUARDED_BY(mutex_) = 0;
};

Shelf& ShelfOf(size_t size) {
  static Immortal<std::array<Shelf, kSizes>> shelves;
  return (*shelves)[std::countr_zero(size) - std::countr_zero(kSmallest)];
}

bool IsPooled(size_t bytes) { return kKeeps && bytes <= kLargest; }
size_t SizeFor(size_t bytes) { return std::bit_ceil(std::max(bytes, kSmallest)); }

}  // namespace

void* TakeBlock(size_t bytes) {
  if (!IsPooled(bytes)) return Heap().allocate(bytes);
  const size_t size = SizeFor(bytes);
  void* const kept = ShelfOf(size).Take();
  return kept != nullptr ? kept : Heap().allocate(size);
}

void ReturnBlock(void* block, size_t bytes) {
  const size_t size = IsPooled(bytes) ? SizeFor(bytes) : bytes;
  if (IsPooled(bytes) && ShelfOf(size).Put(block, kKeptBytesMax / size)) return;
  Heap().deallocate(static_cast<std::byte*>(block), size);
}

}  // namespace dt
