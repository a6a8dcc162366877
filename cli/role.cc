// `dovetail scheduler|server|worker`: runs one role in the foreground.
#include <cstdio>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/outcome.h"
#include "cli/process/leftovers.h"
#include "cli/progress.h"
#include "cli/summary.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/base/pause.h"
#include "common/config/load_job.h"
#include "common/control/key_files.h"
#include "common/net/shm/shm_network.h"
#include "common/net/socket.h"
#include "scheduler/service/scheduler.h"
#include "server/service/server.h"
#include "worker/service/worker.h"

namespace dt::cli {
namespace {

constexpr Duration kKeyTimeout = seconds(30);  // Time for the scheduler to create the job's key.
constexpr Duration kRebindTimeout = seconds(3), kRebindPause = milliseconds(100);

int RunScheduler(const CommandLine& line, const JobConfig& job, Network& network,
                 StopSignals& signals) {
  const TimePoint begin = SystemClock().Now();
  ProgressPrinter progress(line);
  auto scheduler = scheduler::Scheduler::Open(
      {.job = job,
       .network = network,
       .listen = line.listen.empty() ? job.cluster.scheduler : line.listen,
       .resume = line.resume,
       .on_begin = [&] { RemoveLeftovers(job); },
       .follows_killed = line.follows_killed,
       .process_ends = line.child.has_value() ? STDIN_FILENO : -1,
       .on_taken = PrintTaken,
       .on_progress = [&](const auto& p) { progress(p); }});
  if (!scheduler.ok()) return EndWithError(line, job.job, scheduler.status());
  PrintPage((*scheduler)->page());
  JobResult result = (*scheduler)->Run(signals.token());
  progress.Finish();
  result.seconds_total = SecondsBetween(begin, SystemClock().Now());
  if (result.status.ok()) PrintSummary(result);
  return EndJob(line, result, signals);
}

Status RunServer(const CommandLine& line, const JobConfig& job, Network& network,
                 std::stop_token stop) {
  const std::unique_ptr<Network> data_network = MakeShmNetwork(network);
  Result<std::unique_ptr<server::Server>> server;
  const auto opened = [&] {
    server =
        server::Server::Open({.job = job,
                              .network = network,
                              .scheduler = line.scheduler,
                              .listen = line.listen.empty() ? "tcp://127.0.0.1:0" : line.listen,
                              .id = ProcessId(line.child.value_or(0)),
                              .data_network = data_network.get()});
    return server.ok() || server.status().code() != StatusCode::kUnavailable;
  };
  // The ports of a server that begins again may not be free yet.
  PollUntil(SystemClock().Now() + kRebindTimeout, kRebindPause, opened);
  DT_TRY_STATUS(server.status());
  return (*server)->Run(stop);
}

// The host of "tcp://HOST:PORT", or the text itself.
std::string HostOf(const std::string& listen) {
  const size_t begin = listen.find("://") == std::string::npos ? 0 : listen.find("://") + 3;
  const size_t end = listen.rfind(':');
  return listen.substr(begin,
                       end == std::string::npos || end < begin ? std::string::npos : end - begin);
}

Status RunWorker(const CommandLine& line, const JobConfig& job, Network& network,
                 std::stop_token stop) {
  ArmFailpoint(fmt::format("worker {}", line.child.value_or(0)));
  const std::unique_ptr<Network> data_network = MakeShmNetwork(network);
  DT_TRY(const auto worker,
         worker::Worker::Open({.job = job,
                               .network = network,
                               .scheduler = line.scheduler,
                               .host = line.listen.empty() ? "127.0.0.1" : HostOf(line.listen),
                               .id = ProcessId(line.child.value_or(0)),
                               .stop = stop,
                               .data_network = data_network.get()}));
  return worker->Run(stop);
}

// When the job returns to a checkpoint the role begins again, as a new member.
Status RunMember(const CommandLine& line, const JobConfig& job, Network& network,
                 std::stop_token stop) {
  const auto run = line.command == "server" ? RunServer : RunWorker;
  for (;;) {
    Status status = run(line, job, network, stop);
    if (status.code() != StatusCode::kAborted || stop.stop_requested()) return status;
    LogInfo("role.joins_again", {{"why", MessageOf(status)}});
  }
}

}  // namespace

int RunRole(const CommandLine& given, StopSignals& signals) {
  CommandLine line = given;
  const Result<JobConfig> job = LoadJob(line.job_path, {.overrides = line.overrides});
  if (!job.ok()) return EndWithError(line, "", job.status());
  InitLog({.level = line.log_level,
           .format = job->observe.log_json ? LogFormat::kJson : LogFormat::kText,
           .role = line.command});
  const bool schedules = line.command == "scheduler";
  const Result<ZmqOptions> sockets = SocketOptionsOf(*job, {.makes_keys = schedules,
                                                            .listens = line.command != "worker",
                                                            .timeout = kKeyTimeout,
                                                            .stop = signals.token()});
  if (!sockets.ok()) return EndWithError(line, job->job, sockets.status());
  const std::unique_ptr<Network> network = MakeZmqNetwork(*sockets);
  if (schedules) return RunScheduler(line, *job, *network, signals);

  if (line.scheduler.empty()) line.scheduler = job->cluster.scheduler;
  if (line.scheduler.ends_with(":0")) {
    return EndWithError(line, job->job,
                        Invalid("{} needs --scheduler tcp://HOST:PORT, or a fixed port in "
                                "cluster.scheduler (it is {})",
                                line.command, job->cluster.scheduler));
  }
  const Status status = RunMember(line, *job, *network, signals.token());
  JobResult result;
  result.job = job->job;
  result.status = status;
  return EndJob(line, result, signals);
}

}  // namespace dt::cli
