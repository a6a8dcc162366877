// A server or worker without data that carries out orders: the scheduler's peer in tests. It is a
// plain state machine over a Session.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "common/control/messages.h"
#include "common/control/session.h"

namespace dt {

struct FakeData {
  uint64_t train_rows = 95, valid_rows = 20, test_rows = 20;
  uint32_t batch_size = 10;
  uint64_t fingerprint = 1;
};

class FakeProcess {
 public:
  FakeProcess(Role role, uint64_t incarnation, const FakeData& data);

  void Start(TimePoint now, std::vector<Packet>& out);
  void OnPacket(TimePoint now, Packet packet, std::vector<Packet>& out);
  // Sends heartbeats, resends, and works: each order takes `order_time`.
  void Tick(TimePoint now, std::vector<Packet>& out);
  void Say(TimePoint now, const ControlMessage& message, std::vector<Packet>& out);

  uint64_t token = 0;          // Token of a server that keeps a log; set it before Start.
  std::string checkpoint_dir;  // Folder for its checkpoint files; empty: none are written.
  Duration order_time = milliseconds(20);
  Duration heartbeat_every = milliseconds(250);

  Role role() const { return role_; }
  uint64_t incarnation() const { return session_.id(); }
  ProcessId id() const { return id_; }
  // The orders carried out, as text: "train 0..4", "evaluate valid 10", "save 10", …
  const std::vector<std::string>& done() const { return done_; }
  const std::optional<StopMessage>& stop() const { return stop_; }
  const std::optional<RefusedMessage>& refused() const { return refused_; }

 private:
  void Take(TimePoint now, const ControlMessage& message, std::vector<Packet>& out);
  OrderDoneMessage CarryOut(const OrderMessage& order);
  TrainDone CarryOut(const TrainOrder& order);
  EvaluateDone CarryOut(const EvaluateOrder& order);
  SaveDone CarryOut(const SaveOrder& order);
  LoadDone CarryOut(const LoadOrder& order);
  FinishDone CarryOut(const FinishOrder& order);

  const Role role_;
  const FakeData data_;
  Session session_;
  ProcessId id_;
  std::vector<ProcessId> workers_;
  std::deque<OrderMessage> orders_;
  TimePoint busy_until_{}, next_heartbeat_{};
  Step step_ = 0;
  std::vector<std::string> done_;
  std::optional<StopMessage> stop_;
  std::optional<RefusedMessage> refused_;
};

}  // namespace dt
