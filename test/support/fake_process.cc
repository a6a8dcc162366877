#include "test/support/fake_process.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/wire/data.h"

namespace dt {

FakeProcess::FakeProcess(Role role, uint64_t incarnation, const FakeData& data)
    : role_(role), data_(data), session_(incarnation, milliseconds(200)) {}

void FakeProcess::Say(TimePoint now, const ControlMessage& message, std::vector<Packet>& out) {
  DT_CHECK(session_.Send(now, EncodeControl(message), out).ok());
}

void FakeProcess::Start(TimePoint now, std::vector<Packet>& out) {
  JoinMessage join;
  join.role = role_;
  join.incarnation = Incarnation(session_.id());
  join.wire_version = kWireVersion;
  join.pid = static_cast<int64_t>(1000 + session_.id());
  join.host = "host";
  join.server_token = token;
  if (role_ == Role::kServer) join.endpoints = {"inproc://server"};
  Say(now, join, out);
}

void FakeProcess::OnPacket(TimePoint now, Packet packet, std::vector<Packet>& out) {
  std::vector<std::string> payloads;
  session_.OnPacket(now, std::move(packet), payloads, out);
  for (const std::string& payload : payloads) {
    Take(now, *DecodeControl(std::as_bytes(std::span(payload.data(), payload.size()))), out);
  }
}

void FakeProcess::Take(TimePoint now, const ControlMessage& message, std::vector<Packet>& out) {
  if (const auto* welcome = std::get_if<WelcomeMessage>(&message)) {
    id_ = welcome->id;
    if (role_ != Role::kWorker) return;
    DataReadyMessage ready{data_.train_rows,  data_.valid_rows, data_.test_rows, 0,
                           data_.fingerprint, {ColumnSpec{}}};
    Say(now, ready, out);
  } else if (const auto* start = std::get_if<StartMessage>(&message)) {
    workers_ = start->view.workers;
    Say(now, ReadyMessage{}, out);
  } else if (const auto* order = std::get_if<OrderMessage>(&message)) {
    if (orders_.empty()) busy_until_ = now + order_time;
    orders_.push_back(*order);
  } else if (const auto* stop = std::get_if<StopMessage>(&message)) {
    stop_ = *stop;
    orders_.clear();
  } else if (const auto* refused = std::get_if<RefusedMessage>(&message)) {
    refused_ = *refused;
  }
}

void FakeProcess::Tick(TimePoint now, std::vector<Packet>& out) {
  if (id_.value() != 0 && now >= next_heartbeat_) {
    HeartbeatMessage heartbeat;
    heartbeat.step = step_;
    out.push_back(session_.Datagram(EncodeControl(heartbeat)));
    next_heartbeat_ = now + heartbeat_every;
  }
  if (!orders_.empty() && now >= busy_until_) {
    Say(now, CarryOut(orders_.front()), out);
    orders_.pop_front();
    busy_until_ = now + order_time;
  }
  session_.Tick(now, out);
}

OrderDoneMessage FakeProcess::CarryOut(const OrderMessage& order) {
  OrderDoneMessage done{order.number, {}};
  std::visit([&](const auto& what) { done.result = CarryOut(what); }, order.what);
  return done;
}

TrainDone FakeProcess::CarryOut(const TrainOrder& order) {
  done_.push_back(fmt::format("train {}..{}", order.first_step, order.end_step));
  step_ = order.end_step;
  TrainDone done{order.end_step, 0, {0.0}, {0.5}, 0.02};
  for (Step step = order.first_step; step < order.end_step; ++step) {
    const uint64_t first = (step - order.epoch_first_step) * data_.batch_size;
    const uint64_t samples = std::min<uint64_t>(data_.batch_size, data_.train_rows - first);
    done.samples += samples;
    done.loss_sums[0] += 0.5 * static_cast<double>(samples);
  }
  return done;
}

// The score of sample i of the split is i, and its label is i % 3 == 0.
EvaluateDone FakeProcess::CarryOut(const EvaluateOrder& order) {
  const bool test = order.split == SplitKind::kTest;
  done_.push_back(fmt::format("evaluate {} {}", test ? "test" : "valid", order.step));
  const uint64_t rows = test ? data_.test_rows : data_.valid_rows;
  const auto rank =
      static_cast<uint64_t>(std::find(workers_.begin(), workers_.end(), id_) - workers_.begin());
  EvaluateDone done;
  LossScores& loss = done.losses.emplace_back();
  for (uint64_t batch = rank; batch * data_.batch_size < rows; batch += workers_.size()) {
    const uint64_t begin = batch * data_.batch_size, end = std::min(rows, begin + data_.batch_size);
    EvaluatePart part{.batch = batch, .samples = end - begin};
    for (uint64_t i = begin; i < end; ++i) {
      loss.scores.push_back(static_cast<float>(i));
      loss.labels.push_back(i % 3 == 0 ? 1 : 0);
      part.label_sum += i % 3 == 0 ? 1 : 0;
      part.loss_sum += 0.25;
      part.prediction_sum += 0.5;
    }
    loss.parts.push_back(part);
  }
  return done;
}

SaveDone FakeProcess::CarryOut(const SaveOrder& order) {
  done_.push_back(fmt::format("save {}", order.step));
  const std::string name = fmt::format("{}-{}.bin", NameOf(role_), id_.value());
  const std::string content = fmt::format("{} at {}", name, order.step);
  if (!checkpoint_dir.empty()) {
    std::ofstream(std::filesystem::path(checkpoint_dir) / order.name / name) << content;
  }
  return {{{name, content.size(), HashString(content)}}};
}

LoadDone FakeProcess::CarryOut(const LoadOrder& order) {
  done_.push_back(fmt::format("load {} generation {}", order.step, order.generation.value()));
  step_ = order.step;
  return {};
}

FinishDone FakeProcess::CarryOut(const FinishOrder&) {
  done_.push_back("finish");
  if (role_ == Role::kServer) return {{{"item", 10, 9, 1, 160, 5, ~0ull}}, {}, {}};
  return {{}, {{0, 5, 6}}, {1.5, 100, 10, 20}};
}

}  // namespace dt
