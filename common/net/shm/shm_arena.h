// The memory of this process that others of its host may read: frames that are made in it can be
// handed to a peer where they are. It lives as long as a frame in it. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sys/types.h>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/net/frame_pool.h"
#include "common/net/shm/shm_memory.h"

namespace dt {

inline constexpr size_t kArenaBytes = size_t{16} << 30;  // Of addresses; pages come when touched.

class ShmArena : public FrameMemory {
 public:
  // Unavailable: this system has no such memory, or this process may not have addresses enough for
  // it and for those of its peers.
  static Result<std::shared_ptr<ShmArena>> Create();
  // Use Create.
  explicit ShmArena(SharedMemory memory);

  std::byte* Allocate(size_t bytes) override;
  // Takes it back, for any size. Its pages stay: sealed memory can have no holes.
  void Free(std::byte* memory, size_t bytes) override;
  // Smaller parts of messages travel by copy.
  size_t bytes_min() const override;

  // Where the bytes lie in it; nothing if they are elsewhere.
  std::optional<size_t> OffsetOf(std::span<const std::byte> bytes) const;
  // Counts the bytes of it that a peer may still read: one counter for all connections
  // of a process. A process that the system does not name (0) has one for each connection.
  std::shared_ptr<std::atomic<size_t>> LentTo(pid_t peer);
  // For a peer.
  Result<OwnedFd> ReadOnlyFd() const { return memory_.ReadOnlyFd(); }

 private:
  const SharedMemory memory_;
  Mutex mutex_;
  std::map<size_t, size_t> free_ DT_GUARDED_BY(mutex_);  // Offset and bytes; no two touch.
  std::map<pid_t, std::weak_ptr<std::atomic<size_t>>> lent_ DT_GUARDED_BY(mutex_);
};

}  // namespace dt
