// Decides who may connect. ZeroMQ asks it about each connection after the handshake (ZAP,
// rfc.zeromq.org/spec:27/ZAP); it answers from a list of public keys, on a thread of its own that
// ends with the context.
#pragma once

#include <set>
#include <string>
#include <thread>

#include <zmq.hpp>

#include "common/net/rare_event.h"

namespace dt {

// ZeroMQ asks about sockets of this domain only; without an answer it refuses the connection.
inline constexpr char kZapDomain[] = "dovetail";

class ZapHandler {
 public:
  // REQUIRES: no socket of the context is bound yet; the context is shut down before this goes.
  ZapHandler(zmq::context_t& context, std::set<std::string> allowed_keys);

 private:
  void Run();
  // Waits for one request and answers it. Throws when the context ends.
  void AnswerOne();
  void LogRefusal(const std::string& address);

  const std::set<std::string> allowed_keys_;  // In Z85.
  // Used by thread_ only.
  zmq::socket_t socket_;
  RareEvent refused_;
  std::jthread thread_;  // Last: starts when the rest exists.
};

}  // namespace dt
