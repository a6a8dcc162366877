#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/rare_event.h"
#include "common/net/shm/shm_rendezvous.h"
#include "common/net/shm/shm_socket.h"

namespace dt {
namespace {

constexpr size_t kConnectionsMax = 256;  // Further peers use TCP.
constexpr size_t kSilentMax = 32;        // Limit for connections that have not greeted yet.
constexpr size_t kAcceptedAtOnce = 16;   // Limit for each look at the descriptors.
constexpr Duration kClientGreetingTimeout = seconds(10);  // Time for a client's greeting.
constexpr Duration kAcceptAgain = milliseconds(100);      // Pause when no descriptor is free.
constexpr size_t kBelowEvery = 16;  // The network below is polled once in so many messages.
constexpr size_t kLookEvery = 64;   // All descriptors are polled once in so many messages.
constexpr char kFromBelow = 'b', kFromShm = 's';  // First letters of the ids of peers.

struct Connection {
  PeerId id;
  OwnedFd greeting;  // The socket, until the client has greeted.
  TimePoint greet_until{};
  std::unique_ptr<ShmChannel> channel;  // Set once the client has greeted.
  bool over = false;                    // The connection is to be closed.

  int descriptor() const { return channel != nullptr ? channel->descriptor() : greeting.get(); }
};

// Events of one kind; RareEvent limits how many are logged.
struct Troubles {
  std::string_view event;
  RareEvent count{};

  void Count(const Status& why) {
    if (!count.Count(SystemClock().Now())) return;
    LogWarn(event, {{"problem", MessageOf(why)}, {"so_far", count.so_far()}});
  }
};

// Opens the client's segment and arena, and sends it our arena.
Result<std::unique_ptr<ShmChannel>> Accept(OwnedFd socket, ShmHello hello, ShmShared& shared) {
  if (hello.fds.size() != 2) return Malformed("a greeting with {} descriptors", hello.fds.size());
  auto link = std::make_shared<ShmLink>();
  using Access = SharedMemory::Access;
  DT_TRY(link->segment,
         SharedMemory::Open(std::move(hello.fds[0]), sizeof(ShmSegment), Access::kReadWrite));
  DT_TRY(link->peer_arena, SharedMemory::Open(std::move(hello.fds[1]), kArenaBytes, Access::kRead));
  DT_TRY(const OwnedFd arena, shared.lender.arena->ReadOnlyFd());
  const std::array fds = {arena.get()};
  // The client may be gone already, but may have left a message.
  SendShmHello(socket.get(), fds).IgnoreError();
  link->lent = shared.lender.arena->LentTo(ProcessOf(socket));
  link->lent_max = shared.lent_max;
  link->socket = std::move(socket);
  return std::make_unique<ShmChannel>(ShmSide::kServer, std::move(link), shared.lender);
}

class ShmServerSocket : public ServerSocket {
 public:
  ShmServerSocket(std::unique_ptr<ServerSocket> below, OwnedFd listener, ShmShared& shared)
      : below_(std::move(below)),
        listener_(std::move(listener)),
        wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        shared_(shared) {
    DT_CHECK(wake_.valid());
  }

  Status Send(const PeerId& peer, Frames message) override;
  Result<PeerMessage> Receive(Duration timeout) override;

  const std::string& endpoint() const override { return below_->endpoint(); }
  void Wake() override {
    woken_.store(true, std::memory_order_release);
    const uint64_t one = 1;
    // If it is full, it is readable already.
    static_cast<void>(!write(wake_.get(), &one, sizeof(one)));
  }
  int descriptor() const override { return -1; }
  uint64_t bytes_sent() const override {
    return own_.sent.load(std::memory_order_relaxed) + below_->bytes_sent();
  }
  uint64_t bytes_received() const override {
    return own_.received.load(std::memory_order_relaxed) + below_->bytes_received();
  }

 private:
  bool TakeWake();
  Result<std::optional<PeerMessage>> Poll();
  std::optional<PeerMessage> PollRings();
  Result<std::optional<PeerMessage>> PollBelow();
  bool AnyInRings() const;
  void WaitForAny(Duration time);
  bool PrepareWaits();
  void LookAround(Duration time);
  void AcceptSome(TimePoint now);
  void AddConnection(OwnedFd socket, TimePoint now);
  void Greet(Connection& connection, TimePoint now);
  void Drop(Connection& connection, const Status& why);

