// The sockets of socket.h over ZeroMQ: DEALER for clients, ROUTER for servers.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <set>
#include <sys/eventfd.h>
#include <unistd.h>

#include <malloc.h>
#include <zmq.hpp>

#include "common/base/check.h"
#include "common/base/entropy.h"
#include "common/base/log.h"
#include "common/base/unseen_order.h"
#include "common/net/socket.h"
#include "common/net/zmq_backlog.h"
#include "common/net/zmq_endpoint.h"
#include "common/net/zmq_zap.h"

namespace dt {
namespace {

constexpr int kQueueMessagesMax = 10'000;  // Per peer and direction; above it, Busy.
constexpr int kLingerMs = 500;             // Time for the last replies of a socket that is closed.
// Smaller parts are copied, which is cheaper than sharing them. ZeroMQ adds about 40 bytes to each.
constexpr size_t kCopyBytesMax = 4032;
constexpr size_t kPartsMax = 16;  // Longer messages lose their payload; see TakeParts.

// ZeroMQ passes messages, and the memory of frames, from thread to thread.
constinit UnseenOrder passed_on;

// Memory that ZeroMQ allocated for a large part.
struct ReceivedPart {
  explicit ReceivedPart(zmq::message_t received) : part(std::move(received)) {}
  ReceivedPart(const ReceivedPart&) = delete;
  ReceivedPart& operator=(const ReceivedPart&) = delete;
  ~ReceivedPart() { passed_on.Release(); }  // Its sender may take the memory back.
  zmq::message_t part;
};

struct ZmqTotals {
  std::atomic<uint64_t> sent = 0, received = 0;
};

// Large frames are not copied: ZeroMQ keeps them until it has written them to the network.
zmq::message_t ToPart(Frame frame) {
  if (frame.size() <= kCopyBytesMax) return zmq::message_t(frame.bytes().data(), frame.size());
  const std::span<std::byte> bytes = frame.bytes();
  auto* const held =
      std::construct_at(static_cast<Frame*>(TakeBlock(sizeof(Frame))), std::move(frame));
  return {bytes.data(), bytes.size(),
          [](void*, void* hint) {
            passed_on.Acquire();
            std::destroy_at(static_cast<Frame*>(hint));
            ReturnBlock(hint, sizeof(Frame));
          },
          held};
}

// Copies small parts, because ZeroMQ stores them unaligned.
Frame ToFrame(zmq::message_t part) {
  const bool aligned = reinterpret_cast<uintptr_t>(part.data()) % 8 == 0;
  const std::span<std::byte> bytes(part.data<std::byte>(), part.size());
  if (!aligned || part.size() <= kCopyBytesMax) return Frame::CopyOf(bytes);
  return Frame::Of(bytes, MakePooled<ReceivedPart>(std::move(part)));
}

// Only the send of the first part may fail because the queue is full. The parts after it are then
// accepted, too.
Status SendParts(zmq::socket_t& socket, Frames message) {
  for (size_t i = 0; i < message.size(); ++i) {
    const bool last = i + 1 == message.size();
    const auto flags =
        zmq::send_flags::dontwait | (last ? zmq::send_flags::none : zmq::send_flags::sndmore);
    zmq::message_t part = ToPart(std::move(message[i]));
    passed_on.Release();
    try {
      if (!socket.send(std::move(part), flags)) {
        return Busy("{} messages wait to be sent to the peer", kQueueMessagesMax);
      }
    } catch (const zmq::error_t& error) {
      if (error.num() == EHOSTUNREACH) return OkStatus();  // The peer is disconnected.
      return Unavailable("cannot send a message: {}", error.what());
    }
  }
  return OkStatus();
}

// Returns no frames if no message waits. `guard` may be null.
Result<Frames> TakeParts(zmq::socket_t& socket, BacklogGuard* guard) {
  Frames frames;
  bool more = true;
  for (size_t count = 0; more; ++count) {
    zmq::message_t part;
    if (!socket.recv(part, zmq::recv_flags::dontwait)) return Frames{};
    passed_on.Acquire();
    more = part.more();
    // The first part is the peer's number, which ZeroMQ adds.
    if (guard != nullptr && count > 0) {
      guard->NoteTaken(zmq_msg_get(part.handle(), ZMQ_SRCFD), part.size());
    }
    if (count < kPartsMax) frames.push_back(ToFrame(std::move(part)));
    if (count == kPartsMax) frames.resize(1);  // Too long: readers find no payload and refuse it.
  }
  return frames;
}

// Waits for a message or for a byte in `wake` (-1: none). Returns false if the time is over.
bool WaitReadable(zmq::socket_t& socket, int wake, TimePoint deadline) {
  const Duration left = deadline - SystemClock().Now();
  if (left <= Duration::zero()) return false;
  zmq_pollitem_t items[] = {{socket.handle(), 0, ZMQ_POLLIN, 0}, {nullptr, wake, ZMQ_POLLIN, 0}};
  const auto ms = std::chrono::ceil<milliseconds>(std::min<Duration>(left, seconds(3600)));
  // An interruption counts as a wake-up without a message.
  zmq_poll(items, wake < 0 ? 1 : 2, ms.count());
  return true;
}

class ZmqClientSocket : public ClientSocket {
 public:
  ZmqClientSocket(zmq::socket_t socket, ZmqTotals& totals)
      : socket_(std::move(socket)), totals_(totals) {}

