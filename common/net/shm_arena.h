// The memory of this process that others of its host may read. Once it is open, frames beyond a few
// KiB are made in it (frame.cc), so that they can be handed to a peer where they are. One per
// process; it lives until the process ends. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <sys/types.h>

#include "common/base/status.h"
#include "common/net/shm_memory.h"

namespace dt {

inline constexpr size_t kArenaBytes = size_t{16} << 30;  // Of addresses; pages come when touched.

class ShmArena {
 public:
  // Opens it at the first call. Unavailable: this system has no such memory, or this process may
  // not have addresses enough for it and for those of its peers.
  static Status Open();
  static bool is_open();

  // Memory at a 64-byte boundary; null when there is none left.
  static std::byte* Allocate(size_t bytes);
  // Takes it back, for any size. Its pages stay: sealed memory can have no holes.
  static void Free(std::byte* memory, size_t bytes);
  // Where the bytes lie in it; nothing if they are elsewhere.
  static std::optional<size_t> OffsetOf(std::span<const std::byte> bytes);
  // Counts the bytes of it that a peer may still read: one counter for all connections
  // of a process. A process that the system does not name (0) has one for each connection.
  static std::shared_ptr<std::atomic<size_t>> LentTo(pid_t peer);
  // For a peer. REQUIRES: open.
  static Result<OwnedFd> ReadOnlyFd();
};

}  // namespace dt
