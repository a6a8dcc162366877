#include "scheduler/service/scheduler.h"

#include <algorithm>
#include <filesystem>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "common/base/entropy.h"
#include "common/base/host_name.h"
#include "common/base/log.h"
#include "common/control/control_link.h"
#include "common/control/packet.h"
#include "common/control/process_end.h"
#include "common/control/read_process_stats.h"
#include "common/net/http/http_server.h"
#include "common/runtime/event_loop.h"
#include "common/storage/files.h"
#include "common/wire/data.h"
#include "scheduler/plan/plan.h"
#include "scheduler/report/result_of.h"
#include "scheduler/service/disk_environment.h"
#include "scheduler/service/find_run.h"
#include "scheduler/service/longest_turn.h"
#include "scheduler/service/plan_of.h"
#include "scheduler/service/run_store.h"
#include "scheduler/service/session_router.h"
#include "scheduler/service/start_point.h"
#include "scheduler/service/status_pages.h"

namespace dt::scheduler {
namespace {

constexpr Duration kTick = milliseconds(20);
constexpr int kMessagesATurn = 256;
constexpr Duration kProgressEvery = milliseconds(250);
constexpr Duration kResendAfter = milliseconds(300);
constexpr Duration kEndTimeout = seconds(5);          // Time for all processes to receive Stop.
constexpr Duration kPageLinger = milliseconds(1500);  // Time for an open page to show the end.

class SchedulerImpl : public Scheduler {
 public:
  // `runs` is null for a job that only evaluates.
  SchedulerImpl(SchedulerOptions options, std::unique_ptr<ServerSocket> socket,
                std::unique_ptr<RunStore> runs)
      : options_(std::move(options)),
        socket_(std::move(socket)),
        runs_(std::move(runs)),
        router_(kResendAfter,
                [this](const PeerId& peer, const Packet& packet) {
                  // A failed send counts as lost: the session resends.
                  socket_->Send(peer, EncodePacket(packet)).IgnoreError();
                }),
        process_ends_(options_.process_ends) {}
  // Only now, when the result is where the caller wants it: one that follows a scheduler that was
  // killed before finds the run unfinished, and gives its result again.
  ~SchedulerImpl() override {
    if (has_run_ && runs_ != nullptr) runs_->EndRun().IgnoreError();
  }
  SchedulerImpl(const SchedulerImpl&) = delete;
  SchedulerImpl& operator=(const SchedulerImpl&) = delete;

  // Goes on with `run`; or begins another.
  Status Begin(std::optional<UnfinishedRun> run) {
    if (options_.goal == Goal::kEvaluate) return BeginEvaluation();
    DT_TRY_STATUS(run.has_value() ? Continue(*std::move(run)) : BeginRun());
    DT_TRY_STATUS(KeepRecord());  // Before anybody learns the address.
    if (options_.job.observe.http != "off") DT_TRY_STATUS(ServePage());
    return WriteRunFile();
  }

  const std::string& endpoint() const override { return socket_->endpoint(); }
  std::string page() const override { return http_ == nullptr ? "" : http_->url(); }

  JobResult Run(std::stop_token stop) override {
    const std::stop_callback on_stop(
        stop, [this] { loop_.Post([this] { job_->RequestStop(clock_.Now()); }); });
    last_tick_ = clock_.Now();
    if (socket_->descriptor() < 0) {
      loop_.Every(kTick / 4, [this] { Work(); });
    } else if (Status watched = loop_.Watch(socket_->descriptor(), [this] { Work(); });
               !watched.ok()) {
      LogWarn("scheduler.polls", {{"why", MessageOf(watched)}});
    }
    loop_.Every(kTick, [this] { Tick(); });
    if (options_.on_progress) loop_.Every(kProgressEvery, [this] { ReportProgress(); });
    loop_.Run();
    RemoveRunFile();
    has_run_ = true;
    return FinalResult();
  }

 private:
  Status BeginEvaluation() {
    DT_TRY(JobOptions::Checkpoint from, CheckpointToEvaluate(options_.job, options_.checkpoint));
    DT_TRY_STATUS(OpenEnvironment({}));
    MakeJob({.job = options_.job,
             .goal = options_.goal,
             .term = Term(1),
             .generation = Generation(1),
             .checkpoint = std::move(from),
             .run = EntropyBits()},
            {});
    return OkStatus();
  }