  // Used by the socket's thread.
  const std::unique_ptr<ServerSocket> below_;
  const OwnedFd listener_;
  const OwnedFd wake_;
  ShmShared& shared_;
  ShmTotals own_;
  std::vector<Connection> connections_;
  std::vector<pollfd> items_;
  size_t next_ = 0;           // The connection that is read next.
  size_t since_below_ = 0;    // Messages from rings since the last look below.
  size_t since_look_ = 0;     // Messages since the last look at all descriptors.
  uint64_t last_number_ = 0;  // The number of the last connection.
  TimePoint accept_again_{};
  Troubles refused_{"net.shared_memory_refused"};  // Refused connections.
  Troubles lost_{"net.shared_memory_lost"};        // Lost messages.
  ShmSpin spin_;
  // Used by any thread.
  std::atomic<bool> woken_ = false;
};

// ------------------------------------------------------------ sending

Status ShmServerSocket::Send(const PeerId& peer, Frames message) {
  if (peer.empty() || peer[0] != kFromShm) {
    return below_->Send(peer.empty() ? peer : peer.substr(1), std::move(message));
  }
  const auto at = std::ranges::find(connections_, peer, &Connection::id);
  if (at == connections_.end() || at->channel == nullptr) return OkStatus();
  const size_t bytes = BytesIn(message);
  const Status sent = at->channel->Send(message);
  if (sent.code() == StatusCode::kResourceExhausted) {  // Dropped, as a network would do.
    lost_.Count(sent);
    return OkStatus();
  }
  if (!sent.ok()) {
    Drop(*at, sent);
    return OkStatus();
  }
  own_.sent.fetch_add(bytes, std::memory_order_relaxed);
  shared_.totals.sent.fetch_add(bytes, std::memory_order_relaxed);
  return OkStatus();
}

// ------------------------------------------------------------ receiving

bool ShmServerSocket::TakeWake() {
  if (!woken_.exchange(false, std::memory_order_acquire)) return false;
  uint64_t count = 0;
  static_cast<void>(!read(wake_.get(), &count, sizeof(count)));
  return true;
}

// A peer that breaks the protocol loses its connection; the server goes on.
void ShmServerSocket::Drop(Connection& connection, const Status& why) {
  connection.over = true;
  refused_.Count(why);
}

std::optional<PeerMessage> ShmServerSocket::PollRings() {
  for (size_t i = 0; i < connections_.size(); ++i) {
    Connection& connection = connections_[next_++ % connections_.size()];
    if (connection.channel == nullptr || connection.over) continue;
    Result<std::optional<Frames>> frames = connection.channel->Receive();
    if (!frames.ok()) {
      Drop(connection, frames.status());
      continue;
    }
    if (!frames->has_value()) continue;
    const size_t bytes = BytesIn(**frames);
    own_.received.fetch_add(bytes, std::memory_order_relaxed);
    shared_.totals.received.fetch_add(bytes, std::memory_order_relaxed);
    return PeerMessage{connection.id, **std::move(frames)};
  }
  return {};
}

Result<std::optional<PeerMessage>> ShmServerSocket::PollBelow() {
  since_below_ = 0;
  Result<PeerMessage> message = below_->Receive(Duration::zero());
  if (message.ok()) {
    message->peer.insert(message->peer.begin(), kFromBelow);
    return std::optional(*std::move(message));
  }
  if (message.status().code() == StatusCode::kDeadlineExceeded) {
    return std::optional<PeerMessage>();
  }
  return message.status();
}

// Returns a message that has already arrived. An empty poll of the network below must come before
// sleeping, because only then does its descriptor report the next message.
Result<std::optional<PeerMessage>> ShmServerSocket::Poll() {
  if (since_below_++ < kBelowEvery) {
    if (auto message = PollRings(); message.has_value()) return message;
  }
  DT_TRY(auto message, PollBelow());
  return message.has_value() ? std::move(message) : PollRings();
}

bool ShmServerSocket::AnyInRings() const {
  return std::ranges::any_of(connections_, [](const Connection& c) {
    return c.channel != nullptr && !c.over && !c.channel->empty();
  });
}

Result<PeerMessage> ShmServerSocket::Receive(Duration timeout) {
  const TimePoint deadline = SystemClock().Now() + timeout;
  for (bool late = false;;) {
    if (TakeWake()) return Cancelled("woken");
    if (since_look_++ >= kLookEvery) LookAround(Duration::zero());
    DT_TRY(std::optional<PeerMessage> message, Poll());
    if (message.has_value()) return *std::move(message);
    if (late) return Timeout("no message within {} ms", timeout / milliseconds(1));
    const Duration left = deadline - SystemClock().Now();
    late = left <= Duration::zero();
    WaitForAny(std::max(left, Duration::zero()));
  }
}

// ------------------------------------------------------------ waiting

void ShmServerSocket::WaitForAny(Duration time) {
  const auto ready = [this] { return AnyInRings() || woken_.load(std::memory_order_relaxed); };
  const bool spin = time > Duration::zero() && !connections_.empty();
  if (spin && spin_.Until(ready)) return;
  const TimePoint begin = SystemClock().Now();
  LookAround(PrepareWaits() ? std::min<Duration>(time, seconds(1)) : Duration::zero());
  spin_.Slept(SystemClock().Now() - begin);
  for (const Connection& c : connections_) {
    if (c.channel != nullptr) c.channel->EndWait();
  }
}

// Returns false if a message already waits.
bool ShmServerSocket::PrepareWaits() {
  for (const Connection& c : connections_) {
    if (c.channel != nullptr && !c.over && !c.channel->PrepareWait()) return false;
  }
  return true;
}

// Waits on all descriptors, accepts new connections and removes ended ones. Their last messages are
// still read.
void ShmServerSocket::LookAround(Duration time) {
  since_look_ = 0;
  // While no descriptor is free, the listener would be ready all the time, so it is not polled.
  const bool paused = SystemClock().Now() < accept_again_;
  const int listener = paused ? -1 : listener_.get();
  if (paused) time = std::min<Duration>(time, kAcceptAgain);
  items_.assign(
      {{wake_.get(), POLLIN, 0}, {below_->descriptor(), POLLIN, 0}, {listener, POLLIN, 0}});
  for (const Connection& c : connections_) items_.push_back({c.descriptor(), POLLIN, 0});
  const auto whole = std::chrono::duration_cast<seconds>(time);
  const timespec timeout{.tv_sec = whole.count(), .tv_nsec = (time - whole).count()};
  ppoll(items_.data(), items_.size(), &timeout, nullptr);
  const TimePoint now = SystemClock().Now();
  for (size_t i = 0; i < connections_.size(); ++i) {
    Connection& c = connections_[i];
    const short events = items_[i + 3].revents;
    if (c.channel == nullptr) {
      Greet(c, now);
      continue;
    }
    if ((events & POLLIN) != 0) c.channel->TakeDoorbell();
    const bool gone = (events & (POLLHUP | POLLERR)) != 0;
    const bool left = gone || (c.channel->closed() && c.channel->ReclaimAll());
    c.over = c.over || (left && c.channel->empty());
  }
  std::erase_if(connections_, [](const Connection& c) { return c.over; });
  if ((items_[2].revents & POLLIN) != 0) AcceptSome(now);
}

// A client that connects and does not greet cannot block others: if there are too many, the oldest
// is removed.
void ShmServerSocket::AcceptSome(TimePoint now) {
  for (size_t i = 0; i < kAcceptedAtOnce; ++i) {
    Result<OwnedFd> socket = AcceptShm(listener_);
    if (!socket.ok()) {
      accept_again_ = now + kAcceptAgain;
      return refused_.Count(socket.status());
    }
    if (!socket->valid()) return;
    AddConnection(*std::move(socket), now);
  }
}

void ShmServerSocket::AddConnection(OwnedFd socket, TimePoint now) {
  const auto silent = [](const Connection& c) { return c.channel == nullptr && !c.over; };
  if (static_cast<size_t>(std::ranges::count_if(connections_, silent)) >= kSilentMax) {
    connections_.erase(std::ranges::find_if(connections_, silent));
    refused_.Count(Timeout("a connection without a greeting made room for others"));
  }
  if (connections_.size() >= kConnectionsMax) {
    return refused_.Count(Busy("there are {} connections already", connections_.size()));
  }
  Connection connection;
  connection.id = fmt::format("{}{}", kFromShm, ++last_number_);
  connection.greeting = std::move(socket);
  connection.greet_until = now + kClientGreetingTimeout;
  Greet(connection, now);
  connections_.push_back(std::move(connection));
}

void ShmServerSocket::Greet(Connection& connection, TimePoint now) {
  Result<std::optional<ShmHello>> hello = TakeShmHello(connection.greeting.get());
  if (hello.ok() && !hello->has_value()) {
    connection.over = now >= connection.greet_until;
    return;
  }
  if (!hello.ok()) return Drop(connection, hello.status());
  auto channel = Accept(std::move(connection.greeting), **std::move(hello), shared_);
  if (!channel.ok()) return Drop(connection, channel.status());
  connection.channel = *std::move(channel);
}

}  // namespace

std::unique_ptr<ServerSocket> MakeShmServerSocket(std::unique_ptr<ServerSocket> below,
                                                  OwnedFd listener, ShmShared& shared) {
  return std::make_unique<ShmServerSocket>(std::move(below), std::move(listener), shared);
}

}  // namespace dt
