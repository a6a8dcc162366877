// Everything that a scheduler needs to continue a job after another scheduler, besides the job file
// and the checkpoint to start from. Each part belongs to one state machine, which keeps here
// whatever must survive. Outside it keeps only what may be lost: signs of life, measured rates,
// processes that wait to join. An evaluation writes nothing, because it is started again from the
// beginning.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/cluster/job_result.h"
#include "common/control/reports.h"
#include "scheduler/membership/membership.h"
#include "scheduler/results/totals.h"
#include "scheduler/schedule/job_schedule.h"
#include "scheduler/schedule/order_tracker.h"
#include "scheduler/schedule/work_queue.h"
#include "scheduler/state/checkpoint_commit.h"
#include "scheduler/state/rendezvous.h"

namespace dt::scheduler {

//   gathering ─all there─▶ reading ─all DataReady─▶ planning ─PlanMade─▶ starting ─all Ready─▶
//   running ─Finish done─▶ ended
// Every phase may also go to `ended`: a process failed, was lost or was too late, or the job was
// stopped.
enum class JobPhase : uint8_t { kGathering, kReading, kPlanning, kStarting, kRunning, kEnded };
std::string_view NameOf(JobPhase phase);

// Results of planning that are needed later.
struct PlanRecord {
  std::string model = "{}";        // MadePlan::model.
  std::string explanation = "{}";  // MadePlan::explanation.
  double step_seconds = 0;         // MadePlan::step_seconds.
  TakenParts taken;                // If the run begins with another job's checkpoint.
  DT_FIELDS(model, explanation, step_seconds, taken)
};

// A run that trains.
struct TrainingRecord {
  ScheduleRecord schedule;
  WorkRecord work;
  CheckpointRecord checkpoint;
  // The last complete checkpoint, as reported to servers that keep a log.
  std::optional<CheckpointCommittedMessage> committed;
  bool loaded = false;        // The checkpoint to start from, if there is one, has been loaded.
  bool had_finished = false;  // The run started from a checkpoint of the job's last step.
  Step first_step = 0;        // The step at which the run began.
  double trained_before = 0;  // Seconds of training before this run.
  DT_FIELDS(schedule, work, checkpoint, committed, loaded, had_finished, first_step, trained_before)
};

// The report of one process for a new view; see ViewReportMessage.
struct ViewReport {
  Step step = 0;
  bool entered = false;
  bool newcomer = false;
  DT_FIELDS(step, entered, newcomer)
};
// The newest view of the workers.
struct ViewsRecord {
  ViewNumber number;
  std::vector<ProcessId> workers;  // In rank order.
  bool forming = false;            // It has not begun.
  std::set<ProcessId> missing;     // Processes that have not reported.
  std::map<ProcessId, ViewReport> reports;
  // Once it has begun: the steps that were complete, and those that had joined.
  Step step = 0;
  std::vector<ProcessId> newcomers;
  DT_FIELDS(number, workers, forming, missing, reports, step, newcomers)
};

// How many servers and workers the user wants: `launch` starts those that are missing when it
// grows.
struct WantedRecord {
  uint32_t servers = 0, workers = 0;
  DT_FIELDS(servers, workers)
  friend bool operator==(const WantedRecord&, const WantedRecord&) = default;
};

// A process that was a member, and what it hears if it speaks again.
struct GoneProcess {
  Incarnation incarnation;
  std::string why;       // "server 2 (pid 4711 on host7) has not been heard of for 3.1 s"
  bool drained = false;  // On request.
  Role role = Role::kServer;
  bool joins_again = false;  // The job has returned to a checkpoint: it is to join anew.
  DT_FIELDS(incarnation, why, drained, role, joins_again)
};

// The returns of the job to a checkpoint (job/job_returns.cc).
struct ReturnsRecord {
  // A process that is expected to join again. With pid 0: another in the place of one that has
  // ended.
  struct Expected {
    Role role = Role::kServer;
    std::string host;
    int64_t pid = 0;
    DT_FIELDS(role, host, pid)
  };
  uint32_t count = 0;
  uint32_t in_a_row = 0;           // Since the last checkpoint was completed.
  std::string why;                 // The reason for the last return, as in GoneProcess.
  std::vector<Expected> expected;  // After the last return.
  std::set<std::string> damaged;   // Checkpoints that turned out to be, when they were loaded.
  DT_FIELDS(count, in_a_row, why, expected, damaged)
};

struct JobRecord {
  Term term;  // The term of the scheduler that wrote the record.
  Generation generation;
  uint64_t run = 0;  // A random number; see WelcomeMessage.
  JobPhase phase = JobPhase::kGathering;
  std::list<Member> members;  // In order of id.
  // Description of the data, equal on all workers; set when the first one has read it.
  DataReadyMessage data;
  PlanRecord plan;
  StartMessage start;  // Slices, shard map and plan, as they were sent to workers.
  ShardMap map;        // The present one; that of `start` is the first.
  ViewsRecord views;
  WantedRecord wanted;
  std::vector<GoneProcess> gone;  // Processes that were removed.
  ReturnsRecord returns;
  OrdersOut orders;
  std::optional<TrainingRecord> training;
  RendezvousRecord rendezvous;
  std::string resumed_from;  // The folder of the checkpoint to start from; empty if none.
  // Set if the job begins with parts of another job's checkpoint: its folder.
  std::optional<std::string> begins_from;
  // By partition: the first message of a stream that the job trains on.
  std::vector<uint64_t> stream_begins;
  std::string last_checkpoint;     // The folder of the last checkpoint; empty if there is none.
  std::optional<Totals> totals;    // Set once the Finish order is done.
  std::optional<StopMessage> end;  // How the job has ended.
  std::vector<JobResult::Event> events;
  DT_FIELDS(term, generation, run, phase, members, data, plan, start, map, views, wanted, gone,
            returns, orders, training, rendezvous, resumed_from, begins_from, stream_begins,
            last_checkpoint, totals, end, events)
};

// The bytes of each field of a record, by the field's name, so that only what has changed must be
// written. Equal records have equal parts.
using RecordParts = std::map<std::string, std::string>;
enum class PartsOf {
  kAll,
  kRun,  // Without those that stay as they are once the run has begun; they are the long ones.
};
RecordParts EncodeJobRecord(const JobRecord& record, PartsOf which = PartsOf::kAll);
// Errors: DataLoss, if these are not the parts that EncodeJobRecord makes.
Result<JobRecord> DecodeJobRecord(const RecordParts& parts);
// JSON for people; a long text is replaced by its size.
std::string PrintJobRecord(const JobRecord& record);

}  // namespace dt::scheduler
