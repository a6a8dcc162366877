// The surroundings that one part of a job needs in tests, without the other parts.
#pragma once

#include <string>
#include <vector>

#include "scheduler/state/job_context.h"
#include "test/support/fake_environment.h"

namespace dt::scheduler {

// A job of two servers and two workers.
struct JobParts {
  JobParts() {
    job.cluster.servers = 2;
    job.cluster.workers = 2;
    job.cluster.lease = seconds(3);
    job.cluster.wait_for_server = seconds(60);
  }
  // A join of a process whose pid is its incarnation, on the host "host".
  JoinMessage Joiner(Role role, uint64_t incarnation, uint64_t token = 0) const {
    JoinMessage join;
    join.role = role;
    join.incarnation = Incarnation(incarnation);
    join.pid = static_cast<int64_t>(incarnation);
    join.host = "host";
    join.server_token = token;
    join.endpoints = {"inproc://x"};
    return join;
  }
  const Member& Join(Role role, uint64_t incarnation, uint64_t token = 0) {
    const Member& joined = **members.Join({}, Joiner(role, incarnation, token));
    if (role == Role::kWorker) record.views.workers.push_back(joined.id);
    return joined;
  }
  // Names of the messages sent to one process since the last call. Forgets messages to others.
  std::vector<std::string> NamesSentTo(uint64_t incarnation) {
    std::vector<std::string> names;
    for (const Outgoing& sent : out.TakeMessages()) {
      if (sent.to == Incarnation(incarnation)) names.emplace_back(NameOf(sent.message));
    }
    return names;
  }
  std::vector<std::string> EventKinds() const {
    std::vector<std::string> kinds;
    for (const JobResult::Event& event : record.events) kinds.push_back(event.kind);
    return kinds;
  }

  JobConfig job;
  JobOptions options{job, Goal::kTrain, Term(1), Generation(1), {}};
  FakeEnvironment environment;
  JobRecord record;
  Membership members{{.servers = 2, .workers = 2, .lease = seconds(3)}, record.members, {}};
  OrderTracker orders{record.orders};
  Outbox out{{}, record.events};
  JobContext context{options, environment, record, members, orders, out};
};

}  // namespace dt::scheduler
