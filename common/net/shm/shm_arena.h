// The memory of this process that other processes of its host may read: peers read frames in it
// without a copy. It lives as long as any frame in it. Any thread.
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

// Size of the address range; pages are allocated when touched.
inline constexpr size_t kArenaBytes = size_t{16} << 30;

class ShmArena : public FrameMemory {
 public:
  // Unavailable: this system has no such memory, or the address space limit of this process is too
  // small for its own arena and those of its peers.
  static Result<std::shared_ptr<ShmArena>> Create();
  // Use Create.
  explicit ShmArena(SharedMemory memory);

  std::byte* Allocate(size_t bytes) override;
  // Frees memory of any size. Its pages stay allocated, because sealed memory cannot have holes.
  void Free(std::byte* memory, size_t bytes) override;
  // Smaller parts of messages are copied into their record instead.
  size_t bytes_min() const override;

  // Offset of the bytes in the arena; nothing if they are elsewhere.
  std::optional<size_t> OffsetOf(std::span<const std::byte> bytes) const;
  // The counter of the arena's bytes that a peer may still read. All connections of one process
  // share it. If the system does not tell the process (0), each connection gets its own.
  std::shared_ptr<std::atomic<size_t>> LentTo(pid_t peer);
  // A descriptor for a peer.
  Result<OwnedFd> ReadOnlyFd() const { return memory_.ReadOnlyFd(); }

 private:
  const SharedMemory memory_;
  Mutex mutex_;
  // Offset → bytes; adjacent ranges are merged.
  std::map<size_t, size_t> free_ DT_GUARDED_BY(mutex_);
  std::map<pid_t, std::weak_ptr<std::atomic<size_t>>> lent_ DT_GUARDED_BY(mutex_);
};

}  // namespace dt
