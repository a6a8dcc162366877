// The mesh over memory that the ranks of one host share. Each rank has a segment, which the others
// map: a bell, and for each other rank and channel a ring of bytes into which that rank writes its
// messages. A sender copies as much as there is room for, and the receiver copies from the ring to
// where the message belongs; whoever waits does both for all its messages.
//
// A rank that waits spins for some microseconds and then sleeps on its bell, which others ring when
// they have written or made room.
#include "worker/collective/mesh_shm.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include <linux/futex.h>

#include "common/base/check.h"
#include "common/net/shm/shm_memory.h"
#include "common/net/shm/shm_spin.h"
#include "worker/collective/mesh.h"
#include "worker/collective/stream_copy.h"

namespace dt::worker {
namespace {

// A ring stays in the cache of a processor, and holds half of a large chunk. With many ranks it is
// smaller, so that a rank's rings have 16 MiB at most, as long as they are 64 KiB.
constexpr size_t kRingBytesMax = size_t{512} << 10, kRingBytesMin = size_t{64} << 10;
constexpr size_t kRingsBytes = size_t{16} << 20;
size_t RingBytesFor(uint32_t ranks) {
  size_t bytes = kRingBytesMax;
  while (bytes > kRingBytesMin && bytes * ranks * kChannels > kRingsBytes) bytes /= 2;
  return bytes;
}
constexpr Duration kLookEvery = milliseconds(50);  // How often a rank that waits looks around.
constexpr size_t kLine = 64;

// The bytes stand behind it. Positions count bytes from the start of the connection; each has one
// writer.
struct Ring {
  alignas(kLine) std::atomic<uint64_t> written;
  alignas(kLine) std::atomic<uint64_t> taken;

  std::byte* bytes() { return reinterpret_cast<std::byte*>(this + 1); }
};

struct Segment {
  alignas(kLine) std::atomic<uint32_t> bell;  // Changes when something has happened for this rank.
  std::atomic<uint32_t> sleeps;               // The rank waits for the bell.
  std::atomic<uint32_t> gone;                 // The rank makes no call any more.
  std::atomic<uint32_t> lost;                 // The rank that it has lost, plus 1; 0: none.
};
size_t SegmentBytes(uint32_t ranks) {
  return sizeof(Segment) + (sizeof(Ring) + RingBytesFor(ranks)) * kChannels * ranks;
}
static_assert(sizeof(Segment) % kLine == 0 && std::atomic<uint64_t>::is_always_lock_free);

// Stands in a ring before the bytes of a message.
struct Head {
  uint64_t slot = 0, bytes = 0;
};

long Futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* time) {
  return syscall(SYS_futex, &word, operation, value, time, nullptr, 0);
}

// The bytes of a message that wait to be written: its head, then its content.
struct Sending {
  Head head;
  const std::byte* bytes = nullptr;
  size_t done = 0;  // Bytes written of head and content.
  size_t all() const { return sizeof(Head) + head.bytes; }
};
struct Awaited {
  Incoming in;
  uint64_t slot = 0;
  bool arrived = false;
};

// Keeps its memory when it runs empty.
template <class T>
class Queue {
 public:
  bool empty() const { return items_.empty(); }
  T& front() { return items_[front_]; }
  void push_back(T item) { items_.push_back(std::move(item)); }
  void pop_front() {
    if (++front_ < items_.size()) return;
    items_.clear();
    front_ = 0;
  }

 private:
  std::vector<T> items_;
  size_t front_ = 0;
};

// Both directions between this rank and another one on a channel.
struct Lane {
  Ring* in = nullptr;
  Ring* out = nullptr;
  Queue<Sending> sending;
  Queue<size_t> awaited;  // Numbers of messages, in their order.
  // The message at the front of `in`.
  bool begun = false;
  Head head;
  size_t taken = 0;
};

class ShmMesh : public Mesh {
 public:
  ShmMesh(const MeshOptions& options, std::vector<ShmPeer> peers)
      : options_(options),
        peers_(std::move(peers)),
        ring_bytes_(RingBytesFor(options.size)),
        lanes_(peers_.size() * kChannels) {
    for (uint32_t r = 0; r < peers_.size(); ++r) {
      for (uint32_t c = 0; c < kChannels; ++c) {
        lanes_[r * kChannels + c].in = RingOf(options_.rank, r, c);
        lanes_[r * kChannels + c].out = RingOf(r, options_.rank, c);
      }
    }
  }
  ~ShmMesh() override {
    Own().gone.store(1);
    RingAll();
  }