  Status Send(Frames message) override {
    const size_t bytes = BytesIn(message);
    DT_TRY_STATUS(SendParts(socket_, std::move(message)));
    totals_.sent.fetch_add(bytes, std::memory_order_relaxed);
    return OkStatus();
  }

  Result<Frames> Receive(Duration timeout) override {
    const TimePoint deadline = SystemClock().Now() + timeout;
    do {
      DT_TRY(Frames frames, TakeParts(socket_, nullptr));
      if (frames.empty()) continue;
      totals_.received.fetch_add(BytesIn(frames), std::memory_order_relaxed);
      return frames;
    } while (WaitReadable(socket_, -1, deadline));
    return Timeout("no message within {} ms", timeout / milliseconds(1));
  }

 private:
  zmq::socket_t socket_;
  ZmqTotals& totals_;
};

class ZmqServerSocket : public ServerSocket {
 public:
  ZmqServerSocket(zmq::socket_t socket, ZmqTotals& totals, BacklogGuard* guard)
      : socket_(std::move(socket)),
        totals_(totals),
        guard_(guard),
        endpoint_(socket_.get(zmq::sockopt::last_endpoint)),
        wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    DT_CHECK(wake_ >= 0);
  }
  ~ZmqServerSocket() override { close(wake_); }

  Status Send(const PeerId& peer, Frames message) override {
    const size_t bytes = BytesIn(message);
    message.insert(message.begin(), Frame::CopyOf(std::as_bytes(std::span(peer))));
    const Status status = SendParts(socket_, std::move(message));
    if (status.code() == StatusCode::kResourceExhausted)
      return OkStatus();  // Dropped, as a network would do.
    DT_TRY_STATUS(status);
    own_.sent.fetch_add(bytes, std::memory_order_relaxed);
    totals_.sent.fetch_add(bytes, std::memory_order_relaxed);
    return OkStatus();
  }

  Result<PeerMessage> Receive(Duration timeout) override {
    const TimePoint deadline = SystemClock().Now() + timeout;
    do {
      if (TakeWake()) return Cancelled("woken");
      DT_TRY(Frames frames, TakeParts(socket_, guard_));
      if (frames.empty()) continue;
      PeerMessage message;
      const auto peer = frames.front().as<char>();
      message.peer.assign(peer.begin(), peer.end());
      frames.erase(frames.begin());
      message.frames = std::move(frames);
      own_.received.fetch_add(BytesIn(message.frames), std::memory_order_relaxed);
      totals_.received.fetch_add(BytesIn(message.frames), std::memory_order_relaxed);
      return message;
    } while (WaitReadable(socket_, wake_, deadline));
    if (TakeWake()) return Cancelled("woken");
    return Timeout("no message within {} ms", timeout / milliseconds(1));
  }

