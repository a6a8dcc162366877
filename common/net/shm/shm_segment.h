// What the two processes of a shared-memory connection both map and write. Either side may be
// hostile or dead: each keeps its own indexes, and believes the other's only after a check.
//
//   to_server   client ──records──▶ server      each ring has one writer and one reader
//   to_client   server ──records──▶ client
//
// A record is a message: its small parts as bytes, its large ones as places in the sender's arena.
// A large part is lent: the reader writes the lease's number into `released` when it is done.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/net/shm/shm_memory.h"

namespace dt {

inline constexpr size_t kShmRingBytes = 1 << 20;
inline constexpr uint32_t kShmSlots = 4096;           // Parts lent at a time, each way.
inline constexpr size_t kShmInlineBytesMax = 4096;    // Of a part that travels in the record.
inline constexpr size_t kShmPartsMax = 16;            // Of a message.
inline constexpr uint64_t kShmInline = ~uint64_t{0};  // PartHead::offset of such a part.

struct ShmRecordHead {
  uint32_t bytes = 0;  // Of the record, this included; a multiple of 8.
  uint32_t parts = 0;
};
struct ShmPartHead {
  uint64_t size = 0;
  uint64_t offset = kShmInline;  // In the sender's arena.
  uint32_t slot = 0;
  uint32_t lease = 0;
};

struct ShmRing {
  alignas(64) std::atomic<uint64_t> tail;     // Bytes written so far; the writer's.
  std::atomic<uint32_t> closed;               // 1: nothing more is written.
  alignas(64) std::atomic<uint64_t> head;     // Bytes read so far; the reader's.
  alignas(64) std::atomic<uint32_t> waiting;  // 1: the reader sleeps, or is about to.
  alignas(64) std::atomic<uint32_t> released[kShmSlots];
  alignas(64) std::byte bytes[kShmRingBytes];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

struct ShmSegment {
  ShmRing to_server, to_client;
};

// What lives as long as the connection or anything received through it. The other process sees the
// socket's end when it has gone.
struct ShmLink {
  SharedMemory segment;     // A ShmSegment.
  SharedMemory peer_arena;  // Read only. The client gets it with the first answer.
  OwnedFd socket;
  // See ShmArena::LentTo. At the limit nothing more is lent to the peer until it gives some back.
  std::shared_ptr<std::atomic<size_t>> lent = std::make_shared<std::atomic<size_t>>(0);
  size_t lent_max = ~size_t{0};

  ShmSegment& shared() const { return *reinterpret_cast<ShmSegment*>(segment.data()); }
};

// One end of a ring. One thread.
class ShmRingWriter {
 public:
  explicit ShmRingWriter(ShmRing& ring) : ring_(ring) {}
  enum class Outcome { kWritten, kFull, kBroken };
  // REQUIRES: record.size() is a multiple of 8, at most half of the ring.
  Outcome Write(std::span<const std::byte> record);

 private:
  ShmRing& ring_;
  uint64_t tail_ = 0;
};

class ShmRingReader {
 public:
  explicit ShmRingReader(ShmRing& ring) : ring_(ring) {}
  enum class Outcome { kRead, kEmpty, kBroken };
  // The next record, copied, with a head that is true.
  Outcome Read(std::vector<std::byte>& record);
  bool empty() const { return ring_.tail.load() == head_; }

 private:
  void CopyOut(std::span<std::byte> to) const;

  ShmRing& ring_;
  uint64_t head_ = 0;
};

}  // namespace dt
