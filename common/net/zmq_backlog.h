// Closes connections whose unread messages take too much memory. ZeroMQ 4.3.4 limits the number of
// whole messages that wait on a connection, but not their bytes, nor the parts of a message whose
// last part never arrives. Therefore this class computes the waiting bytes itself: those that the
// kernel received on a connection, minus those of the messages that were taken from it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <thread>
#include <vector>

#include <zmq.hpp>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/net/rare_event.h"

namespace dt {

// Guards the connections of all sockets of one ZeroMQ context that listen on TCP. Any thread. A
// thread of its own checks them ten times a second; the bytes that arrive between two checks are
// not limited.
class BacklogGuard {
 public:
  // `curve`: peers must prove a key, and may send only a handshake before they have.
  BacklogGuard(zmq::context_t& context, uint64_t waiting_bytes_max, bool curve);

  // Guards the socket's connections until it is closed. REQUIRES: it is not bound yet.
  void Watch(zmq::socket_t& socket);
  // Notes that a part of `bytes` was taken from the connection with this descriptor.
  void NoteTaken(int descriptor, size_t bytes);

 private:
  struct Connection {
    int descriptor = -1;
    // Identifies the connection in the kernel, because descriptors are reused.
    uint64_t cookie = 0;
    uint64_t base = 0;  // Bytes received minus bytes taken when first seen; wraps around.
  };

  void Run(const std::stop_token& stop);
  // Returns false if the listening socket was closed.
  bool TakeEvents(zmq::socket_t& events);
  void Add(int descriptor, uint16_t port);
  // Returns false if the connection has ended or was closed.
  bool Check(const Connection& connection);
  void Close(int descriptor, std::string_view why, uint64_t bytes);

  const uint64_t waiting_bytes_max_;
  const bool curve_;
  zmq::context_t& context_;
  // By descriptor: bytes on the wire of all parts that were taken from it.
  std::vector<std::atomic<uint64_t>> taken_;

  Mutex mutex_;
  // For each listener, the socket on which ZeroMQ reports new connections.
  std::vector<zmq::socket_t> listeners_ DT_GUARDED_BY(mutex_);
  uint64_t channels_ DT_GUARDED_BY(mutex_) = 0;  // Number of monitor channels made so far.
  // Only thread_ uses these.
  std::vector<Connection> connections_;
  RareEvent closed_;
  std::jthread thread_;  // Must be last: it uses the other members.
};

}  // namespace dt