  uint32_t rank() const override { return options_.rank; }
  uint32_t size() const override { return options_.size; }

  Status Begin(const MessageTag& tag, std::string_view operation) override {
    if (!broken_.ok()) return broken_;
    operation_ = operation;
    awaited_.clear();
    sent_.Begin(tag, size());
    received_.Begin(tag, size());
    deadline_ = SystemClock().Now() + options_.limits.timeout;
    return OkStatus();
  }

  Status Post(std::span<const Outgoing> send, std::span<const Incoming> receive) override {
    if (!broken_.ok()) return broken_;
    for (const Incoming& in : receive) {
      const bool empty = in.bytes.empty();
      awaited_.push_back({in, empty ? 0 : received_.NextSlot(in.rank, in.channel), empty});
      if (!empty) LaneOf(in.rank, in.channel).awaited.push_back(awaited_.size() - 1);
    }
    for (const Outgoing& out : send) {
      if (out.bytes.empty()) continue;
      const Head head{sent_.NextSlot(out.rank, out.channel), out.bytes.size()};
      LaneOf(out.rank, out.channel).sending.push_back({head, out.bytes.data()});
    }
    return MoveAll().status();
  }

  Status WaitFor(size_t received) override {
    return Until(awaited_[received].in.rank, [&] { return awaited_[received].arrived; });
  }

  Status End() override {
    for (size_t i = 0; i < awaited_.size(); ++i) DT_TRY_STATUS(WaitFor(i));
    for (uint32_t r = 0; r < size(); ++r) {
      for (uint32_t c = 0; c < kChannels; ++c) {
        DT_TRY_STATUS(Until(r, [&] { return LaneOf(r, c).sending.empty(); }));
      }
    }
    return broken_;
  }

  void Cancel() override {
    Mesh::Cancel();
    RingBell(options_.rank);
  }

 private:
  Segment& SegmentOf(uint32_t rank) const {
    return *reinterpret_cast<Segment*>(peers_[rank].memory.data());
  }
  Segment& Own() const { return SegmentOf(options_.rank); }
  // The ring from a rank, in the memory of the one that reads it.
  Ring* RingOf(uint32_t reader, uint32_t from, uint32_t channel) const {
    std::byte* const rings = peers_[reader].memory.data() + sizeof(Segment);
    const size_t each = sizeof(Ring) + ring_bytes_;
    return reinterpret_cast<Ring*>(rings + each * (from * kChannels + channel));
  }
  // Copies from `from` into the ring at a position, or out of it.
  void CopyIn(Ring& ring, uint64_t at, const std::byte* from, size_t count) const {
    const size_t begin = at % ring_bytes_, first = std::min(count, ring_bytes_ - begin);
    std::memcpy(ring.bytes() + begin, from, first);
    std::memcpy(ring.bytes(), from + first, count - first);
  }
  void CopyOut(Ring& ring, uint64_t at, std::byte* to, size_t count, bool large = false) const {
    const size_t begin = at % ring_bytes_, first = std::min(count, ring_bytes_ - begin);
    if (large) {
      StreamCopy(to, ring.bytes() + begin, first);
      StreamCopy(to + first, ring.bytes(), count - first);
      return;
    }
    std::memcpy(to, ring.bytes() + begin, first);
    std::memcpy(to + first, ring.bytes(), count - first);
  }
  Lane& LaneOf(uint32_t rank, uint32_t channel) { return lanes_[rank * kChannels + channel]; }

