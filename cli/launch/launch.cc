// `dovetail launch`: runs the job as separate processes on this machine.
//
// Starts the scheduler, reads its address from run.json, starts servers and workers, and waits. It
// reports each ended process to the scheduler at once. Restarts processes that are killed, as often
// as cluster.restarts allows; then it lets those go that the job may go on without. Starts more
// when `dovetail scale` asks for them, which run.json says. The scheduler ends the job; if the
// scheduler itself is lost, this process ends the job. All processes are stopped before it returns.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <signal.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/launch/launch_result.h"
#include "cli/outcome.h"
#include "cli/process/child_process.h"
#include "cli/process/child_results.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/config/load_job.h"
#include "common/control/process_end.h"
#include "common/storage/json_file.h"

namespace dt::cli {
namespace {

constexpr Duration kSchedulerStart = seconds(30);
constexpr Duration kStopTimeout = seconds(3);  // Time between SIGTERM and SIGKILL.
constexpr Duration kCleanStop = seconds(60);   // Time for the scheduler's clean stop after Ctrl-C.
// Time for the scheduler to end the job after a role is lost.
constexpr Duration kAfterLoss = seconds(10);
// Time for the other processes to end after the scheduler has completed the job.
constexpr Duration kAfterScheduler = seconds(10);
constexpr Duration kAfterFailure = seconds(3);  // Like kAfterScheduler, after the job has failed.

class Launch {
 public:
  Launch(const CommandLine& line, const JobConfig& job, StopSignals& signals)
      : line_(line), job_(job), signals_(signals) {
    signals_.Heed();
  }
  ~Launch() {
    if (ends_ >= 0) close(ends_);
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  // Runs the job. Returns OK, or the error that the scheduler or the first lost process reports.
  Status Run() {
    DT_TRY(ChildResults results, ChildResults::Make(job_.run_dir));
    results_.emplace(std::move(results));
    Status status = StartAll();
    if (status.ok()) status = Watch();
    StopAll(children_, kStopTimeout);
    return status;
  }

  const std::vector<ChildProcess>& children() const { return children_; }
  // Set once it has run, unless even its folder could not be made.
  const std::optional<ChildResults>& results() const { return results_; }

 private:
  Status StartAll() {
    DT_TRY(scheduler_, StartScheduler());
    wanted_ = {job_.cluster.servers, job_.cluster.workers};
    for (uint32_t s = 0; s < wanted_.servers; ++s) DT_TRY_STATUS(StartNext("server"));
    for (uint32_t w = 0; w < wanted_.workers; ++w) DT_TRY_STATUS(StartNext("worker"));
    return OkStatus();
  }

  // Returns its endpoint.
  Result<std::string> StartScheduler() {
    const std::filesystem::file_time_type before = RunFileWritten();
    std::vector<std::string> arguments = Arguments(kSchedulerName, 0);
    arguments.insert(arguments.end(),
                     {"--result", results_->PathOf(kSchedulerName), "--resume", line_.resume});
    if (line_.no_progress) arguments.push_back("--no-progress");
    if (!children_.empty()) arguments.push_back("--follows-killed");
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      return Unavailable("cannot start the scheduler: {}", std::strerror(errno));
    }
    if (ends_ >= 0) close(ends_);
    ends_ = ends[1];
    const Status started = StartOne(kSchedulerName, arguments, ends[0]);
    close(ends[0]);
    DT_TRY_STATUS(started);
    return WaitForScheduler(before);
  }

  std::vector<std::string> Arguments(const std::string& role, uint32_t id) const {
    std::vector<std::string> arguments = {role, "--child", std::to_string(id)};
    for (std::string& shared : SharedArguments(line_)) arguments.push_back(std::move(shared));
    return arguments;
  }

