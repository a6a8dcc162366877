#include "common/net/zmq_backlog.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>

#include <fmt/format.h>
#include <linux/tcp.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/pause.h"

namespace dt {
namespace {

constexpr Duration kInterval = milliseconds(100);
constexpr size_t kDescriptorsMax = 65536;  // Connections with larger descriptors are not watched.

// Header of a ZMTP 3.1 frame (rfc.zeromq.org/spec:37): flags, and a length in one byte or eight.
constexpr size_t kShortHeader = 2, kLongHeader = 9, kShortBytesMax = 255;
// Overhead of CurveZMQ (rfc.zeromq.org/spec:26): the word MESSAGE, a nonce, a tag and flags.
constexpr size_t kCurveBytes = 8 + 8 + 16 + 1;
// To a peer without an allowed key, a server sends at most a greeting of 64 bytes, WELCOME of 170
// and ERROR of 12. A peer with a key gets READY, which is longer than ERROR.
constexpr uint64_t kAnsweredWithoutKey = 64 + 170 + 12;
constexpr uint64_t kHandshakeBytesMax = 64 << 10;

struct Traffic {
  uint64_t received = 0;      // Bytes that the kernel received, whether read or not.
  uint64_t acknowledged = 0;  // Bytes sent that the peer has received.
};

std::optional<Traffic> TrafficOf(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  if (size < offsetof(tcp_info, tcpi_bytes_received) + sizeof(uint64_t)) return std::nullopt;
  return Traffic{info.tcpi_bytes_received, info.tcpi_bytes_acked};
}

// Returns nothing if the descriptor is no longer a socket.
std::optional<uint64_t> CookieOf(int descriptor) {
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  if (getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

using AddressCall = int (*)(int, sockaddr*, socklen_t*);

sockaddr_storage AddressOf(int descriptor, AddressCall call) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  call(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
  return address;
}

// The port is at the same offset in IPv4 and IPv6 addresses.
uint16_t PortOf(const sockaddr_storage& address) {
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::string HostOf(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* host = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  if (address.ss_family == AF_INET6) {
    host = &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  }
  return inet_ntop(address.ss_family, host, text.data(), text.size()) == nullptr ? "?"
                                                                                 : text.data();
}

struct Event {
  uint16_t kind = 0;
  uint32_t value = 0;
  std::string address;
};

// An event has two parts: kind and value, then the address that was bound. Returns nothing if no
// event waits.
std::optional<Event> TakeEvent(zmq::socket_t& events) {
  zmq::message_t head, address;
  if (zmq_msg_recv(head.handle(), events.handle(), ZMQ_DONTWAIT) < 0) return std::nullopt;
  if (zmq_msg_recv(address.handle(), events.handle(), ZMQ_DONTWAIT) < 0) return std::nullopt;
  Event event;
  DT_CHECK(head.size() == sizeof(event.kind) + sizeof(event.value));
  std::memcpy(&event.kind, head.data(), sizeof(event.kind));
  std::memcpy(&event.value, head.data<char>() + sizeof(event.kind), sizeof(event.value));
  event.address = address.to_string();
  return event;
}

}  // namespace

BacklogGuard::BacklogGuard(zmq::context_t& context, uint64_t waiting_bytes_max, bool curve)
    : waiting_bytes_max_(waiting_bytes_max),
      curve_(curve),
      context_(context),
      taken_(kDescriptorsMax),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void BacklogGuard::Watch(zmq::socket_t& socket) {
  MutexLock lock(mutex_);
  const std::string channel = fmt::format("inproc://backlog-{}", channels_++);
  const int rc = zmq_socket_monitor(socket.handle(), channel.c_str(),
                                    ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_MONITOR_STOPPED);
  DT_CHECK_MSG(rc == 0, "cannot watch a socket: {}", zmq_strerror(zmq_errno()));
  zmq::socket_t events(context_, zmq::socket_type::pair);
  events.set(zmq::sockopt::rcvhwm, 0);  // The thread that accepts must never wait for this one.
  events.set(zmq::sockopt::linger, 0);
  events.connect(channel);
  listeners_.push_back(std::move(events));
}

void BacklogGuard::NoteTaken(int descriptor, size_t bytes) {
  if (descriptor < 0 || static_cast<size_t>(descriptor) >= taken_.size()) return;
  const size_t body = bytes + (curve_ ? kCurveBytes : 0);
  const size_t header = body <= kShortBytesMax ? kShortHeader : kLongHeader;
  taken_[static_cast<size_t>(descriptor)].fetch_add(header + body, std::memory_order_relaxed);
}

void BacklogGuard::Run(const std::stop_token& stop) {
  do {
    {
      MutexLock lock(mutex_);
      std::erase_if(listeners_, [this](zmq::socket_t& events) { return !TakeEvents(events); });
    }
    std::erase_if(connections_, [this](const Connection& c) { return !Check(c); });
  } while (Pause(kInterval, stop));
}

bool BacklogGuard::TakeEvents(zmq::socket_t& events) {
  while (const std::optional<Event> event = TakeEvent(events)) {
    if (event->kind == ZMQ_EVENT_MONITOR_STOPPED) return false;
    const std::string& address = event->address;
    const std::string port = address.substr(address.rfind(':') + 1);
    Add(static_cast<int>(event->value), static_cast<uint16_t>(std::atoi(port.c_str())));
  }
  return true;
}

// Events may be late: the descriptor may be closed or belong to another connection by now.
void BacklogGuard::Add(int descriptor, uint16_t port) {
  if (static_cast<size_t>(descriptor) >= taken_.size()) return;
  if (PortOf(AddressOf(descriptor, getsockname)) != port) return;
  const auto cookie = CookieOf(descriptor);
  const auto traffic = TrafficOf(descriptor);
  if (!cookie.has_value() || !traffic.has_value()) return;
  std::erase_if(connections_, [&](const Connection& c) { return c.descriptor == descriptor; });
  const uint64_t taken = taken_[static_cast<size_t>(descriptor)].load(std::memory_order_relaxed);
  connections_.push_back({descriptor, *cookie, traffic->received - taken});
}

bool BacklogGuard::Check(const Connection& connection) {
  const int descriptor = connection.descriptor;
  const auto traffic = TrafficOf(descriptor);
  if (!traffic.has_value() || CookieOf(descriptor) != connection.cookie) return false;
  if (curve_ && traffic->acknowledged <= kAnsweredWithoutKey &&
      traffic->received > kHandshakeBytesMax) {
    Close(descriptor, "it sends more than a handshake, and has shown no key", traffic->received);
    return false;
  }
  const uint64_t taken = taken_[static_cast<size_t>(descriptor)].load(std::memory_order_relaxed);
  const auto waiting = static_cast<int64_t>(traffic->received - connection.base - taken);
  if (waiting <= static_cast<int64_t>(waiting_bytes_max_)) return true;
  Close(descriptor, "what it sends cannot be taken", static_cast<uint64_t>(waiting));
  return false;
}

// After the shutdown, ZeroMQ sees that the connection ended, frees its messages and closes the
// descriptor.
void BacklogGuard::Close(int descriptor, std::string_view why, uint64_t bytes) {
  const std::string host = HostOf(AddressOf(descriptor, getpeername));
  shutdown(descriptor, SHUT_RDWR);
  if (!closed_.Count(SystemClock().Now())) return;
  LogWarn("net.closed",
          {{"address", host}, {"why", why}, {"bytes", bytes}, {"closed_so_far", closed_.so_far()}});
}

}  // namespace dt
