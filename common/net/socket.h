// Message sockets. The real ones are ZeroMQ's (zmq_socket.cc, the only user of cppzmq); tests run
// on an in-memory network (memory_network.h) that is instrumented for ThreadSanitizer. A socket
// belongs to one thread at a time: the one that uses it.
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

// Of one part of a message; a peer that sends a larger one is disconnected.
inline constexpr uint64_t kPartBytesMax = 1 << 30;

// One side of a connection to one peer (ZeroMQ DEALER). Connects, and reconnects, by itself.
class ClientSocket {
 public:
  virtual ~ClientSocket() = default;
  // Queues the message. Busy when the queue to the peer is full.
  virtual Status Send(Frames message) = 0;
  // Timeout when nothing arrives in time; timeout 0 polls.
  virtual Result<Frames> Receive(Duration timeout) = 0;
};

// Identifies the sender of a message for the answer; opaque.
using PeerId = std::string;
struct PeerMessage {
  PeerId peer;
  Frames frames;
};

// Bound to an endpoint; many peers (ZeroMQ ROUTER).
class ServerSocket {
 public:
  virtual ~ServerSocket() = default;
  // To a peer that has gone: dropped silently, as a network would.
  virtual Status Send(const PeerId& peer, Frames message) = 0;
  virtual Result<PeerMessage> Receive(Duration timeout) = 0;
  // What peers connect to: the port is filled in where ":0" was asked.
  virtual const std::string& endpoint() const = 0;
  // Wakes a Receive from any thread; it returns Cancelled once.
  virtual void Wake() = 0;
  // A descriptor that becomes readable when Receive(0) may succeed (edge-triggered: drain); -1 if
  // none.
  virtual int descriptor() const = 0;
  virtual uint64_t bytes_sent() const = 0;
  virtual uint64_t bytes_received() const = 0;
};

// Makes sockets. Any thread. Outlives them.
class Network {
 public:
  virtual ~Network() = default;
  // "tcp://127.0.0.1:0", "inproc://name". Errors name the address: port in use, no key to listen
  // with, unknown host.
  virtual Result<std::unique_ptr<ServerSocket>> Bind(const std::string& endpoint) = 0;
  virtual Result<std::unique_ptr<ClientSocket>> Connect(const std::string& endpoint) = 0;
  virtual uint64_t bytes_sent() const = 0;  // Sum over all its sockets so far.
  virtual uint64_t bytes_received() const = 0;
  // Makes frames that this network can send without copying them.
  virtual FramePool& frames() { return FramePool::Private(); }
};

// CURVE keys of a process. Listening sockets, in every process of a job, use the job's pair. A
// connecting socket must know the job's public key, and have a pair that the listener allows.
struct CurveOptions {
  KeyPair job;                       // Has its secret if this process listens.
  KeyPair own;                       // The pair that this process connects with.
  std::vector<std::string> allowed;  // Public keys that may connect besides the job's.
};

struct ZmqOptions {
  uint32_t io_threads = 1;
  std::optional<CurveOptions> curve;  // If absent, only inproc works unless insecure.
  bool insecure = false;              // No encryption; anyone may connect.
  // Bytes from one peer that may wait in a socket that listens on TCP; with more, the peer is
  // disconnected.
  uint64_t waiting_bytes_max = 4ull << 30;
};
// Unless `insecure`, all traffic between processes is encrypted and authenticated.
std::unique_ptr<Network> MakeZmqNetwork(const ZmqOptions& options);

}  // namespace dt
