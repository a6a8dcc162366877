#include "scheduler/service/scheduler.h"

#include <algorithm>
#include <filesystem>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "common/base/host_name.h"
#include "common/base/log.h"
#include "common/control/control_link.h"
#include "common/control/packet.h"
#include "common/control/process_end.h"
#include "common/control/read_process_stats.h"
#include "common/net/http/http_server.h"
#include "common/runtime/event_loop.h"
#include "common/storage/files.h"
#include "scheduler/plan/plan.h"
#include "scheduler/report/dump_plan.h"
#include "scheduler/report/page.h"
#include "scheduler/report/result_of.h"
#include "scheduler/report/status_of.h"
#include "scheduler/report/timeline_files.h"
#include "scheduler/service/disk_environment.h"
#include "scheduler/service/plan_of.h"
#include "scheduler/service/session_router.h"

namespace dt::scheduler {
namespace {

constexpr Duration kPoll = milliseconds(5);
constexpr int kMessagesATurn = 256;
constexpr Duration kProgressEvery = milliseconds(250);
constexpr Duration kResendAfter = milliseconds(300);
constexpr Duration kEndTimeout = seconds(5);  // Time for all processes to receive Stop.
// An open page asks every second. If it asked lately, it gets time to show how the job ended.
constexpr Duration kPageIsOpen = seconds(3);
constexpr Duration kPageLinger = milliseconds(1500);

Result<std::optional<JobOptions::Checkpoint>> CheckpointOf(const SchedulerOptions& options) {
  const JobConfig& job = options.job;
  std::optional<std::string> folder;
  if (options.goal == Goal::kEvaluate) {
    folder = options.checkpoint;
  } else if (options.resume == "auto") {
    DT_TRY(folder, NewestCheckpoint(job.checkpoint.dir));
    if (!folder.has_value()) LogInfo("job.nothing_to_resume", {{"dir", job.checkpoint.dir}});
  } else if (options.resume != "never") {
    folder = options.resume;
  }
  if (!folder.has_value()) return std::optional<JobOptions::Checkpoint>();
  const bool verified = options.goal != Goal::kEvaluate && options.resume == "auto";
  if (!verified) DT_TRY_STATUS(VerifyButRows(*folder));
  DT_TRY(Manifest manifest, ReadManifest(*folder));
  DT_TRY_STATUS(options.goal == Goal::kEvaluate ? CheckSameModel(manifest, job, *folder)
                                                : CheckSameJob(manifest, job, *folder));
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(*folder, error);
  return std::optional<JobOptions::Checkpoint>(
      {error ? *folder : real.string(), std::move(manifest)});
}

class SchedulerImpl : public Scheduler {
 public:
  SchedulerImpl(SchedulerOptions options, std::unique_ptr<ServerSocket> socket)
      : options_(std::move(options)),
        socket_(std::move(socket)),
        router_(kResendAfter,
                [this](const PeerId& peer, const Packet& packet) {
                  // A failed send counts as lost: the session resends.
                  socket_->Send(peer, EncodePacket(packet)).IgnoreError();
                }),
        process_ends_(options_.process_ends) {}

  Status Begin() {
    DT_TRY(const std::optional<JobOptions::Checkpoint> checkpoint, CheckpointOf(options_));
    std::optional<Step> resumed;
    if (checkpoint.has_value()) resumed = checkpoint->manifest.schedule.step;
    const bool evaluates = options_.goal == Goal::kEvaluate;
    std::optional<BestCheckpoint> best;
    if (checkpoint.has_value() && !evaluates) {
      DT_TRY(best, BestOfResumed(checkpoint->folder, checkpoint->manifest));
    }
    DT_TRY(environment_,
           DiskEnvironment::Open({options_.job, PlannerOf(),
                                  [this](PlanMade made) { PostPlan(std::move(made)); }, evaluates,
                                  resumed, std::move(best)}));
    router_.SetTerm(environment_->term());
    const JobOptions job{options_.job, options_.goal, environment_->term(),
                         environment_->generation(), checkpoint};
    job_ = std::make_unique<Job>(job, *environment_, clock_.Now());
    if (evaluates) return OkStatus();
    if (options_.on_begin) options_.on_begin();
    if (options_.job.observe.http != "off") DT_TRY_STATUS(ServePage());
    return WriteRunFile();
  }

  const std::string& endpoint() const override { return socket_->endpoint(); }
  std::string page() const override { return http_ == nullptr ? "" : http_->url(); }

  JobResult Run(std::stop_token stop) override {
    const std::stop_callback on_stop(
        stop, [this] { loop_.Post([this] { job_->RequestStop(clock_.Now()); }); });
    last_tick_ = clock_.Now();
    if (socket_->descriptor() >= 0) {
      const Status watched = loop_.Watch(socket_->descriptor(), [this] { Work(); });
      if (!watched.ok()) LogWarn("scheduler.polls", {{"why", MessageOf(watched)}});
    }
    loop_.Every(kPoll, [this] {
      Work();
      Tick();
    });
    if (options_.on_progress) loop_.Every(kProgressEvery, [this] { ReportProgress(); });
    loop_.Run();
    RemoveRunFile();
    return FinalResult();
  }

 private:
  Planner PlannerOf() const {
    if (options_.planner) return options_.planner;
    return [&options = options_](const PlanInput& input) -> Result<MadePlan> {
      DT_TRY(MadePlan made, PlanOf(options.job, input));
      if (options.goal == Goal::kTrain) WarnOfSharedRows(made.plan);
      return made;
    };
  }

