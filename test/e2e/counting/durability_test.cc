// Goal: with `durability: log` a server may be killed at any instant. When it has come back, every
// push that was acknowledged is in its rows exactly once, and the job goes on and ends with the
// same bits. Damaged logs are detected and named. Method: the real scheduler and server as
// processes, killed by SIGKILL, with a worker that counts (counting_worker.h); or a
// real job under launch.
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "common/config/load_job.h"
#include "test/e2e/counting/counting_worker.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// A server started by hand replaces a killed one only when the lease has run out, so leases are
// short.
class Durability : public ::testing::Test {
 protected:
  ~Durability() override { enough_ = true; }

  void StartJob(const std::string& more, bool shared_memory = true) {
    job_path_ = folder_.Write("counting.yaml", CountingJob(4, more));
    const auto job = LoadJob(job_path_, {});
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = *job;
    job_.run_dir = folder_.path() + "/runs/counting";
    scheduler_ =
        std::make_unique<Program>(folder_.path(), std::vector<std::string>{"scheduler", job_path_});
    ASSERT_TRUE(Eventually(seconds(30), [&] {
      return !(address_ = TextAt(folder_, "runs/counting/run.json", "/scheduler")).empty();
    })) << scheduler_->Output();
    StartServer();
    worker_ = std::make_unique<CountingWorker>(
        job_, address_, CountingWorker::Options{.shared_memory = shared_memory});
  }
  void StartServer() {
    server_ = std::make_unique<Program>(
        folder_.path(), std::vector<std::string>{"server", job_path_, "--scheduler", address_});
  }
  void KillServer() {
    server_->Signal(SIGKILL);
    ASSERT_EQ(server_->Wait(seconds(10)).signal, SIGKILL) << server_->Output();
  }
  // Waits until the worker has done `more` further steps. Returns false if the job ended before.
  bool Progresses(uint64_t more) {
    const Step until = worker_->steps() + more;
    return Eventually(seconds(60), [&] { return ended_ || worker_->steps() >= until; }) && !ended_;
  }
  // Starts the worker in the background; it counts until Finish, or until the job ends.
  void StartCounting() {
    counting_ = std::jthread([this] {
      end_ = worker_->Run([this] { return enough_.load(); });
      ended_ = true;
    });
  }
  // Returns how the job ended by itself within `timeout`; OK if it still runs.
  Status EndWithin(seconds timeout) {
    Eventually(timeout, [&] { return ended_.load(); });
    return Finish();
  }
  Status Finish() {
    enough_ = true;
    counting_.join();
    return end_;
  }
  // Kills the server `kills` times at random instants while the worker counts.
  void Count(uint32_t kills, uint64_t seed) {
    StartCounting();
    for (uint32_t i = 0; i < kills && !ended_; ++i) {
      // The server is sometimes killed again before it has come back.
      const PhiloxBlock random = Philox(seed, i, 0);
      if (random[0] % 5 != 0 && !Progresses(1)) break;
      const milliseconds instant(random[1] % 200);
      Eventually(instant, [&] { return ended_.load(); });
      KillServer();
      StartServer();
    }
    Progresses(5);
    const Status end = Finish();
    ASSERT_TRUE(end.ok()) << end << "\n" << server_->Output() << scheduler_->Output();
    const Status all = worker_->CheckAll();
    EXPECT_TRUE(all.ok()) << all;
    std::printf("%u kills, %llu steps, %llu pushes acknowledged, every one present once\n", kills,
                static_cast<unsigned long long>(worker_->steps()),
                static_cast<unsigned long long>(worker_->pushes()));
  }
  std::vector<std::string> Segments() const {
    std::vector<std::string> found;
    std::error_code absent;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_.path() + "/runs/counting/server-1", absent)) {
      const std::string path = entry.path().string();
      if (path.find("/log-") != std::string::npos) found.push_back(path);
    }
    std::ranges::sort(found);
    return found;
  }

  TempFolder folder_;
  std::string job_path_, address_;
  JobConfig job_;
  std::unique_ptr<Program> scheduler_, server_;
  std::unique_ptr<CountingWorker> worker_;
  std::atomic<bool> enough_ = false, ended_ = false;
  Status end_;             // Written by counting_ before ended_ is set.
  std::jthread counting_;  // Last, because the thread uses the members above.
};

