// What the machines of one job share. Job owns all of it; a machine holds a reference.
//
// All machines have one form: messages, ticks and times in; messages and events out through the
// outbox; an error that is returned ends the job. What a restarted scheduler would need lies in the
// record, each machine's part in a struct of its own.
#pragma once

#include <string>
#include <vector>

#include "scheduler/job/job_environment.h"
#include "scheduler/job/job_options.h"
#include "scheduler/job/job_record.h"
#include "scheduler/job/outbox.h"
#include "scheduler/membership/membership.h"
#include "scheduler/schedule/order_tracker.h"

namespace dt::scheduler {

struct JobContext {
  const JobOptions& options;
  JobEnvironment& environment;
  JobRecord& record;
  Membership& members;
  OrderTracker& orders;
  Outbox& out;
};

// How far a run has come: it goes on, has done all, or was stopped on request at a step boundary.
enum class RunState { kGoing, kFinished, kInterrupted };

enum class Audience { kWorkers, kWorkersAndServers };
// In order of rank, then the servers in order of id.
std::vector<ProcessId> IdsOf(const Membership& members, Audience audience);

// Sends an order, and gives its number.
uint64_t Issue(JobContext& job, Order what, Audience to);

// Sends what a member is started with. Only workers get the plan.
void SendStart(JobContext& job, const Member& to);

// The order to load a checkpoint. Begins the next generation, which is on the disk before anybody
// hears of it.
Result<Order> LoadInNextGeneration(JobContext& job, Step step, std::string folder);

// The checkpoint that the run began with has been loaded.
void NoteResumed(JobContext& job, TimePoint now, const LoadOrder& load);

}  // namespace dt::scheduler
