#include "common/net/frame.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "common/base/check.h"
#include "common/base/memory_end.h"
#include "common/net/shm_arena.h"

namespace dt {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmallestShift = 8;     // 256 B
constexpr size_t kLargestShift = 30;     // 1 GiB; larger ones come from the heap and go there.
constexpr size_t kClassesPerDouble = 4;  // At most a quarter of a buffer is unused.
constexpr size_t kClasses = (kLargestShift - kSmallestShift) * kClassesPerDouble + 1;
constexpr size_t kKeptBytesMax = size_t{512} << 20;  // Of all free buffers together.
constexpr size_t kLargest = size_t{1} << kLargestShift;
constexpr size_t kPrivateBytesMax = 4096;  // Smaller ones travel by copy: never in the arena.

size_t ClassOf(size_t size) {
  if (size <= (size_t{1} << kSmallestShift)) return 0;
  const size_t shift = std::bit_width(size - 1) - 1;  // 2^shift < size <= 2^(shift + 1)
  const size_t quarter = size_t{1} << (shift - 2);
  const size_t above = (size - (size_t{1} << shift) + quarter - 1) / quarter;  // 1..4
  return (shift - kSmallestShift) * kClassesPerDouble + above;
}

size_t BytesOf(size_t size_class) {
  const size_t shift = kSmallestShift + size_class / kClassesPerDouble;
  return (size_t{1} << shift) + (size_class % kClassesPerDouble) * (size_t{1} << (shift - 2));
}

// Free buffers by size. Any thread: a lock per size, held for a push or a pop, because the threads
// of ZeroMQ return buffers and cannot be made to own them.
class FramePool {
 public:
  void* Take(size_t size_class) {
    Shelf& shelf = shelves_[size_class];
    const size_t bytes = BytesOf(size_class);
    {
      std::lock_guard lock(shelf.mutex);
      while (!shelf.free.empty()) {
        kept_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
        void* const memory = Pop(shelf.free);
        if (IsWhereItBelongs(memory, bytes)) return memory;
        std::free(memory);  // Made before the arena was opened.
      }
    }
    if (bytes > kPrivateBytesMax && ShmArena::is_open()) {
      if (void* const memory = ShmArena::Allocate(bytes); memory != nullptr) return memory;
    }
    return Allocate(bytes);
  }

  void Return(void* memory, size_t size_class) {
    const size_t bytes = BytesOf(size_class);
    const bool keep =
        kept_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= kKeptBytesMax;
    Shelf& shelf = shelves_[size_class];
    if (keep) {
      std::lock_guard lock(shelf.mutex);
      shelf.free.push_back(memory);
      return;
    }
    kept_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    auto* const begin = static_cast<std::byte*>(memory);
    if (ShmArena::OffsetOf({begin, bytes}).has_value()) {
      ShmArena::Free(begin, bytes);
    } else {
      std::free(memory);
    }
  }

  static void* Allocate(size_t bytes) {
    void* const memory =
        std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) & ~(kAlignment - 1));
    if (memory == nullptr) EndOutOfMemory(bytes, "a message");
    return memory;
  }

 private:
  struct Shelf {
    std::mutex mutex;
    std::vector<void*> free;
  };
  // Once there is an arena, buffers of other memory leave the pool: they cannot be lent to peers.
  static bool IsWhereItBelongs(void* memory, size_t bytes) {
    return bytes <= kPrivateBytesMax || !ShmArena::is_open() ||
           ShmArena::OffsetOf({static_cast<std::byte*>(memory), bytes}).has_value();
  }
  static void* Pop(std::vector<void*>& memory) {
    void* const last = memory.back();
    memory.pop_back();
    return last;
  }

  std::array<Shelf, kClasses> shelves_;
  std::atomic<size_t> kept_bytes_ = 0;
};

// Lives until the process ends: buffers come back from ZeroMQ's threads as long as those run.
FramePool& Pool() {
  static FramePool& pool = *std::make_unique<FramePool>().release();
  return pool;
}

}  // namespace

Frame Frame::Of(size_t size) {
  Frame frame;
  if (size == 0) return frame;
  void* memory = nullptr;
  if (size > kLargest) {
    memory = FramePool::Allocate(size);
    frame.owner_ = std::shared_ptr<void>(memory, [](void* m) { std::free(m); });
  } else {
    const size_t size_class = ClassOf(size);
    memory = Pool().Take(size_class);
    const auto give_back = [size_class](void* m) { Pool().Return(m, size_class); };
    frame.owner_ = std::shared_ptr<void>(memory, give_back, PoolAllocator<std::byte>());
  }
  frame.bytes_ = {static_cast<std::byte*>(memory), size};
  return frame;
}

Frame Frame::CopyOf(std::span<const std::byte> bytes) {
  Frame frame = Of(bytes.size());
  if (!bytes.empty()) std::memcpy(frame.bytes_.data(), bytes.data(), bytes.size());
  return frame;
}

Frame Frame::Of(std::span<std::byte> bytes, std::shared_ptr<void> owner) {
  DT_CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % 8 == 0);
  Frame frame;
  frame.bytes_ = bytes;
  frame.owner_ = std::move(owner);
  return frame;
}

Frame Frame::OfPeer(std::span<std::byte> bytes, std::shared_ptr<void> owner) {
  Frame frame = Of(bytes, std::move(owner));
  frame.of_peer_ = true;
  return frame;
}

Frame Frame::Settled(Frame frame) {
  return frame.of_peer_ ? CopyOf(std::as_const(frame).bytes()) : frame;
}

}  // namespace dt
