// The memory that both processes of a shared-memory connection map and write. The other side may be
// hostile or dead: each side keeps its own indexes, and checks those of the other before using
// them.
//
//   to_server   client ──records──▶ server      each ring has one writer and one reader
//   to_client   server ──records──▶ client
//
// A record is a message: small parts are bytes in the record, large parts are offsets in the
// sender's arena. A large part is lent: the reader writes the lease's number into `released` when
// it is done.
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
inline constexpr uint32_t kShmSlots = 4096;         // Parts lent at a time, in each direction.
inline constexpr size_t kShmInlineBytesMax = 4096;  // Largest part that is stored in the record.
inline constexpr size_t kShmPartsMax = 16;          // Most parts of a message.
// ShmPartHead::offset of a part in the record.
inline constexpr uint64_t kShmInline = ~uint64_t{0};

struct ShmRecordHead {
  uint32_t bytes = 0;  // Size of the record, with this head; a multiple of 8.
  uint32_t parts = 0;
};
struct ShmPartHead {
  uint64_t size = 0;
  uint64_t offset = kShmInline;  // Offset in the sender's arena.
  uint32_t slot = 0;
  uint32_t lease = 0;
};

struct ShmRing {
  alignas(64) std::atomic<uint64_t> tail;     // Bytes written so far; set by the writer.
  std::atomic<uint32_t> closed;               // 1: the writer is finished.
  alignas(64) std::atomic<uint64_t> head;     // Bytes read so far; set by the reader.
  alignas(64) std::atomic<uint32_t> waiting;  // 1: the reader sleeps, or is about to.
  alignas(64) std::atomic<uint32_t> released[kShmSlots];
  alignas(64) std::byte bytes[kShmRingBytes];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

struct ShmSegment {
  ShmRing to_server, to_client;
};

// State that lives as long as the connection or any frame received through it. Its destruction
// closes the socket, which the other process notices.
struct ShmLink {
  SharedMemory segment;     // A ShmSegment.
  SharedMemory peer_arena;  // Read only. The client gets it with the server's greeting.
  OwnedFd socket;
  // See ShmArena::LentTo. At the limit, nothing more is lent to the peer until it returns
  // something.
  std::shared_ptr<std::atomic<size_t>> lent = std::make_shared<std::atomic<size_t>>(0);
  size_t lent_max = ~size_t{0};

  ShmSegment& shared() const { return *reinterpret_cast<ShmSegment*>(segment.data()); }
};

// The writing end of a ring. One thread.
class ShmRingWriter {
 public:
  explicit ShmRingWriter(ShmRing& ring) : ring_(ring) {}
  enum class Outcome { kWritten, kFull, kBroken };
  // REQUIRES: record.size() is a multiple of 8, and at most half of the ring.
  Outcome Write(std::span<const std::byte> record);

 private:
  ShmRing& ring_;
  uint64_t tail_ = 0;
};

class ShmRingReader {
 public:
  explicit ShmRingReader(ShmRing& ring) : ring_(ring) {}
  enum class Outcome { kRead, kEmpty, kBroken };
  // Copies the next record; its head has been checked.
  Outcome Read(std::vector<std::byte>& record);
  bool empty() const { return ring_.tail.load() == head_; }

 private:
  void CopyOut(std::span<std::byte> to) const;

  ShmRing& ring_;
  uint64_t head_ = 0;
};

}  // namespace dt
