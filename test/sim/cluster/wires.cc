#include "test/sim/cluster/wires.h"

#include "common/base/hash.h"

namespace dt::sim {

void Wires::Listen(const std::string& address, Node node, Handler handler) {
  handlers_[address] = std::move(handler);
  nodes_[address] = node;
}

void Wires::Send(Node node, const std::string& from, const std::string& to, Frames message) {
  const auto there = nodes_.find(to);
  if (there == nodes_.end() || IsCut(node, there->second)) return;
  if (world_.Chance(faults_.drop)) return;
  const int copies = world_.Chance(faults_.duplicate) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    world_.After(Delay(), [this, from, to, message] { Deliver(to, from, message); });
  }
}

void Wires::Deliver(const std::string& to, const std::string& from, Frames message) {
  const auto now = static_cast<uint64_t>(world_.Now().time_since_epoch().count());
  for (const uint64_t part : {now, HashString(to), HashString(from)}) {
    digest_ = MixBits(digest_ ^ part);
  }
  if (tap_ && !tap_(to, from, message)) return;
  const auto handler = handlers_.find(to);
  if (handler == handlers_.end()) return;
  const Handler handle = handler->second;  // It may forget the address.
  handle(from, std::move(message));
}

void Wires::SendInOrder(Node from, Node to, std::function<void()> arrive) {
  TimePoint when = world_.Now() + Delay();
  if (IsCut(from, to)) when = cuts_[{from, to}] + Delay();
  TimePoint& last = last_in_order_[{from, to}];
  last = std::max(last, when);
  world_.At(last, std::move(arrive));
}

void Wires::Heal() {
  faults_ = {};
  cuts_.clear();
}

bool Wires::IsCut(Node from, Node to) const {
  const auto cut = cuts_.find({from, to});
  return cut != cuts_.end() && world_.Now() < cut->second;
}

Duration Wires::Delay() {
  const Duration delay = world_.UpTo(faults_.delay_max);
  return world_.Chance(faults_.late) ? delay + world_.UpTo(faults_.late_max) : delay;
}

}  // namespace dt::sim
