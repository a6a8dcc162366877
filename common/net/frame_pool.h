// Memory for frames. A buffer returns to its pool when its last frame is destroyed, and the pool
// keeps it by size, because giving large buffers back to the kernel halves the transport's rate.
// Any thread, including ZeroMQ's threads, which free sent messages.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "common/net/frame.h"

namespace dt {

// The source of a pool's buffers. Any thread.
class FrameMemory {
 public:
  virtual ~FrameMemory() = default;
  // Memory at a 64-byte boundary; null if none is left.
  virtual std::byte* Allocate(size_t bytes) = 0;
  virtual void Free(std::byte* memory, size_t bytes) = 0;
  // The pool makes frames smaller than this in private memory.
  virtual size_t bytes_min() const = 0;
};

// A pool of frame buffers. Frames may outlive their pool: they share ownership of its memory.
class FramePool {
 public:
  explicit FramePool(std::shared_ptr<FrameMemory> memory);
  // The pool of this process's own memory, which never runs out of buffers. It lives until the
  // process ends.
  static FramePool& Private();

  // A frame of uninitialised bytes, 64-byte aligned. It is in private memory if it is small, or if
  // the pool's memory is used up.
  Frame Make(size_t size);
  Frame CopyOf(std::span<const std::byte> bytes);

 private:
  class Shelves;

  const std::shared_ptr<Shelves> shelves_;
};

}  // namespace dt