  const std::string& endpoint() const override { return endpoint_; }

  void Wake() override {
    woken_.store(true, std::memory_order_release);
    const uint64_t one = 1;
    static_cast<void>(!write(wake_, &one, sizeof(one)));  // If it is full, it is readable already.
  }

  int descriptor() const override { return socket_.get(zmq::sockopt::fd); }
  uint64_t bytes_sent() const override { return own_.sent.load(std::memory_order_relaxed); }
  uint64_t bytes_received() const override { return own_.received.load(std::memory_order_relaxed); }

 private:
  // Testing the flag first saves a system call per message; the descriptor only ends a wait.
  bool TakeWake() {
    if (!woken_.exchange(false, std::memory_order_acquire)) return false;
    uint64_t count = 0;
    static_cast<void>(!read(wake_, &count, sizeof(count)));
    return true;
  }

  // Used by the socket's thread.
  zmq::socket_t socket_;
  ZmqTotals& totals_;
  BacklogGuard* const guard_;  // Null: not guarded.
  ZmqTotals own_;
  const std::string endpoint_;
  // Used by any thread.
  const int wake_;
  std::atomic<bool> woken_ = false;
};

void SetOptions(zmq::socket_t& socket, const EndpointParts& parts) {
  socket.set(zmq::sockopt::sndhwm, kQueueMessagesMax);
  socket.set(zmq::sockopt::rcvhwm, kQueueMessagesMax);
  socket.set(zmq::sockopt::linger, kLingerMs);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<int64_t>(kPartBytesMax));
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, 10);
  socket.set(zmq::sockopt::tcp_keepalive_intvl, 5);
  socket.set(zmq::sockopt::tcp_keepalive_cnt, 3);
  socket.set(zmq::sockopt::handshake_ivl, 10'000);
  socket.set(zmq::sockopt::reconnect_ivl, 10);
  socket.set(zmq::sockopt::reconnect_ivl_max, 1000);
  socket.set(zmq::sockopt::ipv6, parts.host.find(':') != std::string::npos);
}

// Whether other processes can reach the endpoint.
bool IsOutside(const EndpointParts& parts) { return parts.scheme != "inproc"; }

Status BindProblem(const std::string& endpoint, int error) {
  switch (error) {
    case EADDRINUSE:
      return WithHint(
          Unavailable("cannot listen on {}: the address is in use", endpoint),
          "end the program that uses it, or choose another port (0 takes any free one)");
    case EADDRNOTAVAIL:
    case ENODEV:
      return WithHint(
          Unavailable("cannot listen on {}: this machine has no such address", endpoint),
          "choose an address of this machine");
    case EACCES:
      return WithHint(Unavailable("cannot listen on {}: permission denied", endpoint),
                      "choose a port above 1023");
    default:
      return Unavailable("cannot listen on {}: {}", endpoint, zmq_strerror(error));
  }
}

// ZeroMQ numbers the peers of a socket from rand() and never seeds it. A hostile peer that took the
// next number as its own name could end the process, so the numbers must not be predictable.
void SeedPeerNumbers() {
  static const bool seeded = [] {
    srand(static_cast<unsigned>(EntropyBits()));
    return true;
  }();
  static_cast<void>(seeded);
}

class ZmqNetwork : public Network {
 public:
  explicit ZmqNetwork(const ZmqOptions& options)
      : options_(options), context_(static_cast<int>(options.io_threads)) {
    context_.set(zmq::ctxopt::max_sockets, 4096);
    if (!listens()) return;
    std::set<std::string> allowed(options.curve->allowed.begin(), options.curve->allowed.end());
    allowed.insert(options.curve->job.public_key);
    zap_.emplace(context_, std::move(allowed));
  }
  // Ends the thread of the ZAP handler; zap_'s destructor then joins it.
  ~ZmqNetwork() override { context_.shutdown(); }

