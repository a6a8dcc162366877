#include "common/control/session.h"

#include <algorithm>

namespace dt {
namespace {

constexpr size_t kWindow = 1024;
// Payloads above it are dropped; the peer resends them.
constexpr size_t kEarlyBytesMax = 64 << 20;
constexpr int64_t kMostPauses = 16;
constexpr int64_t kSlowBytesPerSecond = 50'000'000;

Duration TransferTime(size_t bytes) {
  return Duration(static_cast<int64_t>(bytes) * (1'000'000'000 / kSlowBytesPerSecond));
}

}  // namespace

Packet Session::Outgoing(uint64_t sequence, std::string payload) const {
  return {id_, sequence, delivered_, std::move(payload), number_};
}

Packet Session::PacketOf(const Pending& pending) const {
  return Outgoing(pending.sequence, pending.payload);
}

Status Session::Send(TimePoint now, std::string payload, std::vector<Packet>& out) {
  if (unacknowledged_.size() >= kWindow) {
    return Busy("{} messages are not acknowledged yet", unacknowledged_.size());
  }
  const Duration pause = resend_after_ + TransferTime(payload.size());
  unacknowledged_bytes_ += payload.size();
  unacknowledged_.push_back({next_sequence_++, now + pause, pause, std::move(payload)});
  out.push_back(PacketOf(unacknowledged_.back()));
  return OkStatus();
}

Packet Session::Datagram(std::string payload) const { return Outgoing(0, std::move(payload)); }

void Session::OnPacket(TimePoint /*now*/, Packet packet, std::vector<std::string>& delivered,
                       std::vector<Packet>& out) {
  if (packet.session != id_ || packet.number != number_ || packet.unknown) return;
  // Otherwise the peer acknowledges packets that were never sent.
  if (packet.ack < next_sequence_) {
    while (!unacknowledged_.empty() && unacknowledged_.front().sequence <= packet.ack) {
      unacknowledged_bytes_ -= unacknowledged_.front().payload.size();
      unacknowledged_.pop_front();
    }
  }
  if (packet.sequence == 0) {
    if (packet.payload.empty()) return;
    delivered.push_back(std::move(packet.payload));
  } else if (packet.sequence > delivered_ && packet.sequence <= delivered_ + kWindow) {
    const size_t bytes = packet.payload.size();
    const bool turn = packet.sequence == delivered_ + 1;
    if (!turn && early_bytes_ + bytes > kEarlyBytesMax) return;
    if (early_.emplace(packet.sequence, std::move(packet.payload)).second) early_bytes_ += bytes;
    while (!early_.empty() && early_.begin()->first == delivered_ + 1) {
      early_bytes_ -= early_.begin()->second.size();
      delivered.push_back(std::move(early_.begin()->second));
      early_.erase(early_.begin());
      ++delivered_;
    }
  }
  out.push_back(Outgoing(0, {}));
}

void Session::Tick(TimePoint now, std::vector<Packet>& out) {
  for (Pending& pending : unacknowledged_) {
    if (pending.due > now) continue;
    const Duration most = kMostPauses * (resend_after_ + TransferTime(pending.payload.size()));
    pending.pause = std::min(2 * pending.pause, most);
    pending.due = now + pending.pause;
    out.push_back(PacketOf(pending));
  }
}

}  // namespace dt
