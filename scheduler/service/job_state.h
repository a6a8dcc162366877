// A job, from the first process that joins to the last Stop.
//
//   gathering ─all there─▶ reading ─all DataReady, plan─▶ starting ─all Ready─▶ running ─Finish
//   done─▶ ended
//       └──────────┴─────────────────────┴──────────────────────┴── failed, lost, too late, stopped
//       ──▶ ended
//
// A state machine without clock, socket or disk: messages and ticks in, messages out; what needs
// the disk or the planner goes through JobSurroundings. One thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/cluster/job_result.h"
#include "common/control/messages.h"
#include "common/control/process_end.h"
#include "common/plan/plan.h"
#include "scheduler/checkpoint/manifest.h"
#include "scheduler/membership/membership.h"
#include "scheduler/service/progress.h"
#include "scheduler/service/rendezvous.h"
#include "scheduler/splits/course.h"
#include "scheduler/splits/order_board.h"
#include "scheduler/splits/split_board.h"

namespace dt::scheduler {

enum class Goal { kTrain, kEvaluate };
enum class JobPhase { kGathering, kReading, kStarting, kRunning, kEnded };
std::string_view NameOf(JobPhase phase);

struct Outgoing {
  Incarnation to;
  ControlMessage message;
};

// What a plan is made from, besides the job.
struct PlanInput {
  std::vector<ColumnSpec> columns;  // Of the data.
  uint32_t slices = 1;
  std::vector<DeviceInfo> accelerators;  // Of the workers that have one, in rank order.
  MachineMembers machine;                // Those of the machine that has the most.
};

struct MadePlan {
  Plan plan;
  std::string model = "{}";        // ModelJson, for checkpoints.
  std::string explanation = "{}";  // ExplainJson, for the plan's page.
  // What the job file does not say: why tags of `gpu` do not mean a card, which tables went to the
  // workers; by the kind of event that tells it.
  std::vector<std::pair<std::string, std::string>> notes;
  double step_seconds = 0;  // Predicted.
};

// What a job needs of the world. Called on the job's thread; each call returns soon.
class JobSurroundings {
 public:
  virtual ~JobSurroundings() = default;
  virtual Result<MadePlan> MakePlan(const PlanInput& input) = 0;
  // These three are as in CheckpointStore; BeginCheckpoint gives the folder's name in
  // checkpoint.dir.
  virtual Result<std::string> BeginCheckpoint(Step step) = 0;
  virtual Result<std::string> CommitCheckpoint(const Manifest& manifest, bool best) = 0;
  virtual Result<std::string> FindCheckpoint(Step step) = 0;
  // Persisted before it is used.
  virtual Status KeepGeneration(Generation generation) = 0;
};

struct JobOptions {
  const JobConfig& job;
  Goal goal = Goal::kTrain;
  Term term;
  Generation generation;
  // The checkpoint to begin with: Goal::kEvaluate, or a resumed job.
  struct Checkpoint {
    std::string folder;
    Manifest manifest;
  };
  std::optional<Checkpoint> checkpoint;
};

class JobState {
 public:
  // REQUIRES: both outlive the state.
  JobState(const JobOptions& options, JobSurroundings& surroundings, TimePoint now);

  // From a process that joins or has joined.
  void On(TimePoint now, Incarnation from, ControlMessage message);
  // At least four times in a lease, after everything that has arrived.
  void Tick(TimePoint now);
  // A process of the job on `host`, this machine, has ended: whoever started it says so.
  void OnProcessEnd(TimePoint now, const std::string& host, const ProcessEnd& end);
  // A clean stop at the next step boundary.
  void RequestStop(TimePoint now);
  // The job fails.
  void Fail(TimePoint now, Status why);
  // The scheduler itself stood still for so long: its pause is not the others' silence.
  void ExtendLeases(TimePoint now, Duration by) { membership_.ExtendLeases(now, by); }
  std::vector<Outgoing> TakeOutgoing();

  JobPhase phase() const { return phase_; }
  // Of an ended job: OK, Cancelled (stopped on request), or why it failed.
  const Status& outcome() const { return outcome_; }
  const Membership& membership() const { return membership_; }
  const ShardMap& map() const { return map_; }
  const JobConfig& config() const { return options_.job; }
  // Since the scheduler's start.
  double SecondsAt(TimePoint now) const { return SecondsBetween(begin_, now); }
  // When this run last completed steps, and a checkpoint.
  std::optional<TimePoint> last_step_at() const { return last_step_at_; }
  std::optional<TimePoint> last_checkpoint_at() const { return last_checkpoint_at_; }
  // Where workers compute, for people; empty before there is a plan.
  const std::string& places() const { return places_; }
  const std::optional<Plan>& plan() const { return plan_; }
  const std::string& plan_explanation() const { return plan_explanation_; }
  const std::string& last_checkpoint() const { return last_checkpoint_; }
  const std::vector<JobResult::Event>& events() const { return events_; }
  const CourseState* course() const { return course_ ? &course_->state() : nullptr; }
  // Of the steps that this run has done; nothing if there are none.
  std::optional<JobResult::PlanCheck> plan_check() const;
  float rate_scale() const { return course_ ? course_->rate_scale() : 1; }
  Progress ProgressAt(TimePoint now);
  // Without the scheduler's own part.
  JobResult ResultAt(TimePoint now) const;

