#include "worker/collective/farewells_gloo.h"

#include <chrono>
#include <exception>
#include <utility>

namespace dt::worker {
namespace {

constexpr uint64_t kSlot = ~uint64_t{0};  // No message of a call has it.
constexpr std::chrono::milliseconds kSendTimeout{200}, kLook{1};

}  // namespace

Farewells::Farewells(uint32_t rank, uint32_t ranks, gloo::Context& context)
    : rank_(rank), context_(context), lost_(ranks, 0) {
  for (uint32_t r = 0; r < ranks; ++r) {
    heard_.emplace_back();
    if (r == rank_) continue;
    try {
      Buffer buffer = context.createUnboundBuffer(&lost_[r], sizeof(lost_[r]));
      buffer->recv(static_cast<int>(r), kSlot);
      heard_.back() = std::move(buffer);
    } catch (const std::exception&) {
      continue;  // It has gone already.
    }
  }
}

void Farewells::Send(uint32_t lost) {
  told_ = lost;
  std::vector<Buffer> sent;
  for (uint32_t r = 0; r < heard_.size(); ++r) {
    if (r == rank_ || r == lost) continue;
    try {
      sent.push_back(context_.createUnboundBuffer(&told_, sizeof(told_)));
      sent.back()->send(static_cast<int>(r), kSlot);
    } catch (const std::exception&) {
      sent.pop_back();  // That rank is lost as well.
    }
  }
  for (const Buffer& buffer : sent) {
    try {
      buffer->waitSend(kSendTimeout);
    } catch (const std::exception&) {
      continue;  // That rank is lost as well.
    }
  }
}

uint32_t Farewells::LostBehind(uint32_t peer) {
  if (heard_[peer] == nullptr) return peer;
  try {
    return heard_[peer]->waitRecv(kLook) ? lost_[peer] : peer;
  } catch (const std::exception&) {
    return peer;  // It has said nothing.
  }
}

}  // namespace dt::worker
