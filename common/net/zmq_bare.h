// Request and answer over plain ZeroMQ with nothing of ours around it: DEALER and ROUTER with their
// default options, one part a message, bytes that lie ready and are not copied on the way out. What
// `dovetail bench transport` is measured against.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/base/clock.h"

namespace dt {

// Answers each request with as many bytes as its first eight bytes, a number, ask for. One thread.
class BareReplier {
 public:
  virtual ~BareReplier() = default;
  virtual const std::string& endpoint() const = 0;
  // False when no request came within `timeout`.
  virtual bool AnswerOne() = 0;
};
// What a server cannot do without, between a request and its answer, whose bytes are undefined
// before: see the bench.
using BareWork =
    std::function<void(std::span<const std::byte> request, std::span<std::byte> answer)>;
// On any port of the loopback device. Without work every answer has the same bytes.
std::unique_ptr<BareReplier> MakeBareReplier(size_t answer_bytes_max, Duration timeout,
                                             BareWork work = nullptr);

// One thread.
class BareRequester {
 public:
  virtual ~BareRequester() = default;
  // REQUIRES: 8 <= bytes <= request_bytes_max.
  virtual void Ask(size_t bytes, size_t answer_bytes) = 0;
  // The size of the next answer; 0 when none came in 10 s. Reads one word of each cache line, as
  // whoever asked for it would.
  virtual size_t Receive() = 0;
};
std::unique_ptr<BareRequester> MakeBareRequester(const std::string& endpoint,
                                                 size_t request_bytes_max);

}  // namespace dt
