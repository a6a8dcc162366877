// Messages over a shared-memory connection. Large parts are not copied: they are read where the
// sender made them, in its arena, and the sender keeps them until the reader's last frame of them
// goes. Part 0, which decoders trust once they have checked it, is copied always; the bytes of the
// others may still be changed by a hostile sender: as they are they may only be values, for all
// else there is Frame::Settled.
//
// One thread; frames that were received may be used and freed by any.
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

// A part that a peer reads where it was made.
struct ShmLoan {
  struct TakeBack {
    size_t bytes = 0;
    void operator()(std::atomic<size_t>* lent) const { lent->fetch_sub(bytes); }
  };
  uint32_t slot = 0, lease = 0;
  Frame frame;
  std::unique_ptr<std::atomic<size_t>, TakeBack> counted;  // In ShmLink::lent, which outlives it.
};

// Loans of channels that were closed here while the peer still read them. Any thread.
class ShmOrphans {
 public:
  struct Entry {
    std::shared_ptr<ShmLink> link;
    ShmRing* ring;
    std::vector<ShmLoan> loans;
  };
  void Add(Entry entry);
  // Frees what its peer has given back, and what was lent to those who have gone.
  void Purge();

 private:
  Mutex mutex_;
  std::vector<Entry> entries_ DT_GUARDED_BY(mutex_);
};

// What the channels of one network lend from. Any thread.
struct ShmLender {
  explicit ShmLender(std::shared_ptr<ShmArena> of) : arena(std::move(of)), frames(arena) {}

  const std::shared_ptr<ShmArena> arena;
  FramePool frames;  // In the arena.
  ShmOrphans orphans;
};

class ShmChannel {
 public:
  // `lender` outlives it.
  ShmChannel(ShmSide side, std::shared_ptr<ShmLink> link, ShmLender& lender);
  // Tells the peer. What it still reads is kept for it.
  ~ShmChannel();
  ShmChannel(const ShmChannel&) = delete;
  ShmChannel& operator=(const ShmChannel&) = delete;

  // Busy: the ring or the table of leases is full, or the peer has too much to give back.
  // Unavailable: of no use any more.
  Status Send(const Frames& message);
  // Nothing when no message is there. Malformed: the peer broke the rules, or its memory is broken.
  Result<std::optional<Frames>> Receive();
  bool empty() const { return in_.empty(); }
  // The client's: takes the server's greeting, if it is there. True once it was: the server has
  // taken the connection; what was sent before may be lost. An error: the server has refused it, or
  // its arena cannot be mapped here.
  Result<bool> TakeGreeting();

  // Before sleeping: the peer will wake this side. False when a message is there: do not sleep.
  bool PrepareWait();
  void EndWait() { in_ring_.waiting.store(0); }
  // The client's sleep. Returns when woken, or when the time is over.
  void Sleep(Duration time);
  // The server's way to hear of a wake, beside other descriptors: reads what was written to it.
  void TakeDoorbell();
  int descriptor() const { return link_->socket.get(); }

  // The peer will send nothing more.
  bool closed() const { return in_ring_.closed.load() != 0; }
  // The peer's process has gone, or holds nothing of this connection any more.
  bool gone() const;
  // Takes back what the peer has given back. True when it holds nothing of ours any more.
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
  std::vector<ShmLoan> lent_, lending_;  // The second: of the message that is being sent.
  std::vector<uint32_t> free_slots_;
  std::vector<uint32_t> last_lease_;  // By slot.
};

}  // namespace dt