  // Uses the ids that the scheduler will assign: the servers first, then the workers, then those
  // that are started later.
  Status StartNext(const std::string& role) { return StartRole(role, next_id_++); }
  Status StartRole(const std::string& role, uint32_t id) {
    const std::string name = fmt::format("{} {}", role, id);
    std::vector<std::string> arguments = Arguments(role, id);
    arguments.insert(arguments.end(),
                     {"--scheduler", scheduler_, "--result", results_->PathOf(name)});
    return StartOne(name, arguments, -1);
  }

  Status StartOne(const std::string& name, const std::vector<std::string>& arguments, int input) {
    DT_TRY(ChildProcess child,
           ChildProcess::Start(name, OwnProgram(), arguments, {.input = input, .keeps_log = true}));
    LogInfo("launch.started", {{"name", name}, {"pid", child.pid()}});
    const auto before = std::ranges::find(children_, name, &ChildProcess::name);
    if (before == children_.end()) {
      children_.push_back(std::move(child));
    } else {
      *before = std::move(child);
    }
    return OkStatus();
  }

  std::string RunFile() const { return job_.run_dir + "/run.json"; }
  std::filesystem::file_time_type RunFileWritten() const {
    std::error_code absent;
    return std::filesystem::last_write_time(RunFile(), absent);
  }

  // Reads the scheduler's endpoint from the run.json that this scheduler wrote. An older run.json
  // belongs to another scheduler, even if its pid is the same: in containers pids repeat.
  Result<std::string> WaitForScheduler(std::filesystem::file_time_type before) {
    std::string endpoint;
    WaitFor(children_, kSchedulerStart, [&](const std::vector<ChildProcess>& children) {
      if (!children.front().running() || signals_.received() != 0) return true;
      if (RunFileWritten() == before) return false;
      const Result<Json> json = ReadJsonFile(RunFile());
      if (!json.ok() || NumberOf(*json, "pid") != children.front().pid()) return false;
      endpoint = TextOf(*json, "scheduler");
      return true;
    });
    if (!endpoint.empty()) return endpoint;
    if (signals_.received() != 0) return Cancelled("stopped before the job began");
    if (!children_.front().running()) {
      const Status end = SchedulerEnd(children_, *results_);
      return end.ok() ? Cancelled("the job has ended") : end;
    }
    return Timeout("the scheduler did not write {} within {} s", RunFile(),
                   std::chrono::duration_cast<seconds>(kSchedulerStart).count());
  }

  Status Watch() {
    constexpr Duration kForever = std::chrono::hours(24 * 365);
    const auto something = [this](const std::vector<ChildProcess>& children) {
      return signals_.received() != 0 || FirstLost(children) != nullptr ||
             !children.front().running() || RunFileWritten() != run_file_read_;
    };
    do {
      WaitFor(children_, kForever, something);
      DT_TRY_STATUS(RestoreScheduler());
    } while (StartWanted() || RestartOthers() || LetOthersGoOn());
    const auto scheduler_ended = [](const std::vector<ChildProcess>& children) {
      return !children.front().running();
    };
    if (signals_.received() != 0) {
      children_.front().Signal(SIGTERM);
      WaitFor(children_, kCleanStop, scheduler_ended);
      LetOthersEnd();
      const Status said = results_->ErrorOf(children_.front());
      return said.ok() ? Cancelled("the job was stopped") : said;
    }
    const ChildProcess* lost = FirstLost(children_);
    if (lost != nullptr && lost != &children_.front()) {
      const ProcessEnd end = TellEnd(*lost, false);
      if (!WaitFor(children_, kAfterLoss, scheduler_ended)) {
        return Unavailable("{} (pid {}) {}", end.name, end.pid, end.how);
      }
    }
    LetOthersEnd();
    return SchedulerEnd(children_, *results_);
  }

  // Reports the end of the process, so that the scheduler need not wait for its lease to expire.
  ProcessEnd TellEnd(const ChildProcess& child, bool returns) {
    ProcessEnd end{child.name(), child.pid(), child.exit()->Text(), returns};
    if (const Status own = results_->ErrorOf(child); !own.ok()) end.how += ": " + ToText(own);
    const Status told = SendProcessEnd(ends_, end);
    LogInfo("launch.process_ended", {{"name", end.name},
                                     {"pid", end.pid},
                                     {"how", end.how},
                                     {"problem", told.ok() ? "" : ToText(told)}});
    told_ends_.push_back(end);
    return end;
  }

