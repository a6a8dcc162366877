#include "common/net/frame_pool.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "common/base/immortal.h"
#include "common/base/memory_end.h"
#include "common/base/mutex.h"

namespace dt {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmallestShift = 8;  // 256 B
constexpr size_t kLargestShift = 30;  // 1 GiB; larger buffers are not kept.
// Four classes per doubling of the size leave at most a quarter of a buffer unused.
constexpr size_t kClassesPerDouble = 4;
constexpr size_t kClasses = (kLargestShift - kSmallestShift) * kClassesPerDouble + 1;
constexpr size_t kLargest = size_t{1} << kLargestShift;
// Limit for all free buffers of a pool together.
constexpr size_t kKeptBytesMax = size_t{512} << 20;

size_t ClassOf(size_t size) {
  if (size <= (size_t{1} << kSmallestShift)) return 0;
  const size_t shift = std::bit_width(size - 1) - 1;  // 2^shift < size <= 2^(shift + 1)
  const size_t quarter = size_t{1} << (shift - 2);
  const size_t above = (size - (size_t{1} << shift) + quarter - 1) / quarter;  // 1..4
  return (shift - kSmallestShift) * kClassesPerDouble + above;
}

// The size of the buffer that holds a frame of `size` bytes.
size_t BufferBytes(size_t size) {
  if (size > kLargest) return size;
  const size_t size_class = ClassOf(size);
  const size_t shift = kSmallestShift + size_class / kClassesPerDouble;
  return (size_t{1} << shift) + (size_class % kClassesPerDouble) * (size_t{1} << (shift - 2));
}

class Heap : public FrameMemory {
 public:
  std::byte* Allocate(size_t bytes) override {
    void* const memory =
        std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) & ~(kAlignment - 1));
    if (memory == nullptr) EndOutOfMemory(bytes, "a message");
    return static_cast<std::byte*>(memory);
  }
  void Free(std::byte* memory, size_t) override { std::free(memory); }
  size_t bytes_min() const override { return 0; }
};

}  // namespace

// Free buffers by size class. Each class has a lock, held only to push or pop.
class FramePool::Shelves {
 public:
  explicit Shelves(std::shared_ptr<FrameMemory> memory) : memory_(std::move(memory)) {}
  ~Shelves() {
    for (size_t i = 0; i < kClasses; ++i) {
      MutexLock lock(shelves_[i].mutex);
      for (const Buffer& buffer : shelves_[i].free) memory_->Free(buffer.begin, buffer.bytes);
    }
  }
  Shelves(const Shelves&) = delete;
  Shelves& operator=(const Shelves&) = delete;

  size_t bytes_min() const { return memory_->bytes_min(); }
  std::byte* Take(size_t size) {
    if (size > kLargest) return memory_->Allocate(size);
    Shelf& shelf = shelves_[ClassOf(size)];
    {
      MutexLock lock(shelf.mutex);
      if (!shelf.free.empty()) {
        const Buffer buffer = shelf.free.back();
        shelf.free.pop_back();
        kept_bytes_.fetch_sub(buffer.bytes, std::memory_order_relaxed);
        return buffer.begin;
      }
    }
    return memory_->Allocate(BufferBytes(size));
  }
  void Return(std::byte* begin, size_t size) {
    const size_t bytes = BufferBytes(size);
    if (size > kLargest) return memory_->Free(begin, bytes);
    if (kept_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes > kKeptBytesMax) {
      kept_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
      return memory_->Free(begin, bytes);
    }
    Shelf& shelf = shelves_[ClassOf(size)];
    MutexLock lock(shelf.mutex);
    shelf.free.push_back({begin, bytes});
  }

 private:
  struct Buffer {
    std::byte* begin;
    size_t bytes;
  };
  struct Shelf {
    Mutex mutex;
    std::vector<Buffer> free DT_GUARDED_BY(mutex);
  };
  const std::shared_ptr<FrameMemory> memory_;
  std::array<Shelf, kClasses> shelves_;
  std::atomic<size_t> kept_bytes_ = 0;
};

FramePool::FramePool(std::shared_ptr<FrameMemory> memory)
    : shelves_(std::make_shared<Shelves>(std::move(memory))) {}

FramePool& FramePool::Private() {
  static Immortal<FramePool> pool(std::make_shared<Heap>());
  return *pool;
}

Frame FramePool::Make(size_t size) {
  if (size == 0) return Frame();
  const bool small = size < shelves_->bytes_min();
  std::byte* const memory = small ? nullptr : shelves_->Take(size);
  if (memory == nullptr) return Private().Make(size);
  const auto give_back = [shelves = shelves_, size](std::byte* m) { shelves->Return(m, size); };
  return Frame::Of({memory, size},
                   std::shared_ptr<std::byte>(memory, give_back, PoolAllocator<std::byte>()));
}

Frame FramePool::CopyOf(std::span<const std::byte> bytes) {
  Frame frame = Make(bytes.size());
  if (!bytes.empty()) std::memcpy(frame.bytes().data(), bytes.data(), bytes.size());
  return frame;
}

}  // namespace dt