  // Called on the planner's thread.
  void PostPlan(PlanMade made) {
    loop_.Post([this, made = std::make_shared<PlanMade>(std::move(made))] {
      job_->On(clock_.Now(), std::move(*made));
      SendAll();
    });
  }

  Status ServePage() {
    DT_TRY(http_, HttpServer::Open(loop_, options_.job.observe.http,
                                   [this](const std::string& path) { return Page(path); }));
    LogInfo("scheduler.page", {{"url", http_->url()}});
    return OkStatus();
  }

  HttpReply Page(const std::string& path) {
    if (path == "/" || path == "/status") page_asked_ = clock_.Now();
    if (path == "/") return {200, "text/html; charset=utf-8", StatusPage()};
    if (path == "/status") return {200, "application/json", StatusJson(StatusNow())};
    if (path == "/metrics") return {200, "text/plain; version=0.0.4", StatusMetrics(StatusNow())};
    constexpr const char* kText = "text/plain; charset=utf-8";
    if (path == "/healthz") return {200, kText, "ok\n"};
    if (path == "/readyz") {
      const bool ready = job_->phase() == JobPhase::kRunning;
      return {ready ? 200 : 503, kText, fmt::format("{}\n", NameOf(job_->phase()))};
    }
    if (path == "/plan" && !PlanHtml().empty()) {
      return {200, "text/html; charset=utf-8", PlanHtml()};
    }
    if (options_.job.observe.trace) {
      const std::string folder = options_.job.run_dir + "/trace";
      if (std::optional<HttpReply> reply = TimelineReply(folder, path)) return *std::move(reply);
    }
    return {404, kText, "there is /, /status, /metrics, /healthz, /readyz, /plan and /timeline\n"};
  }

  // Made once, because it is slow and every process on this machine may ask. Empty before the plan.
  const std::string& PlanHtml() {
    if (plan_page_.empty() && job_->plan().has_value()) {
      plan_page_ = DumpPlan(*job_->plan(), DumpFormat::kHtml, options_.job.job,
                            job_->record().plan.explanation);
    }
    return plan_page_;
  }

  JobStatus StatusNow() {
    const TimePoint now = clock_.Now();
    JobStatus status = StatusOf(*job_, now);
    if (one_process()) MergeProcesses(status);
    const auto wall = [&](std::optional<TimePoint> at) {
      return at.has_value() ? std::optional(WallSeconds() - SecondsBetween(*at, now))
                            : std::nullopt;
    };
    if (const TrainingRun* const training = job_->training(); training != nullptr) {
      status.last_step_time = wall(training->last_step_at());
      status.last_checkpoint_time = wall(training->last_checkpoint_at());
    }
    status.malformed = router_.malformed() + malformed_packets_;
    return status;
  }

  // Whether the other roles are threads of this process.
  bool one_process() const { return endpoint().starts_with("inproc:"); }

  std::string RunFile() const { return options_.job.run_dir + "/run.json"; }

  Status WriteRunFile() {
    nlohmann::ordered_json json = {
        {"job", options_.job.job}, {"pid", getpid()}, {"scheduler", endpoint()}, {"http", nullptr}};
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
    }
    return true;
  }

  void Take(TimePoint now, SessionRouter::Arrived arrived) {
    if (std::holds_alternative<StatusRequestMessage>(arrived.message)) {
      router_.Send(now, arrived.from, StatusReplyMessage{StatusJson(StatusNow())});
    } else {
      job_->On(now, arrived.from, std::move(arrived.message));
    }
  }

  void SendAll() {
    const TimePoint now = clock_.Now();
    for (const Outgoing& out : job_->TakeOutgoing()) router_.Send(now, out.to, out.message);
  }

  void Tick() {
    const TimePoint now = clock_.Now();
    const Duration lease = options_.job.cluster.lease;
    if (now - last_tick_ > lease / 4) job_->ExtendLeases(now, now - last_tick_);
    last_tick_ = now;
    for (const ProcessEnd& end : process_ends_.Take()) TakeEnd(now, end);
    job_->Tick(now);
    SendAll();
    router_.Tick(now);
    if (job_->phase() != JobPhase::kEnded) return;
    if (!ended_.has_value()) ended_ = now;
    if (page_asked_ + kPageIsOpen > *ended_ && now - *ended_ < kPageLinger) return;
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
  EventLoop loop_;
  SessionRouter router_;
  ProcessEndReader process_ends_;
  std::unique_ptr<DiskEnvironment> environment_;
  std::unique_ptr<Job> job_;
  std::unique_ptr<HttpServer> http_;
  TimePoint last_tick_{};
  std::optional<TimePoint> ended_;
  std::string plan_page_;
  TimePoint page_asked_{};  // When the page or its status was last requested.
  uint64_t malformed_packets_ = 0;
  bool goes_on_ = false;  // Work is posted for the loop's next turn.
};

}  // namespace

Result<std::unique_ptr<Scheduler>> Scheduler::Open(SchedulerOptions options) {
  DT_TRY(std::unique_ptr<ServerSocket> socket, options.network.Bind(options.listen));
  auto scheduler = std::make_unique<SchedulerImpl>(std::move(options), std::move(socket));
  DT_TRY_STATUS(scheduler->Begin());
  return scheduler;
}

}  // namespace dt::scheduler
