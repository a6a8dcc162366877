// Memory for small lists that live as long as a message: blocks that are kept when they are freed,
// so that a step in its steady state takes nothing from the heap. A block may be freed on another
// thread than the one that took it, as messages are.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace dt {

// At least `bytes`, aligned for any scalar. Any thread. Larger blocks than 64 KiB, and all of them
// under a sanitizer, are the heap's.
void* TakeBlock(size_t bytes);
// REQUIRES: from TakeBlock(bytes).
void ReturnBlock(void* block, size_t bytes);

template <class T>
struct PoolAllocator {
  static_assert(alignof(T) <= alignof(std::max_align_t));
  using value_type = T;

  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) {}  // NOLINT(google-explicit-constructor): as rebound.

  T* allocate(size_t n) { return static_cast<T*>(TakeBlock(n * sizeof(T))); }
  void deallocate(T* block, size_t n) { ReturnBlock(block, n * sizeof(T)); }
  friend bool operator==(const PoolAllocator&, const PoolAllocator&) { return true; }
};

template <class T>
using PooledVector = std::vector<T, PoolAllocator<T>>;

template <class T, class... Args>
std::shared_ptr<T> MakePooled(Args&&... args) {
  return std::allocate_shared<T>(PoolAllocator<T>(), std::forward<Args>(args)...);
}

}  // namespace dt
