#include "common/control/link_core.h"

#include <algorithm>

#include "common/base/log.h"

namespace dt {
namespace {

constexpr Duration kResendAfter = milliseconds(300);
// The longest interval of heartbeats. They also find out that the scheduler, which may owe an
// answer or an order, has been restarted.
constexpr Duration kHeartbeatEvery = seconds(1);

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

Status StatusOf(StatusCode code, const Problem& problem) {
  Status status = MakeStatus(code, problem.what);
  if (!problem.where.empty()) status = WithWhere(std::move(status), problem.where);
  if (!problem.hint.empty()) status = WithHint(std::move(status), problem.hint);
  return status;
}

LinkCore::LinkCore(TimePoint now, Options options)
    : options_(std::move(options)),
      session_(options_.join.incarnation.value(), kResendAfter),
      last_heard_(now) {}

void LinkCore::Send(ControlMessage message) {
  unsettled_.OnSent(message);
  outgoing_.push_back(std::move(message));
}

// Nothing else is sent before the scheduler has the Join: it would not know the session.
void LinkCore::BeginAnew(TimePoint now) {
  session_ = Session(session_.id(), kResendAfter, session_.number() + 1);
  joined_ = false;
  acknowledgements_.clear();
  packets_.clear();
  outgoing_ = unsettled_.messages();
  Join(now);
  LogInfo("control.session_begun", {{"number", session_.number()}});
}

void LinkCore::Join(TimePoint now) {
  JoinMessage join = options_.join;
  if (welcome_.has_value()) {
    join.id = welcome_->id;
    join.run = welcome_->run;
  }
  session_.Send(now, EncodeControl(join), packets_).IgnoreError();  // The window is empty.
  join_sent_ = true;
  next_heartbeat_ = now + kHeartbeatEvery;
}

void LinkCore::OnPacket(TimePoint now, Packet packet) {
  if (packet.session != session_.id() || packet.number != session_.number()) return;
  if (packet.term < term_) return;  // An earlier scheduler sent it.
  last_heard_ = now;
  const bool another = packet.term > std::exchange(term_, packet.term);
  if (packet.unknown || (another && joined_)) {
    if (joined_ && !ended_) BeginAnew(now);
    return;
  }
  std::vector<std::string> payloads;
  session_.OnPacket(now, std::move(packet), payloads, acknowledgements_);
  joined_ = joined_ || (join_sent_ && session_.all_acknowledged());
  for (const std::string& payload : payloads) {
    Result<ControlMessage> message = DecodeControl(BytesOf(payload));
    if (message.ok()) {
      Take(now, *std::move(message));
    } else {
      LogWarn("control.malformed", {{"problem", MessageOf(message.status())}});
    }
  }
}

void LinkCore::Take(TimePoint now, ControlMessage message) {
  if (const auto* stop = std::get_if<StopMessage>(&message)) {
    End(StatusOf(stop->code, stop->problem));
  } else if (const auto* refused = std::get_if<RefusedMessage>(&message)) {
    End(StatusOf(refused->code, refused->problem));
  } else if (const auto* welcome = std::get_if<WelcomeMessage>(&message)) {
    welcome_ = *welcome;
    next_heartbeat_ = now;
  } else if (unsettled_.OnReceived(message)) {
    incoming_.push_back(std::move(message));
  }
}

void LinkCore::End(Status status) {
  if (std::exchange(ended_, true)) return;
  end_status_ = std::move(status);
}

void LinkCore::Tick(TimePoint now) {
  if (!join_sent_) Join(now);
  if (joined_ && now >= next_heartbeat_) {
    packets_.push_back(Heartbeat());
    const Duration quarter = welcome_.has_value() ? welcome_->lease / 4 : kHeartbeatEvery;
    next_heartbeat_ = now + std::min(quarter, kHeartbeatEvery);
  }
  SendOutgoing(now);
  session_.Tick(now, packets_);
  if (welcome_.has_value() && now - last_heard_ > options_.outage) {
    End(Unavailable("the scheduler at {} has been silent for {:.0f} s", options_.scheduler,
                    SecondsBetween(last_heard_, now)));
  }
}

// While the session's window is full, messages wait in order.
void LinkCore::SendOutgoing(TimePoint now) {
  while (joined_ && !outgoing_.empty() &&
         session_.Send(now, EncodeControl(outgoing_.front()), packets_).ok()) {
    outgoing_.pop_front();
  }
}

Packet LinkCore::Heartbeat() const {
  return session_.Datagram(
      EncodeControl(options_.progress ? options_.progress() : HeartbeatMessage()));
}

// The scheduler may exit once the Stop is acknowledged, so the last heartbeat goes first.
std::vector<Packet> LinkCore::TakePackets() {
  std::vector<Packet> packets;
  if (ended_ && welcome_.has_value() && !std::exchange(sent_last_heartbeat_, true)) {
    packets.push_back(Heartbeat());
  }
  for (std::vector<Packet>* some : {&acknowledgements_, &packets_}) {
    std::move(some->begin(), some->end(), std::back_inserter(packets));
    some->clear();
  }
  return packets;
}

}  // namespace dt