  Status BeginRun() {
    const JobConfig& job = options_.job;
    DT_TRY(StartPoint start, StartOfRun(job, options_.resume));
    DT_TRY_STATUS(OpenEnvironment(start.checkpoints));
    DT_TRY_STATUS(runs_->BeginRun({endpoint(), job.fingerprint, kWireVersion, WallSeconds()}));
    if (options_.on_begin) options_.on_begin();
    MakeJob({.job = job,
             .goal = options_.goal,
             .term = runs_->term(),
             .generation = runs_->generation(),
             .checkpoint = std::move(start.checkpoint),
             .run = EntropyBits(),
             .may_return = !one_process()},
            {});
    return OkStatus();
  }

  Status Continue(UnfinishedRun run) {
    const JobConfig& job = options_.job;
    DT_TRY(StartPoint start, StartWithin(job, run.record));
    DT_TRY_STATUS(OpenEnvironment(start.checkpoints));
    const double age = std::max(0.0, WallSeconds() - run.identity.begun);
    LogWarn("scheduler.continues", {{"phase", NameOf(run.record.phase)}, {"run_seconds", age}});
    MakeJob({.job = job,
             .goal = options_.goal,
             .term = runs_->term(),
             .generation = runs_->generation(),
             .checkpoint = std::move(start.checkpoint),
             .age = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(age)),
             .may_return = true},
            std::move(run.record));
    return OkStatus();
  }

  // The job returns to a checkpoint. The record of its new beginning is on the disk before anybody
  // hears of it.
  void BeginAgainIfNeeded(TimePoint now) {
    std::optional<Job::Beginning> again = job_->TakeBeginning();
    if (!again.has_value()) return;
    const std::vector<Outgoing> told = job_->TakeOutgoing();
    if (const Status begun = BeginAgain(now, *again); !begun.ok()) job_->Fail(now, begun);
    SendAll();
    for (const Outgoing& out : told) router_.Send(now, out.to, out.message);
    for (const JoinMessage& join : again->joins) job_->On(now, join.incarnation, join);
  }

  Status BeginAgain(TimePoint now, Job::Beginning& again) {
    std::unique_ptr<DiskEnvironment> former = std::move(environment_);
    Result<StartPoint> start =
        StartAgain(options_.job, std::move(again.checkpoint), again.record.begins_from);
    const Status opened = start.ok() ? OpenEnvironment(start->checkpoints) : start.status();
    if (!opened.ok()) environment_ = std::move(former);
    runs_->BeginAgain();
    MakeJob({.job = options_.job,
             .goal = options_.goal,
             .term = runs_->term(),
             .generation = again.record.generation,
             .checkpoint = start.ok() ? std::move(start->checkpoint) : std::nullopt,
             .age = job_->AgeAt(now),
             .may_return = true},
            std::move(again.record));
    DT_TRY_STATUS(opened);
    return KeepRecord();
  }

  Status OpenEnvironment(std::optional<CheckpointStore::Options> checkpoints) {
    DT_TRY(environment_,
           DiskEnvironment::Open({PlannerOf(),
                                  [this, number = ++environments_](PlanMade made) {
                                    PostPlan(number, std::move(made));
                                  },
                                  runs_.get(), std::move(checkpoints), &options_.job}));
    return OkStatus();
  }

  void MakeJob(const JobOptions& options, std::optional<JobRecord> record) {
    router_.SetTerm(options.term);
    const TimePoint now = clock_.Now();
    job_ = record.has_value()
               ? std::make_unique<Job>(options, *environment_, *std::move(record), now)
               : std::make_unique<Job>(options, *environment_, now);
    if (job_->phase() == JobPhase::kEnded) router_.Expect(job_->membership().members());
    pages_.emplace(
        *job_,
        StatusPages::Options{options_.job, one_process(),
                             [this] { return router_.malformed() + malformed_packets_; }, &turns_});
  }

  Planner PlannerOf() const {
    if (options_.planner) return options_.planner;
    return [&options = options_](const PlanInput& input) -> Result<MadePlan> {
      DT_TRY(MadePlan made, PlanOf(options.job, input));
      if (options.goal == Goal::kTrain) WarnOfSharedRows(made.plan);
      if (options.on_taken && !made.taken.report.empty()) options.on_taken(made.taken.report);
      return made;
    };
  }

