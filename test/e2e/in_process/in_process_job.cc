#include "test/e2e/in_process/in_process_job.h"

#include <thread>

#include <gtest/gtest.h>

#include "common/config/load_job.h"
#include "common/net/socket.h"
#include "scheduler/service/plan_of.h"
#include "scheduler/service/scheduler.h"
#include "server/service/server.h"
#include "worker/service/worker.h"

namespace dt::test {
namespace {

Result<JobConfig> JobIn(const TempFolder& folder, const std::string& name, const JobShape& shape) {
  const std::string file = WriteTinyJob(folder, {.job = name,
                                                 .rows = shape.rows,
                                                 .epochs = shape.epochs,
                                                 .batch_size = shape.batch_size,
                                                 .slices = shape.slices,
                                                 .servers = shape.servers,
                                                 .workers = shape.workers,
                                                 .executors = shape.executors,
                                                 .staleness = shape.staleness,
                                                 .loss = shape.loss,
                                                 .more = shape.more});
  DT_TRY(JobConfig job, LoadJob(file, {.overrides = shape.set}));
  job.run_dir = folder.path() + "/runs/" + name;
  job.checkpoint.dir = job.run_dir + "/checkpoints";
  job.data.cache_dir = folder.path() + "/cache";
  return job;
}

}  // namespace

JobRun RunJob(const TempFolder& folder, const std::string& name, const JobShape& shape,
              const RunOptions& options) {
  JobRun run;
  const Result<JobConfig> job = JobIn(folder, name, shape);
  EXPECT_TRUE(job.ok()) << ToText(job.status());
  if (!job.ok()) return run;
  const std::unique_ptr<Network> network = MakeZmqNetwork({});
  const std::unique_ptr<Network> data =
      options.data_network ? options.data_network(*network) : nullptr;
  auto scheduler = scheduler::Scheduler::Open({.job = *job,
                                               .network = *network,
                                               .listen = "inproc://scheduler",
                                               .goal = options.goal,
                                               .resume = options.resume,
                                               .checkpoint = options.checkpoint,
                                               .planner = [&](const scheduler::PlanInput& input) {
                                                 auto made = scheduler::PlanOf(*job, input);
                                                 if (made.ok()) run.plan = made->plan;
                                                 return made;
                                               }});
  EXPECT_TRUE(scheduler.ok()) << ToText(scheduler.status());
  if (!scheduler.ok()) return run;
  const std::string endpoint = (*scheduler)->endpoint();
  run.roles.resize(shape.servers + shape.workers);
  std::stop_source stop;
  {
    std::vector<std::jthread> threads;
    for (uint32_t i = 0; i < shape.servers; ++i) {
      threads.emplace_back([&, i] {
        auto server = server::Server::Open({.job = *job,
                                            .network = *network,
                                            .scheduler = endpoint,
                                            .listen = "inproc://server" + std::to_string(i)});
        run.roles[i] = server.ok() ? (*server)->Run(stop.get_token()) : server.status();
      });
    }
    for (uint32_t i = 0; i < shape.workers; ++i) {
      threads.emplace_back([&, i] {
        const std::vector<Accelerator*>& given = options.accelerators;
        auto worker = worker::Worker::Open({.job = *job,
                                            .network = *network,
                                            .scheduler = endpoint,
                                            .threads = 1,
                                            .data_network = data.get(),
                                            .accelerator = i < given.size() ? given[i] : nullptr});
        run.roles[shape.servers + i] =
            worker.ok() ? (*worker)->Run(stop.get_token()) : worker.status();
      });
    }
    run.result = (*scheduler)->Run(stop.get_token());
    stop.request_stop();
  }
  return run;
}

void ExpectCompleted(const JobRun& run) {
  EXPECT_TRUE(run.result.status.ok()) << ToText(run.result.status);
  for (const Status& role : run.roles) EXPECT_TRUE(role.ok()) << ToText(role);
}

void ExpectNear(const LossMetrics& of_team, const LossMetrics& of_one) {
  ASSERT_EQ(of_team.size(), of_one.size());
  for (size_t l = 0; l < of_one.size(); ++l) {
    EXPECT_EQ(of_team[l].samples, of_one[l].samples);
    for (const MetricInfo& metric : AllMetrics()) {
      const std::optional<double> team = of_team[l].*metric.value, one = of_one[l].*metric.value;
      ASSERT_EQ(team.has_value(), one.has_value()) << metric.name;
      EXPECT_NEAR(team.value_or(0), one.value_or(0), 1e-6) << of_one[l].loss << "." << metric.name;
    }
  }
}

}  // namespace dt::test
