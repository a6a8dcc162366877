// Goal: the three roles work together without the program around them: they learn, and equal slices
// give equal parameters whatever the number of workers and servers. Method: real schedulers,
// servers and workers in threads of one process over inproc sockets (Gloo over loopback between
// workers), on a small generated data set.
#include <map>
#include <thread>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "common/config/load_job.h"
#include "common/net/socket.h"
#include "scheduler/service/scheduler.h"
#include "server/service/server.h"
#include "test/support/tiny_job.h"
#include "worker/service/worker.h"

namespace dt {
namespace {

struct Shape {
  uint32_t servers = 1, workers = 1, slices = 1;
};

struct JobRun {
  JobResult result;
  std::vector<Status> roles;
};

JobRun RunJob(const test::TempFolder& folder, const std::string& name, const Shape& shape,
              const std::string& more = "") {
  JobRun run;
  const std::string file = test::WriteTinyJob(folder, {.job = name,
                                                       .rows = 3000,
                                                       .epochs = 3,
                                                       .slices = shape.slices,
                                                       .servers = shape.servers,
                                                       .workers = shape.workers,
                                                       .more = more});
  Result<JobConfig> job = LoadJob(file, {});
  EXPECT_TRUE(job.ok()) << ToText(job.status());
  if (!job.ok()) return run;
  job->run_dir = folder.path() + "/runs/" + name;
  job->checkpoint.dir = job->run_dir + "/checkpoints";
  job->data.cache_dir = folder.path() + "/cache";
  const std::unique_ptr<Network> network = MakeZmqNetwork({});
  auto scheduler = scheduler::Scheduler::Open({.job = *job,
                                               .network = *network,
                                               .listen = "inproc://scheduler",
                                               .checkpoint = "",
                                               .predictions_path = ""});
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
        auto worker = worker::Worker::Open(
            {.job = *job, .network = *network, .scheduler = endpoint, .threads = 1});
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

// Everything that must be equal where parameters are.
std::map<std::string, std::string> Checksums(const JobResult& result) {
  std::map<std::string, std::string> sums = {{"dense", result.dense_checksum}};
  for (const auto& [name, table] : result.tables) {
    sums["table " + name] = table.checksum;
    sums["rows " + name] = std::to_string(table.rows);
  }
  return sums;
}

TEST(InProcessTest, OneOfEachLearns) {
  const test::TempFolder folder;
  const JobRun run = RunJob(folder, "learns", {});
  ExpectCompleted(run);
  ASSERT_TRUE(run.result.valid.has_value());
  ASSERT_GE(run.result.history.size(), 2);
  EXPECT_LT(*run.result.history.back().train_logloss, *run.result.history.front().train_logloss);
  EXPECT_GT(run.result.valid->auc.value_or(0), 0.6);
  EXPECT_EQ(run.result.steps, 3 * 12);
  EXPECT_EQ(run.result.samples, 3 * 3000);
}

TEST(InProcessTest, EqualSlicesGiveEqualParametersForAnyNumberOfProcesses) {
  const test::TempFolder folder;
  const JobRun one = RunJob(folder, "one", {.servers = 1, .workers = 1, .slices = 2});
  ExpectCompleted(one);
  for (const Shape& shape : {Shape{1, 2, 2}, Shape{2, 1, 2}, Shape{2, 2, 2}, Shape{1, 3, 2}}) {
    const std::string name = fmt::format("s{}w{}", shape.servers, shape.workers);
    const JobRun other = RunJob(folder, name, shape);
    ExpectCompleted(other);
    EXPECT_EQ(Checksums(other.result), Checksums(one.result)) << name;
    EXPECT_EQ(other.result.train_logloss, one.result.train_logloss) << name;
    EXPECT_EQ(other.result.valid->auc, one.result.valid->auc) << name;
  }
}

TEST(InProcessTest, TwoRunsAreEqualAndAnotherNumberOfSlicesIsNot) {
  const test::TempFolder folder;
  const JobRun first = RunJob(folder, "same", {});
  const JobRun second = RunJob(folder, "same", {});
  ExpectCompleted(first);
  ExpectCompleted(second);
  EXPECT_EQ(Checksums(first.result), Checksums(second.result));
  EXPECT_NE(Checksums(first.result), Checksums(RunJob(folder, "same", {.slices = 2}).result));
}

}  // namespace
}  // namespace dt