  void RingBell(uint32_t rank) {
    Segment& segment = SegmentOf(rank);
    segment.bell.fetch_add(1);
    if (segment.sleeps.load() != 0) Futex(segment.bell, FUTEX_WAKE, INT_MAX, nullptr);
  }
  void RingAll() {
    for (uint32_t r = 0; r < size(); ++r) {
      if (r != options_.rank) RingBell(r);
    }
  }

  // Writes and reads what is possible. True if anything has moved.
  Result<bool> MoveAll() {
    bool any = false;
    for (uint32_t r = 0; r < size(); ++r) {
      bool moved = false;
      for (uint32_t c = 0; c < kChannels; ++c) {
        Lane& lane = LaneOf(r, c);
        if (!lane.sending.empty() && WriteInto(lane)) moved = true;
        if (lane.awaited.empty()) continue;
        DT_TRY(const bool read, ReadFrom(lane, r));
        moved = moved || read;
      }
      if (moved) RingBell(r);
      any = any || moved;
    }
    return any;
  }

  bool WriteInto(Lane& lane) {
    Ring& ring = *lane.out;
    const uint64_t begin = ring.written.load(std::memory_order_relaxed);
    uint64_t at = begin;
    // A damaged position may cost messages, but nothing is written beyond the ring.
    const uint64_t room = ring.taken.load(std::memory_order_acquire) + ring_bytes_ - at;
    const uint64_t end = at + std::min<uint64_t>(room, ring_bytes_);
    while (!lane.sending.empty()) {
      Sending& message = lane.sending.front();
      if (message.done < sizeof(Head)) {
        // A head is written at once.
        if (end - at < sizeof(Head)) break;
        CopyIn(ring, at, reinterpret_cast<const std::byte*>(&message.head), sizeof(Head));
        message.done = sizeof(Head);
        at += sizeof(Head);
      }
      const size_t count = std::min<size_t>(message.all() - message.done, end - at);
      CopyIn(ring, at, message.bytes + (message.done - sizeof(Head)), count);
      message.done += count;
      at += count;
      if (message.done < message.all()) break;
      lane.sending.pop_front();
    }
    ring.written.store(at, std::memory_order_release);
    return at != begin;
  }

  // A message that is not awaited yet, because it belongs to a later call, stays in the ring.
  Result<bool> ReadFrom(Lane& lane, uint32_t from) {
    Ring& ring = *lane.in;
    const uint64_t begin = ring.taken.load(std::memory_order_relaxed);
    uint64_t at = begin;
    const uint64_t end = ring.written.load(std::memory_order_acquire);
    if (end - begin > ring_bytes_) {
      return Fail(
          Malformed("rank {} of {}: the memory of rank {} is damaged", rank(), size(), from));
    }
    while (!lane.awaited.empty()) {
      Awaited& message = awaited_[lane.awaited.front()];
      if (!lane.begun) {
        if (end - at < sizeof(Head)) break;
        CopyOut(ring, at, reinterpret_cast<std::byte*>(&lane.head), sizeof(Head));
        if (lane.head.slot != message.slot) break;
        if (lane.head.bytes != message.in.bytes.size()) {
          return Fail(Internal("rank {} of {} got {} bytes from rank {}, not {}", rank(), size(),
                               lane.head.bytes, from, message.in.bytes.size()));
        }
        at += sizeof(Head);
        lane.begun = true;
        lane.taken = 0;
      }
      const size_t count = std::min<size_t>(lane.head.bytes - lane.taken, end - at);
      CopyOut(ring, at, message.in.bytes.data() + lane.taken, count,
              lane.head.bytes >= kStreamBytes);
      lane.taken += count;
      at += count;
      if (lane.taken < lane.head.bytes) break;
      lane.begun = false;
      message.arrived = true;
      lane.awaited.pop_front();
    }
    ring.taken.store(at, std::memory_order_release);
    return at != begin;
  }

