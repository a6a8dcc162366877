// Data shared by the state machines of one job. Job owns all of it; each machine holds a reference.
//
// All machines have the same form: messages, ticks and times come in; messages and events go out
// through the outbox; a returned error ends the job. What a restarted scheduler needs is in the
// record, where each machine has a struct of its own.
#pragma once

#include <string>
#include <vector>

#include "scheduler/membership/membership.h"
#include "scheduler/schedule/order_tracker.h"
#include "scheduler/state/job_environment.h"
#include "scheduler/state/job_options.h"
#include "scheduler/state/job_record.h"
#include "scheduler/state/outbox.h"

namespace dt::scheduler {

struct JobContext {
  const JobOptions& options;
  JobEnvironment& environment;
  JobRecord& record;
  Membership& members;
  OrderTracker& orders;
  Outbox& out;
};

// How far a run is: going on, complete, or stopped on request at a step boundary.
enum class RunState { kGoing, kFinished, kInterrupted };

enum class Audience { kWorkers, kWorkersAndServers };
// The workers of the newest view in order of rank, then servers in order of id.
std::vector<ProcessId> IdsOf(const JobContext& job, Audience audience);
// TrainOrder::slice_owner. Each team gets consecutive slices. An asynchronous worker has one slice
// of every batch.
std::vector<uint32_t> SliceOwners(const JobContext& job);

// Sends an order and returns its number.
uint64_t Issue(JobContext& job, Order what, Audience to);

// From now on the shards are where this map says. Tells all members.
void SetMap(JobContext& job, ShardMap map);
// Sends the Start message. Only workers get the plan.
void SendStart(JobContext& job, const Member& to);

// The order to load a checkpoint. It begins the next generation, which is on disk before any
// process learns of it.
Result<Order> LoadInNextGeneration(JobContext& job, Step step, std::string folder);

// Records that the checkpoint the run started from has been loaded.
void NoteResumed(JobContext& job, TimePoint now, const LoadOrder& load);

}  // namespace dt::scheduler
