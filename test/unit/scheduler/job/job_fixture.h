// A job of one server and two workers, whose messages the test writes, with a simulated clock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/wire/data.h"
#include "scheduler/job/job.h"
#include "test/support/fake_environment.h"

namespace dt::scheduler {

inline constexpr TimePoint kStart{};

class JobTest : public ::testing::Test {
 protected:
  JobTest() {
    config_.cluster.servers = 1;
    config_.cluster.workers = 2;
    config_.cluster.shards = 4;
    config_.cluster.start_timeout = seconds(30);
    config_.train.batch_size = 10;
    config_.model.losses.emplace_back().name = "click";
    Make();
  }
  void Make(std::optional<JobOptions::Checkpoint> checkpoint = {}) {
    job_.emplace(JobOptions{config_, Goal::kTrain, Term(1), Generation(1), std::move(checkpoint)},
                 environment_, kStart);
  }
  void Say(uint64_t from, ControlMessage message, Duration at = {}) {
    job_->On(kStart + at, Incarnation(from), std::move(message));
    if (plans_at_once_) TellPlan(at);
  }
  // Reports the end of planning, if planning has begun.
  void TellPlan(Duration at = {}) {
    if (std::optional<PlanMade> made = environment_.TakePlan()) {
      job_->On(kStart + at, *std::move(made));
    }
  }
  void Join(uint64_t incarnation, Role role) {
    JoinMessage join;
    join.role = role;
    join.incarnation = Incarnation(incarnation);
    join.wire_version = kWireVersion;
    join.host = "host";
    join.pid = static_cast<int64_t>(incarnation);
    join.server_token = role == Role::kServer ? token_ : 0;
    join.endpoints = {endpoint_.empty() ? fmt::format("inproc://{}", incarnation) : endpoint_};
    join.devices = devices_;
    join.address = address_;
    join.memory_bytes = server_memory_;
    Say(incarnation, join);
  }
  void JoinAll() {
    Join(1, Role::kWorker);
    Join(2, Role::kWorker);
    Join(3, Role::kServer);
  }
  static DataReadyMessage Data(uint64_t train = 100) { return {train, 0, 0, 0, 7, {ColumnSpec{}}}; }
  void Begin() {
    JoinAll();
    Say(1, Data());
    Say(2, Data());
    for (uint64_t from : {1, 2, 3}) Say(from, ReadyMessage{});
  }
  // Messages sent to one process since the last call.
  template <class T>
  std::vector<T> SentTo(uint64_t to) {
    std::vector<T> found;
    for (Outgoing& out : job_->TakeOutgoing()) {
      if (out.to == Incarnation(to) && std::holds_alternative<T>(out.message)) {
        found.push_back(std::get<T>(out.message));
      }
    }
    return found;
  }
  const std::vector<JobResult::Event>& events() const { return job_->record().events; }
  std::string Outcome() const {
    return job_->phase() == JobPhase::kEnded ? ToText(job_->outcome()) : "not ended";
  }

  std::vector<DeviceInfo> devices_;  // Accelerators of processes that join.
  std::string address_ = "10.0.0.1";
  std::string endpoint_;  // Of servers that join; empty: each has its own.
  uint64_t token_ = 0;    // Token of servers that join.
  uint64_t server_memory_ = 0;
  bool plans_at_once_ = true;
  JobConfig config_;
  FakeEnvironment environment_;
  std::optional<Job> job_;
};

}  // namespace dt::scheduler
