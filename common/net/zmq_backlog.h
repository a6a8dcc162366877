// Closes connections that send what nobody can take. ZeroMQ 4.3.4 bounds how many whole messages of
// a connection wait, but not their bytes, nor the parts of a message whose last part never comes.
// So they are counted from outside: the bytes that the kernel received on a connection, less those
// of the messages that were taken from it, wait in ZeroMQ.
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

// The connections of all sockets of one ZeroMQ context that listen on TCP. Any thread. Has a thread
// of its own, which looks ten times a second: what comes in that time is not bounded.
class BacklogGuard {
 public:
  // `curve`: peers must show a key, and may send little before they have.
  BacklogGuard(zmq::context_t& context, uint64_t waiting_bytes_max, bool curve);

  // Until the socket is closed. REQUIRES: it is not bound yet.
  void Watch(zmq::socket_t& socket);
  // A part of `bytes` was taken from the connection with this descriptor.
  void NoteTaken(int descriptor, size_t bytes);

 private:
  struct Connection {
    int descriptor = -1;
    uint64_t cookie = 0;  // The kernel's name for the connection; descriptors are used again.
    uint64_t base = 0;    // Received less taken when it was first seen; wraps around.
  };

  void Run(const std::stop_token& stop);
  // False: the listening socket was closed.
  bool TakeEvents(zmq::socket_t& events);
  void Add(int descriptor, uint16_t port);
  // False: the connection has ended.
  bool Check(const Connection& connection);
  void Close(int descriptor, std::string_view why, uint64_t bytes);

  const uint64_t waiting_bytes_max_;
  const bool curve_;
  zmq::context_t& context_;
  // By descriptor: bytes on the wire of all that was taken.
  std::vector<std::atomic<uint64_t>> taken_;

  Mutex mutex_;
  // Where ZeroMQ tells of each listener's new connections.
  std::vector<zmq::socket_t> listeners_ DT_GUARDED_BY(mutex_);
  uint64_t channels_ DT_GUARDED_BY(mutex_) = 0;  // Made so far.
  // Touched by thread_ only.
  std::vector<Connection> connections_;
  RareEvent closed_;
  std::jthread thread_;  // Last: starts when the rest exists.
};

}  // namespace dt
