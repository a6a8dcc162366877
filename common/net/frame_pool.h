// Memory for frames. A buffer goes back to its pool when the last frame that reads it goes, and is
// kept there by size: freeing large buffers to the kernel halves the transport's rate. Any thread,
// also those of ZeroMQ, which return buffers and cannot be made to own them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "common/net/frame.h"

namespace dt {

// Where the buffers of a pool come from. Any thread.
class FrameMemory {
 public:
  virtual ~FrameMemory() = default;
  // Memory at a 64-byte boundary; null when there is none left.
  virtual std::byte* Allocate(size_t bytes) = 0;
  virtual void Free(std::byte* memory, size_t bytes) = 0;
  // Smaller buffers are better made in private memory.
  virtual size_t bytes_min() const = 0;
};

// Frames may outlive the pool that made them: they share its memory.
class FramePool {
 public:
  explicit FramePool(std::shared_ptr<FrameMemory> memory);
  // The pool of this process's own memory, which always has some. It lives until the process ends.
  static FramePool& Private();

  // A frame of uninitialised bytes, 64-byte aligned. It is made in private memory if it is small,
  // or if the pool's memory is used up.
  Frame Make(size_t size);
  Frame CopyOf(std::span<const std::byte> bytes);

 private:
  class Shelves;

  const std::shared_ptr<Shelves> shelves_;
};

}  // namespace dt
