#include "cli/local_job.h"

#include <thread>

#include "cli/process/leftovers.h"
#include "cli/summary.h"
#include "common/base/thread_name.h"
#include "common/net/socket.h"
#include "server/service/server.h"
#include "worker/service/worker.h"

namespace dt::cli {
namespace {

// The job with the cluster that one process simulates.
JobConfig OneProcess(JobConfig job) {
  job.cluster.servers = job.cluster.replicas = 1;
  job.cluster.workers = 1;
  job.parallel.data = 0;
  job.parallel.cut.clear();
  for (NodeConfig& node : job.model.nodes) node.strategy.reset();
  return job;
}

// The arguments of the roles other than the scheduler.
struct Begin {
  const JobConfig& job;
  Network& network;
  std::string scheduler;
  std::string predictions_path;
  bool evaluates = false;
  std::function<void(Step step)> on_step;
  std::stop_token stop;      // Stops the role.
  std::stop_token job_stop;  // Set when the scheduler has been asked for a clean stop.
};

Status RunServer(const Begin& begin) {
  DT_TRY(const auto server, server::Server::Open({.job = begin.job,
                                                  .network = begin.network,
                                                  .scheduler = begin.scheduler,
                                                  .listen = "inproc://server",
                                                  .one_process = true}));
  return server->Run(begin.stop);
}

Status RunWorker(const Begin& begin) {
  DT_TRY(const auto worker, worker::Worker::Open({.job = begin.job,
                                                  .network = begin.network,
                                                  .scheduler = begin.scheduler,
                                                  .one_process = true,
                                                  .evaluates = begin.evaluates,
                                                  .predictions_path = begin.predictions_path,
                                                  .stop = begin.stop,
                                                  .skip_delays = begin.job_stop,
                                                  .on_step = begin.on_step}));
  return worker->Run(begin.stop);
}

}  // namespace

JobResult RunLocalJob(const JobConfig& given, const LocalJobOptions& options) {
  const JobConfig job = OneProcess(given);
  const std::unique_ptr<Network> network = MakeZmqNetwork({});
  JobResult result;
  auto scheduler = scheduler::Scheduler::Open({.job = job,
                                               .network = *network,
                                               .listen = "inproc://scheduler",
                                               .goal = options.goal,
                                               .resume = options.resume,
                                               .checkpoint = options.checkpoint,
                                               .on_begin = [&] { RemoveLeftovers(job); },
                                               .on_taken = PrintTaken,
                                               .on_progress = options.on_progress});
  if (!scheduler.ok()) {
    result.job = job.job;
    result.status = scheduler.status();
    return result;
  }
  if (options.goal == scheduler::Goal::kTrain) PrintPage((*scheduler)->page());
  // The roles stop when the scheduler tells them to. This stop is for a scheduler that has ended
  // without doing so.
  std::stop_source roles;
  std::stop_source job_stop;
  const std::stop_callback forward(options.stop, [&] { job_stop.request_stop(); });
  const Begin begin{job,
                    *network,
                    (*scheduler)->endpoint(),
                    options.predictions_path,
                    options.goal == scheduler::Goal::kEvaluate,
                    options.on_step,
                    roles.get_token(),
                    job_stop.get_token()};
  Status server_end, worker_end;
  {
    const auto run = [&](const char* name, auto body, Status& status) {
      return std::jthread([&, name, body] {
        NameThread(name);
        status = body(begin);
        if (!status.ok()) job_stop.request_stop();
      });
    };
    const std::jthread server = run("server", RunServer, server_end);
    const std::jthread worker = run("worker", RunWorker, worker_end);
    result = (*scheduler)->Run(job_stop.get_token());
    roles.request_stop();
  }
  // If a role failed before it could tell the scheduler, its error is the cause of the stop.
  const bool stopped = result.status.code() == StatusCode::kCancelled;
  if (stopped && !options.stop.stop_requested()) {
    result.status = !worker_end.ok() ? worker_end : server_end;
  }
  return result;
}

}  // namespace dt::cli
