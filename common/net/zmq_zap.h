// Who may connect: answers ZeroMQ's question about each connection whose handshake is done (ZAP,
// rfc.zeromq.org/spec:27/ZAP) from a list of public keys. Has a thread of its own, which ends with
// the context.
#pragma once

#include <set>
#include <string>
#include <thread>

#include <zmq.hpp>

#include "common/base/clock.h"

namespace dt {

// Sockets of this domain are asked about, and refuse everybody while nobody answers.
inline constexpr char kZapDomain[] = "dovetail";

class ZapHandler {
 public:
  // REQUIRES: no socket of the context is bound yet; the context is shut down before this goes.
  ZapHandler(zmq::context_t& context, std::set<std::string> allowed_keys);

 private:
  void Run();
  // Until the context ends; then it throws.
  void AnswerOne();
  void LogRefusal(const std::string& address);

  const std::set<std::string> allowed_keys_;  // As text.
  // Touched by thread_ only.
  zmq::socket_t socket_;
  uint64_t refused_ = 0;
  TimePoint log_again_{};
  std::jthread thread_;  // Last: starts when the rest exists.
};

}  // namespace dt
