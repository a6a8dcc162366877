#include "common/net/zmq_bare.h"

#include <cstring>
#include <vector>

#include <zmq.hpp>

#include "common/base/check.h"

namespace dt {
namespace {

constexpr Duration kTimeout = seconds(10);  // Limit of the wait for a reply.
constexpr size_t kLine = 64;
// Number of reply buffers used in turn: ZeroMQ may still be sending from the last ones.
constexpr size_t kAnswersUnderWay = 16;

int MsOf(Duration timeout) {
  return static_cast<int>(std::chrono::ceil<milliseconds>(timeout).count());
}

// A message over bytes that outlive it: nothing is copied, counted or freed.
zmq::message_t Lent(std::vector<std::byte>& bytes, size_t size) {
  DT_CHECK(size <= bytes.size());
  return {bytes.data(), size, nullptr, nullptr};
}

class Replier : public BareReplier {
 public:
  Replier(size_t answer_bytes_max, Duration timeout, BareWork work)
      : work_(std::move(work)),
        answers_(work_ == nullptr ? 1 : kAnswersUnderWay, std::vector<std::byte>(answer_bytes_max)),
        socket_(context_, zmq::socket_type::router) {
    socket_.set(zmq::sockopt::rcvtimeo, MsOf(timeout));
    socket_.bind("tcp://127.0.0.1:*");
    endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
  }

  const std::string& endpoint() const override { return endpoint_; }

  bool AnswerOne() override {
    zmq::message_t peer, request;
    if (!socket_.recv(peer) || !socket_.recv(request)) return false;
    uint64_t bytes = 0;
    DT_CHECK(request.size() >= sizeof(bytes));
    std::memcpy(&bytes, request.data(), sizeof(bytes));
    std::vector<std::byte>& answer = answers_[answered_++ % answers_.size()];
    DT_CHECK(bytes <= answer.size());
    if (work_ != nullptr) {
      work_({request.data<std::byte>(), request.size()}, std::span(answer).first(bytes));
    }
    socket_.send(std::move(peer), zmq::send_flags::sndmore);
    socket_.send(Lent(answer, bytes), zmq::send_flags::none);
    return true;
  }

 private:
  const BareWork work_;
  std::vector<std::vector<std::byte>> answers_;
  uint64_t answered_ = 0;
  zmq::context_t context_;
  zmq::socket_t socket_;
  std::string endpoint_;
};

class Requester : public BareRequester {
 public:
  Requester(const std::string& endpoint, size_t request_bytes_max)
      : request_(request_bytes_max), socket_(context_, zmq::socket_type::dealer) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvtimeo, MsOf(kTimeout));
    socket_.connect(endpoint);
  }

  void Ask(size_t bytes, size_t answer_bytes) override {
    const uint64_t number = answer_bytes;
    std::memcpy(request_.data(), &number, sizeof(number));
    socket_.send(Lent(request_, bytes), zmq::send_flags::none);
  }

  size_t Receive() override {
    zmq::message_t answer;
    if (!socket_.recv(answer)) return 0;
    const auto* const bytes = answer.data<uint8_t>();
    for (size_t at = 0; at < answer.size(); at += kLine) read_ += bytes[at];
    return answer.size();
  }

 private:
  std::vector<std::byte> request_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  uint64_t read_ = 0;
};

}  // namespace

std::unique_ptr<BareReplier> MakeBareReplier(size_t answer_bytes_max, Duration timeout,
                                             BareWork work) {
  return std::make_unique<Replier>(answer_bytes_max, timeout, std::move(work));
}

std::unique_ptr<BareRequester> MakeBareRequester(const std::string& endpoint,
                                                 size_t request_bytes_max) {
  return std::make_unique<Requester>(endpoint, request_bytes_max);
}

}  // namespace dt