  // Called on the planner's thread. The job may have begun again meanwhile.
  void PostPlan(uint64_t environment, PlanMade made) {
    loop_.Post([this, environment, made = std::make_shared<PlanMade>(std::move(made))] {
      if (environment != environments_) return;
      job_->On(clock_.Now(), std::move(*made));
      BeginAgainIfNeeded(clock_.Now());
      SendAll();
    });
  }

  Status ServePage() {
    DT_TRY(http_, HttpServer::Open(loop_, options_.job.observe.http,
                                   [this](const std::string& path) { return pages_->Page(path); }));
    LogInfo("scheduler.page", {{"url", http_->url()}});
    return OkStatus();
  }

  // Whether the other roles are threads of this process.
  bool one_process() const { return endpoint().starts_with("inproc:"); }

  std::string RunFile() const { return options_.job.run_dir + "/run.json"; }

  Status WriteRunFile() {
    nlohmann::ordered_json json = {
        {"job", options_.job.job}, {"pid", getpid()}, {"scheduler", endpoint()}, {"http", nullptr}};
    told_wanted_ = job_->record().wanted;
    if (told_wanted_.workers > 0) {
      json["wanted"] = {{"servers", told_wanted_.servers}, {"workers", told_wanted_.workers}};
    }
    if (http_ != nullptr) json["http"] = http_->url();
    return WriteWholeFile(RunFile(), json.dump(2) + "\n");
  }

  void RemoveRunFile() {
    std::error_code ignored;
    if (options_.goal == Goal::kTrain) std::filesystem::remove(RunFile(), ignored);
  }

  // Handles what has arrived and sends the answers. Takes at most kMessagesATurn messages, so that
  // a peer that never stops sending holds up neither the timers nor the page.
  void Work() {
    bool more = true;
    for (int left = kMessagesATurn; more && left > 0; --left) more = TakeOne();
    SendAll();
    if (!more || std::exchange(goes_on_, true)) return;
    loop_.Post([this] {
      goes_on_ = false;
      Work();
    });
  }

  // False when nothing more has arrived.
  bool TakeOne() {
    Result<PeerMessage> arrived = socket_->Receive(Duration(0));
    if (!arrived.ok()) return false;
    Result<Packet> packet = DecodePacket(
        arrived->frames, [this](uint64_t session) { return router_.PayloadBytesMax(session); });
    if (!packet.ok()) {
      ++malformed_packets_;
      return true;
    }
    const TimePoint now = clock_.Now();
    for (SessionRouter::Arrived& a : router_.OnPacket(now, arrived->peer, *std::move(packet))) {
      Take(now, std::move(a));
      BeginAgainIfNeeded(now);
    }
    return true;
  }

  void Take(TimePoint now, SessionRouter::Arrived arrived) {
    if (std::holds_alternative<StatusRequestMessage>(arrived.message)) {
      router_.Send(now, arrived.from, StatusReplyMessage{StatusJson(pages_->StatusNow())});
    } else if (const auto* drain = std::get_if<DrainRequestMessage>(&arrived.message)) {
      const Status begun = job_->Drain(now, drain->server);
      router_.Send(now, arrived.from, CommandReplyMessage{begun.code(), ProblemOf(begun)});
    } else if (const auto* scale = std::get_if<ScaleRequestMessage>(&arrived.message)) {
      Status begun = job_->Scale(now, scale->role, scale->count);
      // `launch` reads there how many processes it is to start.
      if (begun.ok() && job_->record().wanted != told_wanted_) begun = WriteRunFile();
      router_.Send(now, arrived.from, CommandReplyMessage{begun.code(), ProblemOf(begun)});
    } else {
      job_->On(now, arrived.from, std::move(arrived.message));
    }
  }

  void SendAll() {
    const TimePoint now = clock_.Now();
    std::vector<Outgoing> all = job_->TakeOutgoing();
    if (all.empty()) return;
    if (const Status kept = KeepRecord(); !kept.ok()) {
      if (job_->phase() != JobPhase::kEnded) all.clear();
      job_->Fail(now, kept);
      for (Outgoing& out : job_->TakeOutgoing()) all.push_back(std::move(out));
    }
    for (const Outgoing& out : all) router_.Send(now, out.to, out.message);
  }