 private:
  // job_state.cc: from joining to the end.
  void Take(TimePoint now, Incarnation from, const JoinMessage& join);
  void Take(TimePoint now, const Member& from, ControlMessage message);
  void Refuse(TimePoint now, Incarnation to, const JoinMessage& join, const Status& why);
  void TakeDataReady(TimePoint now, const Member& from, DataReadyMessage data);
  void Advance(TimePoint now);
  void MakeStart(TimePoint now);
  void CheckStartTime(TimePoint now);
  // job_returns.cc: servers that keep a log are lost, waited for, and come back.
  void CheckLeases(TimePoint now);
  bool WaitsFor(const Member& member) const;
  void SetAway(TimePoint now, const Member& member, std::string_view why);
  void FailLost(TimePoint now, const Member& member, const std::string& how);
  void NoteReturn(TimePoint now, const Member& member);
  void SettleClaims(TimePoint now);
  Status TakeBack(TimePoint now, const Member& member, const JoinMessage& join);
  Status LoseWriter(TimePoint now, ProcessId id);
  void TakeReport(TimePoint now, const Member& from, const HeartbeatMessage& report);
  void TellKept(TimePoint now, Step step, const std::string& folder);
  void End(TimePoint now, Status outcome);
  void Send(const Member& to, ControlMessage message);
  void Answer(const std::vector<Rendezvous::Answer>& answers);
  void AddEvent(TimePoint now, std::string kind,
                std::vector<std::pair<std::string, JobResult::Detail>> details);

  // job_orders.cc: what a running job does.
  void BeginCourse();
  void HandOut(TimePoint now);
  void HandOutTraining(TimePoint now);
  void HandOutEvaluation(TimePoint now);
  void Issue(OrderBoard::What what, bool to_servers);
  Result<OrderBoard::What> OrderOf(const course::Order& order);
  Status Complete(TimePoint now, OrderBoard::Completed done);
  Status CompleteTrain(TimePoint now, const OrderBoard::Completed& done);
  Status CompleteEvaluate(TimePoint now, OrderBoard::Completed done);
  Status CompleteSave(TimePoint now, const OrderBoard::Completed& done);
  Status TakeSaved(TimePoint now, const Member& from, const SavedMessage& saved);
  Status CommitSave(TimePoint now);
  Status CompleteFinish(const OrderBoard::Completed& done);
  void WarnIfDiverged(TimePoint now, const LossMean& mean, std::string_view data);
  std::vector<uint32_t> SliceOwners() const;
  // job_report.cc
  // The outcome of a job that was stopped on request.
  Status Stopped() const;
  // "--resume auto goes on from FOLDER"; empty without a checkpoint.
  std::string ResumeHint() const;
  std::vector<ProcessId> Ids(bool with_servers) const;

  const JobOptions options_;
  JobSurroundings& surroundings_;
  const TimePoint begin_;
  JobPhase phase_ = JobPhase::kGathering;
  Status outcome_;
  Membership membership_;
  Rendezvous rendezvous_;
  std::vector<Outgoing> outgoing_;
  std::vector<JobResult::Event> events_;

  std::map<ProcessId, DataReadyMessage> data_;
  std::set<ProcessId> ready_;
  StartMessage start_;               // The servers' start message, once it is made.
  std::optional<KeptMessage> kept_;  // The last complete checkpoint, if servers keep logs.
  TimePoint kept_at_{};
  // Processes with a member's claim that wait until it is away.
  struct Claimant {
    JoinMessage join;
    TimePoint since{};
  };
  std::vector<Claimant> claimants_;
  uint64_t refused_ = 0;  // Number of refused joins.
  TimePoint log_refusal_again_{};
  std::map<ProcessId, TimePoint> lost_at_;  // Servers that have not come back and recovered.
  ShardMap map_;
  std::optional<Plan> plan_;  // Once it is made.
  std::string places_;
  std::string model_ = "{}";             // MadePlan::model.
  std::string plan_explanation_ = "{}";  // MadePlan::explanation.
  uint32_t slices_ = 1;
  Generation generation_;

  OrderBoard board_;
  SplitBoard splits_;
  std::optional<Course> course_;
  // What this run began with.
  Step first_step_ = 0;
  double trained_before_ = 0;             // Seconds.
  double predicted_step_ = 0;             // Seconds, by the planner.
  bool begun_ = false;                    // The checkpoint to begin with, if any, is loaded.
  std::optional<course::Order> out_;      // The order of the course that is out, but for training.
  std::optional<LossMetrics> evaluated_;  // Goal::kEvaluate.
  bool evaluation_issued_ = false, finish_issued_ = false, finished_ = false;
  bool stop_requested_ = false;
  // A checkpoint whose content is fixed and which these servers are still writing.
  struct Writing {
    Manifest manifest;
    bool best = false;
    std::set<ProcessId> servers;
    bool lost = false;  // A writer has died: when the others are done, it is abandoned.
  };
  std::optional<Writing> writing_;
  std::map<ProcessId, SavedMessage> saved_early_;
  std::set<ProcessId> writers_lost_;  // While others have not answered the order yet.
  std::string last_checkpoint_;
  std::optional<TimePoint> last_step_at_, last_checkpoint_at_;
  bool had_finished_ = false;  // This run began with a checkpoint of the last step.
  std::map<std::string, JobResult::Table> tables_;
  std::string dense_checksum_;
  std::map<ProcessId, ProcessStats> final_stats_;

  std::set<std::string> diverged_;  // Losses that have been warned of.
  // The rate of progress: steps done at a time not long ago.
  struct Pace {
    TimePoint at{};
    Step step = 0;
    double steps_per_second = 0;
  };
  Pace pace_;
  TimePoint trained_until_{};  // Workers apart: training up to here is counted.
};

}  // namespace dt::scheduler
