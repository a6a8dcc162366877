// Memory for small lists that live as long as a message. Freed blocks are kept for reuse, so that a
// step in its steady state takes nothing from the heap. A block may be freed on another thread than
// the one that took it, as happens with messages.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace dt {

// Returns at least `bytes`, aligned for any scalar. Any thread. Blocks larger than 64 KiB, and all
// blocks under a sanitizer, come from the heap and go back to it.
void* TakeBlock(size_t bytes);
// REQUIRES: `block` is from TakeBlock(bytes).
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