  Result<std::unique_ptr<ServerSocket>> Bind(const std::string& endpoint) override {
    DT_TRY(const EndpointParts parts, ParseEndpoint(endpoint));
    if (IsOutside(parts) && !listens() && !options_.insecure) {
      return WithHint(
          Invalid("cannot listen on {}: this process has no secret key of the job", endpoint),
          "name the job's key with security.curve.key");
    }
    try {
      zmq::socket_t socket(context_, zmq::socket_type::router);
      SetOptions(socket, parts);
      if (IsOutside(parts) && listens()) {
        socket.set(zmq::sockopt::curve_server, true);
        socket.set(zmq::sockopt::curve_secretkey, options_.curve->job.secret_key);
        socket.set(zmq::sockopt::zap_domain, kZapDomain);
      }
      BacklogGuard* const guard = parts.scheme == "tcp" ? &Guard() : nullptr;
      if (guard != nullptr) guard->Watch(socket);
      socket.bind(EndpointText(parts));
      return std::make_unique<ZmqServerSocket>(std::move(socket), totals_, guard);
    } catch (const zmq::error_t& error) {
      return BindProblem(endpoint, error.num());
    }
  }

  Result<std::unique_ptr<ClientSocket>> Connect(const std::string& endpoint) override {
    DT_TRY(const EndpointParts parts, ParseEndpoint(endpoint));
    if (parts.scheme == "tcp" && parts.port == "0") {
      return Invalid("cannot connect to {}: port 0 is none", endpoint);
    }
    DT_TRY_STATUS(CheckHost(parts, endpoint));
    if (IsOutside(parts) && !options_.curve.has_value() && !options_.insecure) {
      return WithHint(Invalid("cannot connect to {}: this process has no key", endpoint),
                      "name the job's key with security.curve.key");
    }
    try {
      zmq::socket_t socket(context_, zmq::socket_type::dealer);
      SetOptions(socket, parts);
      if (IsOutside(parts) && options_.curve.has_value()) {
        socket.set(zmq::sockopt::curve_serverkey, options_.curve->job.public_key);
        socket.set(zmq::sockopt::curve_publickey, options_.curve->own.public_key);
        socket.set(zmq::sockopt::curve_secretkey, options_.curve->own.secret_key);
      }
      socket.connect(EndpointText(parts));
      return std::make_unique<ZmqClientSocket>(std::move(socket), totals_);
    } catch (const zmq::error_t& error) {
      return Unavailable("cannot connect to {}: {}", endpoint, error.what());
    }
  }

  uint64_t bytes_sent() const override { return totals_.sent.load(std::memory_order_relaxed); }
  uint64_t bytes_received() const override {
    return totals_.received.load(std::memory_order_relaxed);
  }

 private:
  // Whether others may connect with keys.
  bool listens() const {
    return options_.curve.has_value() && !options_.curve->job.secret_key.empty();
  }

  BacklogGuard& Guard() {
    std::call_once(guarded_,
                   [this] { guard_.emplace(context_, options_.waiting_bytes_max, listens()); });
    return *guard_;
  }

  const ZmqOptions options_;
  ZmqTotals totals_;
  zmq::context_t context_;
  std::optional<ZapHandler> zap_;
  std::once_flag guarded_;
  std::optional<BacklogGuard> guard_;  // Made at the first Bind to TCP.
};

}  // namespace

std::unique_ptr<Network> MakeZmqNetwork(const ZmqOptions& options) {
  // ZeroMQ allocates memory for what it receives. If each free gave the pages back to the kernel,
  // every message would have to fault them in again.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  SeedPeerNumbers();
  return std::make_unique<ZmqNetwork>(options);
}

}  // namespace dt
