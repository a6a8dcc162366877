#include "scheduler/service/session_router.h"

#include <algorithm>

#include "common/base/log.h"

namespace dt::scheduler {
namespace {

constexpr size_t kJoinedMax = 4096;
constexpr size_t kGuestsMax = 64;
constexpr size_t kGuestPayloadMax = 64 << 10;
constexpr size_t kGuestBytesMax = 64 << 20;     // Sum over all guests.
constexpr Duration kForgetAfter = seconds(30);  // For guests.
// For others. Should such a process speak again, it begins a new session.
constexpr Duration kForgetJoinedAfter = seconds(600);
constexpr Duration kWarnEvery = seconds(60);

// Whether the sender exits after this message and reads nothing more.
bool SaysGoodbye(const ControlMessage& message) {
  return std::holds_alternative<LeavingMessage>(message) ||
         std::holds_alternative<FailedMessage>(message);
}

Result<ControlMessage> Decode(const std::string& payload) {
  return DecodeControl(std::as_bytes(std::span(payload.data(), payload.size())));
}

}  // namespace

void SessionRouter::Out(const PeerId& peer, Packet packet) const {
  packet.term = term_.value();
  transmit_(peer, packet);
}

void SessionRouter::CountMalformed(TimePoint now, const PeerId& peer, const Status& why) {
  ++malformed_;
  if (malformed_ > 1 && now - last_warning_ < kWarnEvery) return;
  last_warning_ = now;
  LogWarn("control.malformed",
          {{"peer_bytes", peer.size()}, {"problem", MessageOf(why)}, {"so_far", malformed_}});
}

void SessionRouter::CountDropped(TimePoint now, const ControlMessage& message, const Status& why) {
  ++dropped_;
  if (dropped_ > 1 && now - last_drop_warning_ < kWarnEvery) return;
  last_drop_warning_ = now;
  LogWarn("control.dropped",
          {{"message", NameOf(message)}, {"why", MessageOf(why)}, {"so_far", dropped_}});
}

bool SessionRouter::MayBegin(TimePoint now, const PeerId& peer, const Packet& packet) {
  if (packet.sequence != 1) return false;
  const Result<ControlMessage> message = Decode(packet.payload);
  if (!message.ok()) CountMalformed(now, peer, message.status());
  if (!message.ok() || std::holds_alternative<StatusRequestMessage>(*message) ||
      std::holds_alternative<DrainRequestMessage>(*message) ||
      std::holds_alternative<ScaleRequestMessage>(*message)) {
    return message.ok();
  }
  const auto joined =
      std::ranges::count_if(sessions_, [](const auto& e) { return e.second.joined; });
  return std::holds_alternative<JoinMessage>(*message) && std::cmp_less(joined, kJoinedMax);
}

size_t SessionRouter::PayloadBytesMax(uint64_t session) const {
  const auto found = sessions_.find(session);
  return found != sessions_.end() && found->second.joined ? kPartBytesMax : kGuestPayloadMax;
}

void SessionRouter::TrimGuests() {
  for (;;) {
    size_t guests = 0, bytes = 0;
    auto silent = sessions_.end(), heavy = sessions_.end();
    for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
      const PeerSession& line = at->second;
      if (line.joined) continue;
      ++guests;
      bytes += line.session.held_bytes();
      if (silent == sessions_.end() || line.heard < silent->second.heard) silent = at;
      if (heavy == sessions_.end() ||
          line.session.held_bytes() > heavy->second.session.held_bytes()) {
        heavy = at;
      }
    }
    if (guests <= kGuestsMax && bytes <= kGuestBytesMax) return;
    sessions_.erase(guests > kGuestsMax ? silent : heavy);
  }
}

SessionRouter::PeerSession* SessionRouter::SessionOf(TimePoint now, const PeerId& peer,
                                                     const Packet& packet) {
  const uint64_t id = packet.session;
  const auto found = sessions_.find(id);
  const bool known = found != sessions_.end();
  if (known && packet.number == found->second.session.number()) return &found->second;
  if (packet.unknown || (known && packet.number < found->second.session.number())) return nullptr;
  if (MayBegin(now, peer, packet)) {
    PeerSession begun{Session(id, resend_after_, packet.number), peer, now, false};
    return &sessions_.insert_or_assign(id, std::move(begun)).first->second;
  }
  // Nothing but the Join goes out before a scheduler has it. So another one had this session.
  const bool carries = packet.sequence != 0 || !packet.payload.empty();
  if (packet.sequence != 1 && carries) {
    Out(peer, {.session = id, .number = packet.number, .unknown = true});
  }
  return nullptr;
}

std::vector<SessionRouter::Arrived> SessionRouter::OnPacket(TimePoint now, const PeerId& peer,
                                                            Packet packet) {
  const uint64_t id = packet.session;
  PeerSession* const found = SessionOf(now, peer, packet);
  if (found == nullptr) return {};
  PeerSession& line = *found;
  line.heard = now;
  line.peer = peer;  // The peer changes after a reconnection.
  std::vector<std::string> payloads;
  std::vector<Packet> answers;
  line.session.OnPacket(now, std::move(packet), payloads, answers);
  for (Packet& answer : answers) Out(line.peer, std::move(answer));
  std::vector<Arrived> arrived;
  for (const std::string& payload : payloads) {
    Result<ControlMessage> message = Decode(payload);
    if (!message.ok()) {
      CountMalformed(now, peer, message.status());
      continue;
    }
    if (std::holds_alternative<JoinMessage>(*message)) {
      line.joined = true;
      expected_.erase(id);
    }
    if (SaysGoodbye(*message)) line.awaited = false;
    arrived.push_back({Incarnation(id), *std::move(message)});
  }
  if (!line.joined) TrimGuests();
  return arrived;
}

void SessionRouter::Send(TimePoint now, Incarnation to, const ControlMessage& message) {
  const auto found = sessions_.find(to.value());
  if (found == sessions_.end()) return;
  // A refused process becomes a guest, so that repeated joins cannot use up all sessions.
  if (std::holds_alternative<RefusedMessage>(message)) found->second.joined = false;
  std::vector<Packet> packets;
  const Status sent = found->second.session.Send(now, EncodeControl(message), packets);
  if (!sent.ok()) CountDropped(now, message, sent);
  for (Packet& packet : packets) Out(found->second.peer, std::move(packet));
  if (!found->second.joined) TrimGuests();
}

void SessionRouter::Tick(TimePoint now) {
  for (auto& [id, line] : sessions_) {
    std::vector<Packet> packets;
    line.session.Tick(now, packets);
    for (Packet& packet : packets) Out(line.peer, std::move(packet));
  }
  std::erase_if(sessions_, [&](const auto& entry) {
    return now - entry.second.heard > (entry.second.joined ? kForgetJoinedAfter : kForgetAfter);
  });
}

void SessionRouter::Expect(const std::list<Member>& members) {
  for (const Member& member : members) expected_.insert(member.incarnation().value());
}

bool SessionRouter::all_acknowledged(TimePoint since) const {
  return expected_.empty() &&
         std::all_of(sessions_.begin(), sessions_.end(), [since](const auto& entry) {
           const PeerSession& line = entry.second;
           const bool awaited = line.joined && line.awaited && line.heard >= since;
           return !awaited || line.session.all_acknowledged();
         });
}

}  // namespace dt::scheduler
