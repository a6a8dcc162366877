// Decides who may connect. ZeroMQ asks about each connection during its handshake (ZAP,
// rfc.zeromq.org/spec:27/ZAP); the handler compares the peer's public key with a list. Its thread
// ends with the context.
#pragma once

#include <set>
#include <string>
#include <thread>

#include <zmq.hpp>

#include "common/net/rare_event.h"

namespace dt {

// ZeroMQ asks about sockets of this domain only. Without an answer it refuses the connection.
inline constexpr char kZapDomain[] = "dovetail";

class ZapHandler {
 public:
  // REQUIRES: no socket of the context is bound yet; the context is shut down before the handler is
  // destroyed.
  ZapHandler(zmq::context_t& context, std::set<std::string> allowed_keys);

 private:
  void Run();
  // Waits for one request and answers it. Throws when the context ends.
  void AnswerOne();
  void LogRefusal(const std::string& address);

  const std::set<std::string> allowed_keys_;  // In Z85.
  // Only thread_ uses these.
  zmq::socket_t socket_;
  RareEvent refused_;
  std::jthread thread_;  // Must be last: it uses the other members.
};

}  // namespace dt
