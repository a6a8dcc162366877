#include <algorithm>
#include <array>

#include "common/net/shm/shm_rendezvous.h"
#include "common/net/shm/shm_socket.h"
#include "common/net/shm/shm_spin.h"

namespace dt {
namespace {

constexpr Duration kTryAgain = seconds(1);      // Time between attempts to find the peer's socket.
constexpr Duration kSleep = milliseconds(100);  // Limit for noticing a peer's death.
// While messages may also come from the network below.
constexpr Duration kSleepBoth = milliseconds(1);
// Time for which replies may still come from the network below.
constexpr Duration kBelowLinger = seconds(10);
constexpr Duration kGreetingTimeout = seconds(2);       // Time for the server's greeting.
constexpr Duration kRefused = std::chrono::minutes(1);  // Time from a refusal to the next attempt.

Result<std::unique_ptr<ShmChannel>> OpenOne(const std::string& name, ShmLender& lender) {
  DT_TRY(OwnedFd socket, ConnectShm(name));
  DT_TRY(const OwnedFd arena, lender.arena->ReadOnlyFd());
  auto link = std::make_shared<ShmLink>();
  DT_TRY(link->segment, SharedMemory::Create("dovetail-ring", sizeof(ShmSegment),
                                             SharedMemory::Access::kReadWrite));
  const std::array fds = {link->segment.fd().get(), arena.get()};
  DT_TRY_STATUS(SendShmHello(socket.get(), fds));
  link->socket = std::move(socket);
  return std::make_unique<ShmChannel>(ShmSide::kClient, std::move(link), lender);
}

}  // namespace

Result<std::unique_ptr<ShmChannel>> OpenShmChannel(const std::vector<std::string>& names,
                                                   ShmLender& lender) {
  Status problem = Unavailable("no name for shared memory");
  for (const std::string& name : names) {
    Result<std::unique_ptr<ShmChannel>> channel = OpenOne(name, lender);
    if (channel.ok()) return channel;
    problem = channel.status();
  }
  return problem;
}

ShmClientSocket::ShmClientSocket(std::string endpoint, std::vector<std::string> names,
                                 Network& below, ShmShared& shared)
    : endpoint_(std::move(endpoint)),
      names_(std::move(names)),
      below_network_(below),
      shared_(shared) {}

Status ShmClientSocket::Open() {
  TryChannel();
  return channel_ != nullptr ? OkStatus() : UseBelow();
}

Status ShmClientSocket::UseBelow() {
  if (below_ != nullptr) return OkStatus();
  DT_TRY(below_, below_network_.Connect(endpoint_));
  return OkStatus();
}

void ShmClientSocket::TryChannel() {
  const TimePoint now = SystemClock().Now();
  if (now < next_try_) return;
  next_try_ = now + kTryAgain;
  Result<std::unique_ptr<ShmChannel>> channel = OpenShmChannel(names_, shared_.lender);
  if (!channel.ok()) return;
  channel_ = *std::move(channel);
  greeted_ = false;
  greet_until_ = now + kGreetingTimeout;
  below_until_ = now + kBelowLinger;
}

// If the server refuses shared memory, or has no room for the connection, the client uses the
// network below.
void ShmClientSocket::TakeGreeting() {
  if (greeted_) return;
  const Result<bool> greeted = channel_->TakeGreeting();
  greeted_ = greeted.ok() && *greeted;
  if (greeted_) unheard_.clear();
  if (!greeted.ok() || (!greeted_ && SystemClock().Now() >= greet_until_)) LeaveChannel();
}

// Called when the server is gone or the connection is broken. Keeps the messages that have arrived;
// the server may already be running again.
void ShmClientSocket::LeaveChannel() {
  for (bool more = true; more;) {
    Result<std::optional<Frames>> last = channel_->Receive();
    more = last.ok() && last->has_value();
    if (more) last_words_.push_back(**std::move(last));
  }
  channel_ = nullptr;
  next_try_ = greeted_ ? TimePoint() : SystemClock().Now() + kRefused;
  if (!unheard_.empty() && UseBelow().ok()) {
    for (Frames& message : unheard_) below_->Send(std::move(message)).IgnoreError();
  }
  unheard_.clear();
  TryChannel();
}

Status ShmClientSocket::Send(Frames message) {
  if (channel_ == nullptr) TryChannel();
  if (channel_ != nullptr) TakeGreeting();
  if (channel_ != nullptr && (channel_->gone() || channel_->closed())) LeaveChannel();
  if (channel_ != nullptr) {
    const size_t bytes = BytesIn(message);
    Status sent = channel_->Send(message);
    if (sent.ok()) shared_.totals.sent.fetch_add(bytes, std::memory_order_relaxed);
    if (sent.ok() && !greeted_) unheard_.push_back(message);
    if (sent.ok() || sent.code() == StatusCode::kResourceExhausted) return sent;
    LeaveChannel();
  }
  DT_TRY_STATUS(UseBelow());
  return below_->Send(std::move(message));
}

// Returns a message that has already arrived, if any.
Result<std::optional<Frames>> ShmClientSocket::Poll() {
  if (!last_words_.empty()) {
    Frames frames = std::move(last_words_.front());
    last_words_.pop_front();
    shared_.totals.received.fetch_add(BytesIn(frames), std::memory_order_relaxed);
    return std::optional(std::move(frames));
  }
  if (channel_ != nullptr) TakeGreeting();
  if (channel_ != nullptr) {
    const bool ended = channel_->closed();  // Read first: after `closed` no message is added.
    Result<std::optional<Frames>> frames = channel_->Receive();
    if (frames.ok() && frames->has_value()) {
      shared_.totals.received.fetch_add(BytesIn(**frames), std::memory_order_relaxed);
      return frames;
    }
    if (!frames.ok() || ended) LeaveChannel();
  }
  if (channel_ == nullptr) DT_TRY_STATUS(UseBelow());
  if (below_ == nullptr) return std::optional<Frames>();
  Result<Frames> frames = below_->Receive(Duration::zero());
  if (frames.ok()) return std::optional(*std::move(frames));
  if (frames.status().code() == StatusCode::kDeadlineExceeded) return std::optional<Frames>();
  return frames.status();
}

void ShmClientSocket::Wait(TimePoint deadline) {
  if (spin_.Until([this] { return !channel_->empty(); })) return;
  const TimePoint now = SystemClock().Now();
  if (now >= deadline || !channel_->PrepareWait()) return;
  if (below_ != nullptr && now >= below_until_) below_ = nullptr;
  const Duration most = below_ != nullptr ? kSleepBoth : kSleep;
  channel_->Sleep(std::min<Duration>(deadline - now, most));
  channel_->EndWait();
  spin_.Slept(SystemClock().Now() - now);
  // A peer that is gone adds no messages.
  if (channel_->gone() && channel_->empty()) LeaveChannel();
}

Result<Frames> ShmClientSocket::Receive(Duration timeout) {
  const TimePoint deadline = SystemClock().Now() + timeout;
  do {
    DT_TRY(std::optional<Frames> frames, Poll());
    if (frames.has_value()) return *std::move(frames);
    if (channel_ == nullptr) return below_->Receive(deadline - SystemClock().Now());
    Wait(deadline);
  } while (SystemClock().Now() < deadline);
  DT_TRY(std::optional<Frames> frames, Poll());
  if (frames.has_value()) return *std::move(frames);
  return Timeout("no message within {} ms", timeout / milliseconds(1));
}

}  // namespace dt
