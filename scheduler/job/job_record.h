// All that a scheduler needs to take up a job where another one has left it, besides what both are
// given: the job file and the checkpoint to begin with. Each part belongs to one machine, which
// keeps in it whatever it has to remember, and beside it only what may be lost: signs of life,
// measured rates, processes that wait to join. A job that has ended needs no scheduler, so its
// outcome is not here; an evaluation writes nothing and is begun anew.
#pragma once

#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/cluster/job_result.h"
#include "common/control/messages.h"
#include "scheduler/job/checkpoint_commit.h"
#include "scheduler/job/rendezvous.h"
#include "scheduler/membership/membership.h"
#include "scheduler/schedule/job_schedule.h"
#include "scheduler/schedule/order_tracker.h"
#include "scheduler/schedule/work_queue.h"

namespace dt::scheduler {

//   gathering ─all there─▶ reading ─all DataReady─▶ planning ─PlanMade─▶ starting ─all Ready─▶
//   running ─Finish done─▶ ended
// Every phase but the last may also end in `ended`: a process failed, was lost or is too late, or
// the job was stopped.
enum class JobPhase : uint8_t { kGathering, kReading, kPlanning, kStarting, kRunning, kEnded };
std::string_view NameOf(JobPhase phase);

// Facts about the plan that are told later on.
struct PlanRecord {
  std::string model = "{}";        // MadePlan::model.
  std::string explanation = "{}";  // MadePlan::explanation.
  double step_seconds = 0;         // MadePlan::step_seconds.
  DT_FIELDS(model, explanation, step_seconds)
};

// A run that trains.
struct TrainingRecord {
  ScheduleRecord schedule;
  WorkLeft work_left;
  CheckpointRecord checkpoint;
  // The last complete checkpoint, as servers that keep a log are told of it.
  std::optional<CheckpointCommittedMessage> committed;
  bool loaded = false;        // The checkpoint to begin with, if there is one, is loaded.
  bool had_finished = false;  // It is a checkpoint of the job's last step.
  Step first_step = 0;        // The step that the run began at.
  double trained_before = 0;  // Seconds of training before the run.
  DT_FIELDS(schedule, work_left, checkpoint, committed, loaded, had_finished, first_step,
            trained_before)
};

struct JobRecord {
  Term term;  // The term of the scheduler that wrote the record.
  Generation generation;
  JobPhase phase = JobPhase::kGathering;
  std::list<Member> members;  // In order of id.
  DataReadyMessage data;      // The data that all workers have, once one has read it.
  PlanRecord plan;
  StartMessage start;  // Slices, shard map and plan, as workers were started with them.
  OrdersOut orders;
  std::optional<TrainingRecord> training;
  RendezvousRecord rendezvous;
  std::string last_checkpoint;  // Its folder; empty: there is none.
  std::vector<JobResult::Event> events;
  DT_FIELDS(term, generation, phase, members, data, plan, start, orders, training, rendezvous,
            last_checkpoint, events)
};

// Equal records give equal bytes, so that comparing those compares records.
std::string EncodeJobRecord(const JobRecord& record);
// DataLoss for bytes that EncodeJobRecord has not written.
Result<JobRecord> DecodeJobRecord(std::span<const std::byte> bytes);
// JSON for people: long texts are shortened to their length.
std::string PrintJobRecord(const JobRecord& record);

}  // namespace dt::scheduler