TEST_F(Durability, EveryAcknowledgedPushIsThereOnceAfterFiveKills) {
  StartJob(R"(cluster: {shards: 8, lease: 1s, server: {executors: 2}}
checkpoint: {every: 150, keep: 1, durability: log})");
  Count(5, 1);
}

TEST_F(Durability, EveryAcknowledgedPushIsThereOnceAfterFiveKillsOverTcp) {
  StartJob(R"(cluster: {shards: 8, lease: 1s, server: {executors: 1}}
checkpoint: {every: 150, keep: 1, durability: log, log: {sync: true}})",
           false);
  Count(5, 3);
}

TEST_F(Durability, EveryAcknowledgedPushIsThereOnceAfterTwoHundredKills) {
  StartJob(R"(cluster: {shards: 8, lease: 1s, server: {executors: 2}}
checkpoint: {every: 500, keep: 1, durability: log})");
  Count(200, 2);
}

TEST_F(Durability, EveryAcknowledgedPushIsThereOnceAfterTwoHundredKillsAmongCheckpoints) {
  StartJob(R"(cluster: {shards: 8, lease: 1s, server: {executors: 1}}
checkpoint: {every: 20, keep: 2, durability: log})");
  Count(200, 4);
}

TEST_F(Durability, ALogThatIsTooLongAsksForACheckpointWhichCutsIt) {
  StartJob(R"(cluster: {shards: 8, lease: 1s, server: {executors: 1}}
checkpoint: {durability: log, log: {max_bytes: 1MiB, sync: true}})");
  StartCounting();
  EXPECT_TRUE(Eventually(seconds(30), [&] {
    const auto segments = Segments();
    return !segments.empty() && !segments.front().ends_with("log-0-1");
  })) << scheduler_->Output();
  KillServer();  // The server restores the checkpoint and the rest of its log.
  StartServer();
  EXPECT_TRUE(Progresses(3)) << server_->Output() << scheduler_->Output();
  EXPECT_TRUE(Finish().ok());
  EXPECT_TRUE(worker_->CheckAll().ok());
}

