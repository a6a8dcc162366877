// The network of a simulation: messages between addresses, with the faults that networks have. An
// address belongs to a node, which stands for a machine; faults are those of the way between two
// nodes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "common/net/frame.h"
#include "test/sim/cluster/world.h"

namespace dt::sim {

using Node = uint32_t;

struct NetworkFaults {
  double drop = 0, duplicate = 0;
  double late = 0;  // The share of messages that come up to `late_max` later than the others.
  Duration delay_max = milliseconds(1), late_max = seconds(4);
};

class Wires {
 public:
  // `from` is the address that the message is answered to.
  using Handler = std::function<void(const std::string& from, Frames message)>;
  // Sees every message that arrives, before its handler does; false: the handler does not see it.
  using Tap = std::function<bool(const std::string& to, const std::string& from, Frames& message)>;

  explicit Wires(World& world) : world_(world) {}

  void Listen(const std::string& address, Node node, Handler handler);
  // What is on its way to the address is lost unless somebody listens there again.
  void Forget(const std::string& address) { handlers_.erase(address); }

  // May be lost, doubled, late or out of order. To an unknown address: lost.
  void Send(Node node, const std::string& from, const std::string& to, Frames message);
  // Runs `arrive` once, behind those before it of the same two nodes: what TCP makes of the faults.
  void SendInOrder(Node from, Node to, std::function<void()> arrive);

  void Misbehave(const NetworkFaults& faults) { faults_ = faults; }
  // Nothing gets from one node to the other, in this direction, until then.
  void Cut(Node from, Node to, TimePoint until) { cuts_[{from, to}] = until; }
  void Heal();
  void SetTap(Tap tap) { tap_ = std::move(tap); }
  // Of all that has arrived so far: when, where and from whom. Not what: the names of files that a
  // database chooses are in some messages.
  uint64_t digest() const { return digest_; }
  // Hands a message over at once.
  void Deliver(const std::string& to, const std::string& from, Frames message);

 private:
  bool IsCut(Node from, Node to) const;
  Duration Delay();

  World& world_;
  NetworkFaults faults_;
  Tap tap_;
  uint64_t digest_ = 0;
  std::map<std::string, Handler> handlers_;
  std::map<std::string, Node> nodes_;  // Of every address that ever was.
  std::map<std::pair<Node, Node>, TimePoint> cuts_, last_in_order_;
};

}  // namespace dt::sim