  // Moves messages until `done`, for which this peer is needed.
  template <class Done>
  Status Until(uint32_t peer, const Done& done) {
    for (bool moved = true; broken_.ok() && !done();) {
      if (moved) still_since_ = {};
      DT_TRY(moved, MoveAll());
      if (moved) continue;
      const uint32_t heard = Own().bell.load();
      const auto rang = [&] { return Own().bell.load() != heard; };
      DT_TRY(moved, MoveAll());
      if (moved) continue;
      if (!spins_ || !spin_.Until(rang)) {
        const TimePoint begun = SystemClock().Now();
        Sleep(heard);
        spin_.Slept(SystemClock().Now() - begun);
      }
      DT_TRY_STATUS(LookAround(peer));
    }
    return broken_;
  }

  void Sleep(uint32_t heard) {
    Segment& own = Own();
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(kLookEvery).count();
    const timespec wait{.tv_sec = 0, .tv_nsec = static_cast<long>(time)};
    own.sleeps.store(1);
    if (own.bell.load() == heard) Futex(own.bell, FUTEX_WAIT, heard, &wait);
    own.sleeps.store(0);
  }

  // Why a wait may end without a message.
  Status LookAround(uint32_t peer) {
    if (Status status = CheckCancelled(); !status.ok()) return Fail(std::move(status));
    const TimePoint now = SystemClock().Now();
    const bool time = now >= next_look_;
    if (still_since_ == TimePoint()) still_since_ = now;
    const uint32_t behind = SegmentOf(peer).lost.load();
    if (behind != 0 || SegmentOf(peer).gone.load() != 0 || (time && HasEnded(peer))) {
      DT_TRY(const bool moved, MoveAll());  // The peer may have written before it ended.
      return moved ? OkStatus() : FailFor(peer, behind);
    }
    if (!time) return OkStatus();
    next_look_ = now + kLookEvery;
    const auto& [timeout, interrupted, awaits] = options_.limits;
    if (awaits) awaits(peer, still_since_);
    if (Status why = interrupted ? interrupted() : OkStatus(); !why.ok()) return Fail(why);
    if (now < deadline_) return OkStatus();
    return Fail(Timeout("rank {} of {} heard nothing from rank {} in {:.0f} s", rank(), size(),
                        peer, std::chrono::duration<double>(timeout).count()));
  }
  bool HasEnded(uint32_t peer) const {
    pollfd ended{.fd = peers_[peer].process.get(), .events = POLLIN, .revents = 0};
    return ended.fd >= 0 && poll(&ended, 1, 0) == 1;
  }

  Status FailFor(uint32_t peer, uint32_t behind) {
    const bool says = behind != 0 && behind - 1 != options_.rank && behind <= size();
    const uint32_t lost = says ? behind - 1 : peer;
    Own().lost.store(lost + 1);
    if (options_.limits.awaits) options_.limits.awaits(lost, still_since_);
    const std::string how = says ? fmt::format(", as rank {} says", peer) : ": it has ended";
    return Fail(Unavailable("rank {} of {} lost rank {}{}", rank(), size(), lost, how));
  }
  // From now on nothing is written to memory that the caller gives up.
  Status Fail(const Status& why) {
    broken_ = why.code() == StatusCode::kCancelled ? why : Prefixed(why, operation_);
    RingAll();
    return broken_;
  }

  const MeshOptions options_;
  const std::vector<ShmPeer> peers_;  // By rank.
  const size_t ring_bytes_;
  std::vector<Lane> lanes_;  // By rank and channel.
  Status broken_;
  // More ranks than processors would keep each other from them.
  const bool spins_ = size() <= std::thread::hardware_concurrency();
  ShmSpin spin_;
  // The call under way.
  std::string operation_;
  TimePoint deadline_, next_look_;
  TimePoint still_since_;  // No byte has moved since then; 0: one has just moved.
  std::vector<Awaited> awaited_;
  MessageCounts sent_, received_;
};

}  // namespace

size_t ShmSegmentBytes(uint32_t ranks) { return SegmentBytes(ranks); }

std::unique_ptr<Mesh> MakeShmMesh(const MeshOptions& options, std::vector<ShmPeer> peers) {
  return std::make_unique<ShmMesh>(options, std::move(peers));
}

}  // namespace dt::worker