  // What messages follow from is on the disk before anybody hears of it, so that another scheduler
  // can go on. A job in one process ends with its scheduler.
  Status KeepRecord() {
    if (runs_ == nullptr || one_process() || record_failed_) return OkStatus();
    Status kept = runs_->Keep(job_->record());
    record_failed_ = !kept.ok();
    return kept;
  }

  void Tick() {
    Work();
    const TimePoint now = clock_.Now();
    const Duration lease = options_.job.cluster.lease;
    turns_.Turn(now);
    if (now - last_tick_ > lease / 4) job_->ExtendLeases(now, now - last_tick_);
    last_tick_ = now;
    for (const ProcessEnd& end : process_ends_.Take()) {
      TakeEnd(now, end);
      BeginAgainIfNeeded(now);
    }
    job_->Tick(now);
    BeginAgainIfNeeded(now);
    SendAll();
    router_.Tick(now);
    if (job_->phase() != JobPhase::kEnded) return;
    if (!ended_.has_value()) ended_ = now;
    if (pages_->IsOpen(*ended_) && now - *ended_ < kPageLinger) return;
    if (router_.all_acknowledged(now - lease / 2) || now - *ended_ > kEndTimeout) loop_.Stop();
  }

  void TakeEnd(TimePoint now, const ProcessEnd& end) {
    const std::string host = HostName();
    const Member* const member = job_->membership().FindProcess(host, end.pid);
    if (member != nullptr) router_.Forget(member->incarnation());
    job_->OnProcessEnd(now, host, end);
  }

  void ReportProgress() {
    if (job_->phase() == JobPhase::kRunning && job_->training() != nullptr) {
      options_.on_progress(job_->training()->progress());
    }
  }

  JobResult FinalResult() const {
    JobResult result = ResultOf(*job_, ended_.value_or(clock_.Now()));
    const ProcessStats own = ReadProcessStats(&options_.network);
    // Roles in one process would all report the use of that process.
    if (one_process()) {
      for (JobResult::RoleReport& role : result.roles) role.usage.reset();
    }
    result.roles.insert(result.roles.begin(),
                        {"scheduler", 0, getpid(),
                         JobResult::Usage{own.cpu_seconds, own.peak_rss_bytes, own.bytes_sent,
                                          own.bytes_received}});
    return result;
  }

  const SchedulerOptions options_;
  const Clock& clock_ = SystemClock();
  const std::unique_ptr<ServerSocket> socket_;
  const std::unique_ptr<RunStore> runs_;  // Null for a job that only evaluates.
  EventLoop loop_;
  SessionRouter router_;
  ProcessEndReader process_ends_;
  std::unique_ptr<DiskEnvironment> environment_;
  uint64_t environments_ = 0;  // Opened so far.
  WantedRecord told_wanted_;   // As in run.json.
  std::unique_ptr<Job> job_;
  std::optional<StatusPages> pages_;
  std::unique_ptr<HttpServer> http_;
  TimePoint last_tick_{};
  LongestTurn turns_;
  std::optional<TimePoint> ended_;
  uint64_t malformed_packets_ = 0;
  bool goes_on_ = false;        // Work is posted for the loop's next turn.
  bool has_run_ = false;        // Run has returned.
  bool record_failed_ = false;  // The disk did not take the record, and the job was ended.
};

}  // namespace

Result<std::unique_ptr<Scheduler>> Scheduler::Open(SchedulerOptions options) {
  std::unique_ptr<RunStore> runs;
  FoundRun found;
  if (options.goal == Goal::kEvaluate) {
    DT_TRY(found.socket, options.network.Bind(options.listen));
  } else {
    DT_TRY(std::unique_ptr<StateStore> state, OpenRocksStateStore(options.job.run_dir + "/state"));
    DT_TRY(runs, RunStore::Open(std::move(state)));
    DT_TRY(found, BindAndFindRun(options.job, options.network, options.listen,
                                 options.follows_killed, *runs));
  }
  auto scheduler =
      std::make_unique<SchedulerImpl>(std::move(options), std::move(found.socket), std::move(runs));
  DT_TRY_STATUS(scheduler->Begin(std::move(found.run)));
  return scheduler;
}

}  // namespace dt::scheduler