  // Whether the process was killed or crashed, or the job has gone on without it, and the job
  // allows another restart. A process that exited for another reason has said why, and would end in
  // the same way again.
  bool MayRestart(const ChildProcess& child) const {
    const std::optional<ChildExit>& exit = child.exit();
    if (!exit.has_value() || restarts_ >= job_.cluster.restarts) return false;
    return exit->signal != 0 || MessageOf(results_->ErrorOf(child)).starts_with(kGoneOnWithout);
  }

  void NoteRestart(const ChildProcess& child, const ChildExit& exit, const Status& status) const {
    LogWarn("launch.restarted", {{"name", child.name()},
                                 {"how", exit.Text()},
                                 {"restarts_left", job_.cluster.restarts - restarts_},
                                 {"problem", status.ok() ? "" : ToText(status)}});
  }

  // If the scheduler was killed, and the job allows it, starts another, which goes on with the job.
  Status RestoreScheduler() {
    const ChildProcess& child = children_.front();
    if (signals_.received() != 0 || !MayRestart(child)) return OkStatus();
    if (results_->ResultOf(kSchedulerName).is_object()) return OkStatus();  // The job had ended.
    ++restarts_;
    const ChildExit exit = *child.exit();
    const pid_t pid = child.pid();
    Result<std::string> started = StartScheduler();
    // The job may have been at its end already.
    if (!children_.front().running() && SchedulerEnd(children_, *results_).ok())
      started = scheduler_;
    if (started.ok() && *started != scheduler_) {
      started =
          Unavailable("it listens at {}, but the others look for it at {}", *started, scheduler_);
    }
    NoteRestart(child, exit, started.status());
    if (!started.ok()) {
      return Prefixed(
          started.status(),
          fmt::format("the scheduler (pid {}) {} and has not come back", pid, exit.Text()));
    }
    // The new scheduler knows only those ends that the one before it has written down.
    for (const ProcessEnd& end : told_ends_) SendProcessEnd(ends_, end).IgnoreError();
    restored_ = true;
    return OkStatus();
  }

  // Starts the servers and workers that the user wants besides those that were started. Returns
  // true if the numbers may have changed, and nothing else has happened.
  bool StartWanted() {
    if (signals_.received() != 0 || !children_.front().running()) return false;
    const std::filesystem::file_time_type written = RunFileWritten();
    if (written == run_file_read_) return false;
    run_file_read_ = written;
    const Json wanted = MemberOf(ReadJsonFile(RunFile()).value_or(Json()), "wanted");
    if (wanted.is_object()) {
      Start("server", CountOf(wanted, "servers"), wanted_.servers);
      Start("worker", CountOf(wanted, "workers"), wanted_.workers);
    }
    return FirstLost(children_) == nullptr;
  }
  // The scheduler sees to it that there are fewer.
  void Start(const std::string& role, uint64_t wanted, uint32_t& before) {
    for (uint64_t more = before; more < wanted; ++more) {
      if (const Status started = StartNext(role); !started.ok()) {
        LogWarn("launch.cannot_start", {{"role", role}, {"why", ToText(started)}});
      }
    }
    before = static_cast<uint32_t>(wanted);
  }

  // Returns true if a process was restarted and no other is lost.
  bool RestartOthers() {
    if (signals_.received() != 0 || !children_.front().running()) return false;
    bool started = std::exchange(restored_, false);
    for (size_t c = 1; c < children_.size(); ++c) {
      const ChildProcess& child = children_[c];
      if (let_go_.contains(child.name()) || !MayRestart(child)) continue;
      ++restarts_;
      // Another process has its log, or gets its part from others or from the last checkpoint.
      TellEnd(child, true);
      const ChildExit exit = *child.exit();
      const std::string name = child.name();
      const size_t space = name.find(' ');
      const Status status = StartRole(name.substr(0, space),
                                      static_cast<uint32_t>(std::stoul(name.substr(space + 1))));
      NoteRestart(children_[c], exit, status);
      started = started || status.ok();
    }
    return started && FirstLost(children_) == nullptr;
  }

