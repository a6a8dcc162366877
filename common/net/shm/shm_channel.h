// Messages over a shared-memory connection. Large parts are not copied: the receiver reads them in
// the sender's arena, and the sender keeps them until the receiver's last frame of them is
// destroyed. Part 0 is always copied, because decoders check it and then trust it. A hostile sender
// may still change the bytes of other parts: use them directly only as values, and Frame::Settled
// for everything else.
//
// One thread; any thread may use and free received frames.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/net/frame.h"
#include "common/net/frame_pool.h"
#include "common/net/shm/shm_arena.h"
#include "common/net/shm/shm_segment.h"

namespace dt {

enum class ShmSide { kClient, kServer };

// A part of a message that a peer reads in our arena.
struct ShmLoan {
  struct TakeBack {
    size_t bytes = 0;
    void operator()(std::atomic<size_t>* lent) const { lent->fetch_sub(bytes); }
  };
  uint32_t slot = 0, lease = 0;
  Frame frame;
  // Subtracts `bytes` from ShmLink::lent when destroyed; the link outlives it.
  std::unique_ptr<std::atomic<size_t>, TakeBack> counted;
};

// Loans of channels that were closed on this side while the peer still read them. Any thread.
class ShmOrphans {
 public:
  struct Entry {
    std::shared_ptr<ShmLink> link;
    ShmRing* ring;
    std::vector<ShmLoan> loans;
  };
  void Add(Entry entry);
  // Drops the loans that peers have returned, and all loans to peers that are gone.
  void Purge();

 private:
  Mutex mutex_;
  std::vector<Entry> entries_ DT_GUARDED_BY(mutex_);
};

// Memory and loans that the channels of one network share. Any thread.
struct ShmLender {
  explicit ShmLender(std::shared_ptr<ShmArena> of) : arena(std::move(of)), frames(arena) {}

  const std::shared_ptr<ShmArena> arena;
  FramePool frames;  // Makes frames in the arena.
  ShmOrphans orphans;
};

class ShmChannel {
 public:
  // `lender` outlives the channel.
  ShmChannel(ShmSide side, std::shared_ptr<ShmLink> link, ShmLender& lender);
  // Tells the peer that nothing more is sent. Loans that the peer still reads go to
  // ShmLender::orphans.
  ~ShmChannel();
  ShmChannel(const ShmChannel&) = delete;
  ShmChannel& operator=(const ShmChannel&) = delete;

  // Busy: the ring or the table of leases is full, or the peer has too many bytes to return.
  // Unavailable: the ring is damaged and the channel of no further use.
  Status Send(const Frames& message);
  // Returns nothing if no message waits. Malformed: the peer broke the protocol, or its memory is
  // damaged.
  Result<std::optional<Frames>> Receive();
  bool empty() const { return in_.empty(); }
  // For clients: takes the server's greeting, if it has arrived. Returns true once the server has
  // accepted the connection; messages sent before may be lost if it never does. Error: the server
  // has refused the connection, or its arena cannot be mapped here.
  Result<bool> TakeGreeting();

  // Called before sleeping: from now on the peer wakes this side. Returns false if a message
  // already waits.
  bool PrepareWait();
  void EndWait() { in_ring_.waiting.store(0); }
  // Sleeps until woken or until the time is over. For clients.
  void Sleep(Duration time);
  // For servers, which wait on descriptors: reads the wake-up bytes from the socket.
  void TakeDoorbell();
  int descriptor() const { return link_->socket.get(); }

  // The peer will send nothing more.
  bool closed() const { return in_ring_.closed.load() != 0; }
  // The peer's process has ended, or has closed its end of the connection.
  bool gone() const;
  // Takes back the parts that the peer has returned. Returns true if the peer has none left.
  bool ReclaimAll();

 private:
  std::optional<size_t> PlaceInArena(Frame& part) const;
  bool AppendPart(Frame part);
  void Reclaim();
  void WakePeer();
  Result<Frame> ReadPart(const ShmPartHead& head, bool first, std::span<const std::byte>& rest);

  const ShmSide side_;
  const std::shared_ptr<ShmLink> link_;
  ShmLender& lender_;
  ShmRing& in_ring_;
  ShmRing& out_ring_;
  ShmRingReader in_;
  ShmRingWriter out_;
  std::vector<std::byte> record_in_, record_out_;
  // `lending_` are the parts of the message that is being sent.
  std::vector<ShmLoan> lent_, lending_;
  std::vector<uint32_t> free_slots_;
  std::vector<uint32_t> last_lease_;  // By slot.
};

}  // namespace dt
