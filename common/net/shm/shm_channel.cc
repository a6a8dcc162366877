#include "common/net/shm/shm_channel.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/futex.h>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/net/shm/shm_rendezvous.h"
#include "common/net/socket.h"

namespace dt {
namespace {

size_t Padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

// Both processes use the word, so FUTEX_PRIVATE is not possible.
void FutexWait(std::atomic<uint32_t>& word, uint32_t while_equal, Duration time) {
  const auto whole = std::chrono::duration_cast<seconds>(time);
  const timespec timeout{.tv_sec = whole.count(), .tv_nsec = (time - whole).count()};
  syscall(SYS_futex, &word, FUTEX_WAIT, while_equal, &timeout, nullptr, 0);
}
void FutexWake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool HungUp(int socket) {
  pollfd item{socket, 0, 0};
  return poll(&item, 1, 0) > 0 && (item.revents & (POLLHUP | POLLERR)) != 0;
}

// Owns a received part: tells the sender when nothing reads it any more.
class Lease {
 public:
  Lease(std::shared_ptr<ShmLink> link, std::atomic<uint32_t>& word, uint32_t number)
      : link_(std::move(link)), word_(word), number_(number) {}
  ~Lease() { word_.store(number_, std::memory_order_release); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

 private:
  const std::shared_ptr<ShmLink> link_;
  std::atomic<uint32_t>& word_;
  const uint32_t number_;
};

}  // namespace

void ShmOrphans::Add(Entry entry) {
  MutexLock lock(mutex_);
  entries_.push_back(std::move(entry));
}

void ShmOrphans::Purge() {
  MutexLock lock(mutex_);
  std::erase_if(entries_, [](Entry& entry) {
    std::erase_if(entry.loans, [&](const ShmLoan& l) {
      return entry.ring->released[l.slot].load(std::memory_order_acquire) == l.lease;
    });
    return entry.loans.empty() || HungUp(entry.link->socket.get());
  });
}

ShmChannel::ShmChannel(ShmSide side, std::shared_ptr<ShmLink> link, ShmLender& lender)
    : side_(side),
      link_(std::move(link)),
      lender_(lender),
      in_ring_(side == ShmSide::kClient ? link_->shared().to_client : link_->shared().to_server),
      out_ring_(side == ShmSide::kClient ? link_->shared().to_server : link_->shared().to_client),
      in_(in_ring_),
      out_(out_ring_),
      last_lease_(kShmSlots, 0) {
  for (uint32_t slot = kShmSlots; slot > 0; --slot) free_slots_.push_back(slot - 1);
  lender_.orphans.Purge();
}

ShmChannel::~ShmChannel() {
  out_ring_.closed.store(1);
  WakePeer();
  if (!ReclaimAll()) lender_.orphans.Add({link_, &out_ring_, std::move(lent_)});
  lender_.orphans.Purge();
}

// ------------------------------------------------------------ sending

void ShmChannel::Reclaim() {
  std::erase_if(lent_, [this](const ShmLoan& l) {
    if (out_ring_.released[l.slot].load(std::memory_order_acquire) != l.lease) return false;
    free_slots_.push_back(l.slot);
    return true;
  });
}

bool ShmChannel::ReclaimAll() {
  Reclaim();
  return lent_.empty() || gone();
}

// Copies a part that is not in the arena into it. Returns the part's offset, or nothing if no
// memory is left.
std::optional<size_t> ShmChannel::PlaceInArena(Frame& part) const {
  const Frame& read = part;
  const ShmArena& arena = *lender_.arena;
  if (const auto place = arena.OffsetOf(read.bytes()); place.has_value()) return place;
  part = lender_.frames.CopyOf(read.bytes());
  return arena.OffsetOf(std::as_const(part).bytes());
}

// Returns false if no slot or memory is left, or if the peer has reached its limit of lent bytes.
bool ShmChannel::AppendPart(Frame part) {
  ShmPartHead head{.size = part.size()};
  const size_t number = reinterpret_cast<ShmRecordHead*>(record_out_.data())->parts++;
  if (part.size() <= kShmInlineBytesMax) {
    const size_t at = record_out_.size();
    record_out_.resize(at + Padded(part.size()));
    if (part.size() != 0) std::memcpy(&record_out_[at], part.bytes().data(), part.size());
  } else {
    std::atomic<size_t>& lent = *link_->lent;
    std::unique_ptr<std::atomic<size_t>, ShmLoan::TakeBack> counted(&lent, {part.size()});
    if (lent.fetch_add(part.size()) + part.size() > link_->lent_max) return false;
    const std::optional<size_t> place = PlaceInArena(part);
    if (!place.has_value() || free_slots_.empty()) return false;
    head.offset = *place;
    head.slot = free_slots_.back();
    head.lease = ++last_lease_[head.slot];
    free_slots_.pop_back();
    lending_.push_back({head.slot, head.lease, std::move(part), std::move(counted)});
  }
  std::memcpy(&record_out_[sizeof(ShmRecordHead) + number * sizeof(head)], &head, sizeof(head));
  return true;
}

Status ShmChannel::Send(const Frames& message) {
  DT_CHECK(!message.empty() && message.size() <= kShmPartsMax);
  Reclaim();
  record_out_.assign(sizeof(ShmRecordHead) + message.size() * sizeof(ShmPartHead), std::byte{});
  bool placed = true;
  for (const Frame& part : message) placed = placed && AppendPart(part);
  reinterpret_cast<ShmRecordHead*>(record_out_.data())->bytes =
      static_cast<uint32_t>(record_out_.size());
  using Outcome = ShmRingWriter::Outcome;
  const Outcome outcome = placed ? out_.Write(record_out_) : Outcome::kFull;
  if (outcome == Outcome::kWritten) {
    std::ranges::move(lending_, std::back_inserter(lent_));
    lending_.clear();
    WakePeer();
    return OkStatus();
  }
  for (const ShmLoan& l : lending_) free_slots_.push_back(l.slot);
  lending_.clear();
  if (outcome == Outcome::kFull) {
    return Busy("the peer has {} parts to read, and {} in all its connections", lent_.size(),
                BytesText(link_->lent->load()));
  }
  return Unavailable("shared memory of a peer: its ring is damaged");
}

void ShmChannel::WakePeer() {
  if (out_ring_.waiting.load() == 0 || out_ring_.waiting.exchange(0) == 0) return;
  if (side_ == ShmSide::kServer) {
    FutexWake(out_ring_.waiting);
    return;
  }
  const char bell = 1;  // If the socket is full, the server is awake.
  static_cast<void>(send(link_->socket.get(), &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0);
}

// ------------------------------------------------------------ receiving

Result<bool> ShmChannel::TakeGreeting() {
  if (link_->peer_arena.size() != 0) return true;
  DT_TRY(std::optional<ShmHello> hello, TakeShmHello(link_->socket.get()));
  if (!hello.has_value()) return false;
  if (hello->fds.size() != 1) {
    return Malformed("a greeting with {} descriptors", hello->fds.size());
  }
  DT_TRY(link_->peer_arena,
         SharedMemory::Open(std::move(hello->fds[0]), kArenaBytes, SharedMemory::Access::kRead));
  return true;
}

Result<Frame> ShmChannel::ReadPart(const ShmPartHead& head, bool first,
                                   std::span<const std::byte>& rest) {
  if (head.offset == kShmInline) {
    if (head.size > kShmInlineBytesMax || Padded(head.size) > rest.size()) {
      return Malformed("shared memory of a peer: {} bytes in a record of {}", head.size,
                       rest.size());
    }
    Frame part = Frame::CopyOf(rest.first(head.size));
    rest = rest.subspan(Padded(head.size));
    return part;
  }
  DT_TRY(const bool greeted, TakeGreeting());
  if (!greeted) return Malformed("shared memory of a peer: a message, but no greeting");
  const size_t bytes = link_->peer_arena.size();
  if (head.size > kPartBytesMax || head.offset % 8 != 0 || head.offset > bytes ||
      head.size > bytes - head.offset || head.slot >= kShmSlots) {
    return Malformed("shared memory of a peer: {} bytes at {}", head.size, head.offset);
  }
  auto lease = MakePooled<Lease>(link_, in_ring_.released[head.slot], head.lease);
  const std::span<std::byte> place{link_->peer_arena.data() + head.offset, head.size};
  return first ? Frame::CopyOf(place) : Frame::OfPeer(place, std::move(lease));
}

Result<std::optional<Frames>> ShmChannel::Receive() {
  using Outcome = ShmRingReader::Outcome;
  const Outcome outcome = in_.Read(record_in_);
  if (outcome == Outcome::kEmpty) return std::optional<Frames>();
  ShmRecordHead head;
  if (outcome == Outcome::kRead) std::memcpy(&head, record_in_.data(), sizeof(head));
  const size_t heads = sizeof(head) + size_t{head.parts} * sizeof(ShmPartHead);
  if (head.parts == 0 || head.parts > kShmPartsMax || heads > record_in_.size()) {
    return Malformed("shared memory of a peer: its ring is damaged");
  }
  std::span<const std::byte> rest = std::span<const std::byte>(record_in_).subspan(heads);
  Frames message;
  for (size_t i = 0; i < head.parts; ++i) {
    ShmPartHead part;
    std::memcpy(&part, &record_in_[sizeof(head) + i * sizeof(part)], sizeof(part));
    DT_TRY(Frame frame, ReadPart(part, i == 0, rest));
    message.push_back(std::move(frame));
  }
  return std::optional(std::move(message));
}

// ------------------------------------------------------------ waiting

bool ShmChannel::PrepareWait() {
  // Sequentially consistent with the writer's tail, so no wake-up is missed.
  in_ring_.waiting.store(1);
  if (in_.empty()) return true;
  EndWait();
  return false;
}

void ShmChannel::Sleep(Duration time) {
  DT_CHECK(side_ == ShmSide::kClient);
  FutexWait(in_ring_.waiting, 1, time);
}

void ShmChannel::TakeDoorbell() {
  std::byte bells[64];
  static_cast<void>(recv(link_->socket.get(), bells, sizeof(bells), MSG_DONTWAIT) < 0);
}

bool ShmChannel::gone() const { return HungUp(link_->socket.get()); }

}  // namespace dt
