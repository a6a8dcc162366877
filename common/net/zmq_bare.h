// Requests and replies over plain ZeroMQ without any of our code: DEALER and ROUTER with default
// options, one part per message, and prepared bytes that are not copied when sent. `dovetail bench
// transport` compares our transport with it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/base/clock.h"

namespace dt {

// Replies to each request with as many bytes as the number in its first eight bytes. One thread.
class BareReplier {
 public:
  virtual ~BareReplier() = default;
  virtual const std::string& endpoint() const = 0;
  // Returns false if no request came within `timeout`.
  virtual bool AnswerOne() = 0;
};
// The least work that a server does between a request and its reply; it writes the reply, whose
// bytes are undefined before. See the bench.
using BareWork =
    std::function<void(std::span<const std::byte> request, std::span<std::byte> answer)>;
// Listens on any port of the loopback device. Without `work`, every reply has the same bytes.
std::unique_ptr<BareReplier> MakeBareReplier(size_t answer_bytes_max, Duration timeout,
                                             BareWork work = nullptr);

// Sends requests. One thread.
class BareRequester {
 public:
  virtual ~BareRequester() = default;
  // REQUIRES: 8 <= bytes <= request_bytes_max.
  virtual void Ask(size_t bytes, size_t answer_bytes) = 0;
  // Returns the size of the next reply, or 0 if none came within 10 s. Reads one byte of each cache
  // line, as a real client would read its reply.
  virtual size_t Receive() = 0;
};
std::unique_ptr<BareRequester> MakeBareRequester(const std::string& endpoint,
                                                 size_t request_bytes_max);

}  // namespace dt
