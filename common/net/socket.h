// Message sockets. In production they are ZeroMQ's (zmq_socket.cc, the only user of cppzmq); tests
// use an in-memory network (memory_network.h) that ThreadSanitizer can check. A socket may be used
// by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/net/frame.h"
#include "common/net/frame_pool.h"
#include "common/net/zmq_keys.h"

namespace dt {

// Limit for one part of a message. A peer that sends a larger part is disconnected.
inline constexpr uint64_t kPartBytesMax = 1 << 30;

// A client's connection to one peer (ZeroMQ DEALER). It connects and reconnects by itself.
class ClientSocket {
 public:
  virtual ~ClientSocket() = default;
  // Queues the message. Busy: the queue to the peer is full.
  virtual Status Send(Frames message) = 0;
  // Timeout: nothing arrived in time. With timeout 0, Receive polls.
  virtual Result<Frames> Receive(Duration timeout) = 0;
};

// Identifies the sender of a message, for the reply; opaque.
using PeerId = std::string;
struct PeerMessage {
  PeerId peer;
  Frames frames;
};

// A server's socket, bound to an endpoint, with many peers (ZeroMQ ROUTER).
class ServerSocket {
 public:
  virtual ~ServerSocket() = default;
  // A message to a disconnected peer is dropped silently, as a network would do.
  virtual Status Send(const PeerId& peer, Frames message) = 0;
  virtual Result<PeerMessage> Receive(Duration timeout) = 0;
  // The endpoint that peers connect to; if ":0" was asked for, it has the real port.
  virtual const std::string& endpoint() const = 0;
  // Wakes a Receive from any thread; that Receive returns Cancelled.
  virtual void Wake() = 0;
  // A descriptor that becomes readable when Receive(0) may succeed; -1 if there is none. It is
  // edge-triggered: call Receive until nothing is left.
  virtual int descriptor() const = 0;
  virtual uint64_t bytes_sent() const = 0;
  virtual uint64_t bytes_received() const = 0;
};

// Makes sockets and outlives them. Any thread.
class Network {
 public:
  virtual ~Network() = default;
  // `endpoint` is "tcp://127.0.0.1:0" or "inproc://name", for example. Errors name the address:
  // port in use, no key to listen with, unknown host.
  virtual Result<std::unique_ptr<ServerSocket>> Bind(const std::string& endpoint) = 0;
  virtual Result<std::unique_ptr<ClientSocket>> Connect(const std::string& endpoint) = 0;
  // The sum over all sockets of the network so far.
  virtual uint64_t bytes_sent() const = 0;
  virtual uint64_t bytes_received() const = 0;
  // The pool for frames that this network can send without copying.
  virtual FramePool& frames() { return FramePool::Private(); }
};

// CURVE keys of a process. All listening sockets of a job use the job's key pair. A connecting
// socket must know the job's public key, and needs a pair that the listener allows.
struct CurveOptions {
  KeyPair job;                       // Includes the secret key if this process listens.
  KeyPair own;                       // The pair that this process connects with.
  std::vector<std::string> allowed;  // Public keys that may connect, besides the job's.
};

struct ZmqOptions {
  uint32_t io_threads = 1;
  // Without keys, only inproc endpoints work, unless `insecure` is set.
  std::optional<CurveOptions> curve;
  bool insecure = false;  // No encryption; anyone may connect.
  // Limit for the bytes from one peer that wait in a socket that listens on TCP. A peer that
  // exceeds it is disconnected.
  uint64_t waiting_bytes_max = 4ull << 30;
};
// Unless `insecure` is set, all traffic between processes is encrypted and authenticated.
std::unique_ptr<Network> MakeZmqNetwork(const ZmqOptions& options);

}  // namespace dt
