// The output of a job: messages to processes, and events for people.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/cluster/job_result.h"
#include "common/control/messages.h"
#include "scheduler/membership/membership.h"

namespace dt::scheduler {

struct Outgoing {
  Incarnation to;
  ControlMessage message;
};

class Outbox {
 public:
  using Details = std::vector<std::pair<std::string, JobResult::Detail>>;

  // Events are appended to `events` with their time since `begin`. REQUIRES: `events` outlives the
  // outbox.
  Outbox(TimePoint begin, std::vector<JobResult::Event>& events) : begin_(begin), events_(events) {}

  void Send(Incarnation to, ControlMessage message);
  void Send(const Member& to, ControlMessage message);
  void AddEvent(TimePoint now, std::string kind, Details details);
  std::vector<Outgoing> TakeMessages() { return std::exchange(messages_, {}); }

 private:
  const TimePoint begin_;
  std::vector<JobResult::Event>& events_;
  std::vector<Outgoing> messages_;
};

}  // namespace dt::scheduler