  // With several copies of every shard the job may go on without a server, and with several workers
  // without one of them; the scheduler decides. Returns true if only such processes are lost.
  bool LetOthersGoOn() {
    if (signals_.received() != 0) return false;
    if (!children_.front().running()) return false;
    const ChildProcess* lost = FirstLost(children_);
    if (lost == nullptr) return false;
    for (; lost != nullptr; lost = FirstLost(children_)) {
      const bool server = lost->name().starts_with("server ") && job_.cluster.replicas > 1;
      const bool worker = lost->name().starts_with("worker ") && wanted_.workers > 1;
      if (!server && !worker) return false;
      TellEnd(*lost, false);
      let_go_.insert(lost->name());
    }
    return true;
  }

  // The first child that ended with an error while the scheduler had not ended the job.
  const ChildProcess* FirstLost(const std::vector<ChildProcess>& children) const {
    for (const ChildProcess& child : children) {
      if (let_go_.contains(child.name())) continue;
      if (child.exit().has_value() && (child.exit()->code != 0 || child.exit()->signal != 0)) {
        return &child;
      }
    }
    return nullptr;
  }

  void LetOthersEnd() {
    const std::optional<ChildExit>& scheduler = children_.front().exit();
    // The others cannot know that the job has ended.
    if (scheduler.has_value() && scheduler->signal != 0) return;
    const bool complete = scheduler.has_value() && scheduler->code == 0;
    const Duration timeout = complete ? kAfterScheduler : kAfterFailure;
    WaitFor(children_, timeout, [](const std::vector<ChildProcess>& children) {
      for (const ChildProcess& child : children) {
        if (child.running()) return false;
      }
      return true;
    });
  }

  const CommandLine& line_;
  const JobConfig& job_;
  StopSignals& signals_;
  std::optional<ChildResults> results_;  // Set before the first child starts.
  int ends_ = -1;                        // The pipe to the scheduler; see process_end.h.
  std::vector<ChildProcess> children_;   // By id; the scheduler is first.
  std::string scheduler_;                // The scheduler's endpoint.
  std::vector<ProcessEnd> told_ends_;    // By TellEnd; a new scheduler is told again.
  std::set<std::string> let_go_;         // Processes that the job may go on without.
  uint32_t next_id_ = 1;                 // The next server or worker gets this number.
  struct Wanted {
    uint32_t servers = 0, workers = 0;
  } wanted_;                                         // As started.
  std::filesystem::file_time_type run_file_read_{};  // When it was written.
  uint32_t restarts_ = 0;                            // Restarts so far.
  bool restored_ = false;  // The scheduler, since the others were last looked at.
};

}  // namespace

int RunLaunch(const CommandLine& line, StopSignals& signals) {
  const Result<JobConfig> job = LoadJob(line.job_path, {.overrides = line.overrides});
  if (!job.ok()) return EndWithError(line, "", job.status());
  if (job->observe.log_json) SetLogFormat(LogFormat::kJson);
  const TimePoint begin = SystemClock().Now();
  Launch launch(line, *job, signals);
  const Status status = launch.Run();
  const Json result = launch.results() ? launch.results()->ResultOf(kSchedulerName) : Json();
  const double seconds = SecondsBetween(begin, SystemClock().Now());
  const std::string text = ResultText(result, {.job = job->job, .status = status}, seconds);
  const int code = EndJobWith(line, status, text, signals);
  if (!status.ok()) PrintLostLog(launch.children(), result);
  return code;
}

}  // namespace dt::cli