TEST_F(Durability, DamageInTheLogEndsTheJobNamingFileAndByte) {
  StartJob(R"(cluster: {shards: 8, lease: 1s, server: {executors: 1}}
checkpoint: {durability: log})");
  StartCounting();
  ASSERT_TRUE(Progresses(5)) << server_->Output() << scheduler_->Output();
  KillServer();
  ASSERT_EQ(Segments().size(), 1u);
  {
    std::fstream file(Segments()[0], std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(300);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(300);
    file.put(byte);
  }
  StartServer();
  const Status end = EndWithin(seconds(20));
  EXPECT_THAT(ToText(end), HasSubstr("the log is damaged at")) << scheduler_->Output();
  EXPECT_THAT(ToText(end), HasSubstr("log-0-1, byte 48:"));
}

// A power failure can leave such a log.
TEST_F(Durability, ALogWithoutItsAcknowledgedEndEndsTheJobAtOnceNamingFileAndByte) {
  StartJob(R"(cluster: {shards: 8, lease: 1s, server: {executors: 1}}
checkpoint: {durability: log})");
  StartCounting();
  ASSERT_TRUE(Progresses(20)) << server_->Output() << scheduler_->Output();
  KillServer();
  ASSERT_EQ(Segments().size(), 1u);
  std::filesystem::resize_file(Segments()[0], std::filesystem::file_size(Segments()[0]) / 2);
  StartServer();
  const Status end = EndWithin(seconds(20));
  EXPECT_THAT(ToText(end), HasSubstr("log-0-1, byte ")) << server_->Output();
  EXPECT_THAT(ToText(end), HasSubstr("ends before what it has acknowledged: shard "));
  EXPECT_THAT(ToText(end), HasSubstr("--resume auto"));
}

TEST_F(Durability, AServerThatDoesNotComeBackEndsTheJob) {
  StartJob(R"(cluster: {shards: 8, lease: 500ms, wait_for_server: 1s}
checkpoint: {durability: log})");
  StartCounting();
  ASSERT_TRUE(Progresses(5)) << server_->Output() << scheduler_->Output();
  const pid_t pid = server_->pid();
  KillServer();
  const Status end = EndWithin(seconds(15));
  EXPECT_THAT(ToText(end), HasSubstr(fmt::format("pid {}", pid))) << scheduler_->Output();
  EXPECT_THAT(ToText(end), HasSubstr("has not been heard of"));
}

// Launches the job and kills two of its servers, one after the other; it completes, with its result
// in killed.json.
void ExpectToSurviveTwoKills(const TempFolder& folder, const std::string& job,
                             const std::string& name) {
  const std::string mark = "job=" + name;
  // The lease is longer than the test: `launch` reports the end of a server, so nobody waits for
  // it.
  Program launch(folder.path(), {"launch", job, "--set", mark, "--set", "cluster.lease=60s",
                                 "--result", "killed.json"});
  const auto trained_to = [&](uint64_t step) {
    return Eventually(seconds(30), [&] {
      const std::vector<std::string> saved = CheckpointsOf(folder, name);
      return !saved.empty() && StepOf(saved.back()) >= step;
    });
  };
  for (const uint64_t step : {100, 200}) {
    ASSERT_TRUE(trained_to(step)) << launch.Output();
    const std::vector<pid_t> servers = ProcessesWith(mark, "server");
    ASSERT_FALSE(servers.empty()) << launch.Output();
    kill(servers[(step / 100 - 1) % servers.size()], SIGKILL);
  }
  const ProgramEnd end = launch.Wait(seconds(60));
  ASSERT_EQ(end.exit_code, 0) << end.output;
  const std::string result = folder.Read("killed.json");
  EXPECT_THAT(result, HasSubstr("server_lost"));
  EXPECT_THAT(result, HasSubstr("recovered"));
  EXPECT_TRUE(ProcessesWith(mark).empty());
}

TEST(LaunchedDurability, AJobWhoseServersAreKilledTwiceEndsWithTheSameBits) {
  const TempFolder folder;
  const std::string job =
      WriteTinyJob(folder, {.epochs = 30,
                            .slices = 2,
                            .servers = 2,
                            .workers = 2,
                            .more = "checkpoint: {every: 100, durability: log}"});
  const ProgramEnd calm =
      RunProgram(folder.path(), {"train", job, "--set", "job=calm", "--result", "calm.json"});
  ASSERT_EQ(calm.exit_code, 0) << calm.output;
  ExpectToSurviveTwoKills(folder, job, JobNameOfOurs("kill-and-return"));
  EXPECT_EQ(ChecksumOf(folder, "killed.json"), ChecksumOf(folder, "calm.json"));
  EXPECT_NE(ChecksumOf(folder, "calm.json"), "");
}

TEST(LaunchedDurability, AnAsynchronousJobWhoseServersAreKilledTwiceTrainsEverySample) {
  const TempFolder folder;
  const TinyJobOptions options = {.epochs = 30,
                                  .servers = 2,
                                  .workers = 2,
                                  .staleness = "2",
                                  .more = "checkpoint: {every: 100, durability: log}"};
  ExpectToSurviveTwoKills(folder, WriteTinyJob(folder, options),
                          JobNameOfOurs("asynchronous-kill-and-return"));
  EXPECT_EQ(NumberAt(folder, "killed.json", "/samples"),
            static_cast<double>(options.rows * options.epochs));
  EXPECT_GT(NumberAt(folder, "killed.json", "/metrics/valid/auc"), 0.7);
}

}  // namespace
}  // namespace dt::test
