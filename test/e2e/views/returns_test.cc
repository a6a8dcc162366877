// Goal: a job that loses what no living process has returns to its last checkpoint by itself, and
// ends with the bits of an undisturbed one. Method: real processes under `launch`, which starts
// those again that are killed.
#include <filesystem>
#include <fstream>
#include <signal.h>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/launched_job.h"

namespace dt::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class Returns : public LaunchedJob {
 protected:
  std::vector<nlohmann::json> Events(const std::string& kind) const {
    const nlohmann::json result = nlohmann::json::parse(folder_.Read("launched.json"));
    std::vector<nlohmann::json> found;
    for (const nlohmann::json& event : result["events"]) {
      if (event["kind"] == kind) found.push_back(event);
    }
    return found;
  }
  bool Trains() const {
    return Eventually(seconds(20), [&] {
      const ProgramEnd status =
          RunProgram(folder_.path(), {"status", job_, "--set", mark_, "--json"});
      return status.output.find("\"phase\": \"running\"") != std::string::npos;
    });
  }
  std::vector<pid_t> Servers() const { return ProcessesWith(mark_, "server"); }
  // The job ends after so many returns, each of which took less than ten seconds.
  void ExpectReturns(size_t count) {
    ExpectEnd();
    const std::vector<nlohmann::json> returned = Events("returned");
    EXPECT_EQ(returned.size(), count);
    for (const nlohmann::json& event : returned) {
      EXPECT_LT(event["seconds"].get<double>(), 10) << event;
    }
  }
};

// Checkpoints share files, as hard links: the others keep theirs.
void Damage(const std::filesystem::path& path) {
  std::stringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  std::string text = std::move(bytes).str();
  for (size_t i = 0; i < 16; ++i) text[text.size() / 4 + i] ^= 0x5a;
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << text;
}

constexpr const char* kEvery100 = "checkpoint: {every: 100}";
const TinyJobOptions kTwo = {
    .epochs = 30, .slices = 2, .servers = 2, .workers = 2, .more = kEvery100};

TEST_F(Returns, AServerWhoseShardsNobodyElseHas) {
  WriteJob(kTwo);
  Launch("server-dies");
  for (const uint64_t step : {100, 300}) {
    ASSERT_TRUE(Reaches(step)) << launch_->Output();
    ASSERT_EQ(Servers().size(), 2U);
    kill(Servers()[1], SIGKILL);
    ASSERT_TRUE(Eventually(seconds(5), [&] { return Servers().size() == 2; }));
  }
  ExpectReturns(2);
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

TEST_F(Returns, BeforeTheFirstCheckpoint) {
  WriteJob({.epochs = 30, .slices = 2, .servers = 1, .workers = 2});
  Launch("no-checkpoint");
  ASSERT_TRUE(Trains()) << launch_->Output();
  kill(Servers()[0], SIGKILL);
  ExpectReturns(1);
  EXPECT_EQ(Events("returns")[0]["step"], 0);
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

TEST_F(Returns, AllWorkers) {
  WriteJob(kTwo);
  Launch("workers-die");
  ASSERT_TRUE(Reaches(100)) << launch_->Output();
  for (const pid_t worker : Workers()) kill(worker, SIGKILL);
  ExpectEnd();
  EXPECT_GE(Events("returned").size(), 1U);
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

TEST_F(Returns, AllProcessesAtOnce) {
  WriteJob(kTwo);
  Launch("all-die", {"--set", "cluster.restarts=5"});
  ASSERT_TRUE(Reaches(100)) << launch_->Output();
  for (const char* const role : {"scheduler", "server", "worker"}) {
    for (const pid_t pid : ProcessesWith(mark_, role)) kill(pid, SIGKILL);
  }
  ExpectReturns(1);
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

TEST_F(Returns, AllAsynchronousWorkers) {
  WriteJob({.epochs = 30, .servers = 2, .workers = 2, .staleness = "2", .more = kEvery100});
  Launch("asynchronous");
  ASSERT_TRUE(Reaches(100)) << launch_->Output();
  const std::vector<pid_t> workers = Workers();
  ASSERT_EQ(workers.size(), 2U);
  for (const pid_t worker : workers) kill(worker, SIGKILL);
  ExpectReturns(1);
}

// Others wait for it, and it joins again when it wakes.
TEST_F(Returns, AServerThatSleeps) {
  WriteJob(kTwo);
  Launch("server-sleeps", {"--set", "cluster.lease=1s"});
  ASSERT_TRUE(Reaches(100)) << launch_->Output();
  ASSERT_EQ(Servers().size(), 2U);
  const pid_t server = Servers()[0];
  kill(server, SIGSTOP);
  Eventually(seconds(4), [] { return false; });
  kill(server, SIGCONT);
  ExpectReturns(1);
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

// Damage that only those notice who load the rows; the one before is loaded, and named.
TEST_F(Returns, FromADamagedCheckpointToTheOneBefore) {
  WriteJob(kTwo);
  Launch("damaged", {"--set", "checkpoint.keep=20"});
  ASSERT_TRUE(Reaches(300)) << launch_->Output();
  kill(launch_->pid(), SIGSTOP);  // It starts no server again yet.
  const std::vector<pid_t> servers = Servers();
  ASSERT_EQ(servers.size(), 2U);
  for (const pid_t server : servers) kill(server, SIGSTOP);
  const std::string newest = folder_.path() + "/" + CheckpointsOf(folder_, name_).back();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(newest)) {
    if (entry.path().extension() == ".sst") Damage(entry.path());
  }
  for (const pid_t server : servers) kill(server, SIGCONT);
  kill(servers[0], SIGKILL);
  kill(launch_->pid(), SIGCONT);
  ExpectReturns(2);
  const std::vector<nlohmann::json> returns = Events("returns");
  ASSERT_EQ(returns.size(), 2U);
  EXPECT_LT(returns[1]["step"], returns[0]["step"]);
  EXPECT_THAT(returns[1]["why"].get<std::string>(), HasSubstr("damaged"));
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

// No endless beginning: a job that does not reach its next checkpoint ends at last.
TEST_F(Returns, NotMoreOftenThanRestartsAllow) {
  WriteJob({.epochs = 100000, .slices = 2, .servers = 1, .workers = 1});
  Launch("again-and-again", {"--set", "cluster.restarts=2"});
  for (int time = 0; time < 3; ++time) {
    ASSERT_TRUE(Trains()) << launch_->Output();
    kill(Servers()[0], SIGKILL);
    Eventually(milliseconds(500), [] { return false; });
  }
  const ProgramEnd end = launch_->Wait(seconds(20));
  EXPECT_EQ(end.exit_code, 1) << end.output;
  EXPECT_THAT(end.output, HasSubstr("was killed by signal 9"));
}

}  // namespace
}  // namespace dt::test
