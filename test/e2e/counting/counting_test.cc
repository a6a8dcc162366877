// Goal: whatever befalls servers, links and the scheduler, every push of two workers is in the rows
// exactly once, and a synchronous job ends with the bits of an undisturbed one. Method: the real
// scheduler and servers as processes, each server in a network namespace of its own; workers that
// count (counting_worker.h); one after the other, processes are killed or stand still,
// and links are cut.
#include <optional>
#include <signal.h>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/check.h"
#include "common/base/pause.h"
#include "common/base/philox.h"
#include "common/config/load_job.h"
#include "test/e2e/counting/counting_worker.h"
#include "test/support/http_get.h"
#include "test/support/net_spaces.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kServers = 3, kWorkers = 2;
constexpr Step kStepsEach = 80;  // Of training, while one thing happens.
constexpr Duration kStepPause = milliseconds(15);
constexpr milliseconds kWholeWithin = seconds(60);
constexpr milliseconds kEndsWithin = seconds(300);  // 8080 steps took 65 s on a slow machine.

class Counting : public ::testing::Test {
 protected:
  void TearDown() override {
    ended_ = true;  // No worker waits for its next step any more.
    scheduler_.reset();
    servers_.clear();
    workers_.clear();
  }
  // Trains while so many things happen; returns the checksums. Empty if that failed.
  std::string Count(const std::vector<std::string>& mode, uint32_t disturbances, uint64_t seed) {
    seed_ = seed;
    name_ = fmt::format("counting-{}", disturbances);
    disturbances_ = disturbances;
    settings_ = {"job=" + name_,
                 "cluster.lease=1s",
                 "cluster.shards=8",
                 "cluster.replicas=2",
                 fmt::format("cluster.servers={}", kServers),
                 fmt::format("cluster.workers={}", kWorkers),
                 "cluster.server.executors=1",
                 fmt::format("train.max_steps={}", kStepsEach * steps_of_)};
    settings_.insert(settings_.end(), mode.begin(), mode.end());
    Begin();
    if (HasFailure()) return "";
    for (uint32_t i = 0; i < disturbances && !ended_ && !HasFailure(); ++i) Disturb(i);
    allowed_ = ~Step{0};
    return End();
  }

  // How often kStepsEach are trained.
  uint32_t steps_of_ = 1;
  std::optional<NetSpaces> spaces_;

 private:
  std::vector<std::string> With(std::vector<std::string> arguments) const {
    for (const std::string& each : settings_) arguments.insert(arguments.end(), {"--set", each});
    return arguments;
  }
  void Begin() {
    job_path_ = folder_.Write("counting.yaml", CountingJob(4, ""));
    allowed_ = disturbances_ == 0 ? ~Step{0} : kStepsEach;
    ended_ = false;
    StartScheduler();
    ASSERT_TRUE(Eventually(seconds(30), [&] { return !RunFile("/scheduler").empty(); })) << Text();
    servers_.resize(kServers);
    for (uint32_t s = 0; s < kServers; ++s) StartServer(s);
    Result<JobConfig> loaded = LoadJob(job_path_, {.overrides = settings_});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    JobConfig job = *std::move(loaded);
    job.run_dir = folder_.path() + "/runs/" + name_;
    team_ = std::make_unique<CountingTeam>(kWorkers);
    ends_.assign(kWorkers, OkStatus());
    for (uint32_t w = 0; w < kWorkers; ++w) {
      workers_.emplace_back([this, w, job] {
        CountingWorker worker(job, SchedulerAddress(),
                              {.shared_memory = false,
                               .team = team_.get(),
                               .before_step = [this](Step step) { Await(step); }});
        ends_[w] = worker.Run([] { return false; });
        ended_ = true;
      });
    }
  }
  static std::string SchedulerAddress() {
    return fmt::format("tcp://{}:7000", NetSpaces::Address());
  }
  void StartScheduler() {
    scheduler_ = std::make_unique<Program>(
        folder_.path(), With({"scheduler", job_path_, "--listen", SchedulerAddress(), "--result",
                              name_ + ".json", "--log-level", "info"}));
  }
  void StartServer(uint32_t s) {
    spaces_->Run(s, [&] {
      servers_[s] = std::make_unique<Program>(
          folder_.path(),
          With({"server", job_path_, "--scheduler", SchedulerAddress(), "--listen",
                fmt::format("tcp://{}:0", NetSpaces::AddressIn(s)), "--log-level", "info"}));
    });
  }
  void Await(Step step) const {
    if (disturbances_ > 0 && !ended_) Pause(kStepPause);
    while (step >= allowed_ && !ended_) Pause(milliseconds(5));
  }

  // ---------------------------------------------------------- what happens

  // At most, and at least a little.
  Duration UpTo(Duration most, uint32_t draw) const {
    return milliseconds(20) + most * (draw % 1000) / 1000;
  }
  void Disturb(uint32_t number) {
    const PhiloxBlock draws = Philox(seed_, number, 0);
    const uint32_t s = draws[0] % kServers;
    allowed_ = kStepsEach * (number + 2);
    Pause(UpTo(milliseconds(400), draws[1]));
    // Shorter and longer than a lease.
    const Duration lasts =
        UpTo(draws[2] % 2 == 0 ? milliseconds(500) : milliseconds(2500), draws[3]);
    switch (const uint32_t kind = number < 4 ? number : draws[2] / 2 % 4) {
      case 0: {
        Tell(fmt::format("server {} is killed", s + 1));
        servers_[s]->Signal(SIGKILL);
        break;
      }
      case 1: {
        Tell(fmt::format("server {} stands still for {} ms", s + 1, lasts / milliseconds(1)));
        servers_[s]->Signal(SIGSTOP);
        Pause(lasts);
        servers_[s]->Signal(SIGCONT);
        break;
      }
      case 2: {
        Tell(fmt::format("server {} is cut off for {} ms", s + 1, lasts / milliseconds(1)));
        ASSERT_TRUE(spaces_->Cut(s).ok());
        Pause(lasts);
        ASSERT_TRUE(spaces_->Join(s).ok());
        break;
      }
      default: {
        DT_CHECK(kind == 3);
        Tell(fmt::format("the scheduler is killed, and away for {} ms", lasts / milliseconds(1)));
        scheduler_->Signal(SIGKILL);
        scheduler_->Wait(seconds(5));
        Pause(lasts);
        StartScheduler();
      }
    }
    MakeWhole();
  }
  void Tell(const std::string& what) { text_ += what + "\n"; }
  // Until every shard is on as many servers as is wanted. Servers that have ended are replaced.
  void MakeWhole() {
    const TimePoint changed =
        SystemClock().Now() + milliseconds(1200);  // By then a lease has run out.
    const bool whole = Eventually(kWholeWithin, [&] {
      for (uint32_t s = 0; s < kServers; ++s) {
        if (servers_[s]->HasEnded()) StartServer(s);
      }
      return ended_ || (SystemClock().Now() > changed && ShardsShort() == 0);
    });
    EXPECT_TRUE(whole) << Text();
    EXPECT_FALSE(ended_) << Text();
  }
  int64_t ShardsShort() const {
    const HttpAnswer answer = HttpGet(RunFile("/http") + "status");
    if (answer.status != 200) return -1;
    const Json status = Json::parse(answer.body);
    uint32_t servers = 0;
    for (const Json& process : status["processes"]) servers += process["role"] == "server" ? 1 : 0;
    return servers < kServers ? -1 : status["shards"]["short"].get<int64_t>();
  }

  std::string End() {
    const ProgramEnd end = scheduler_->Wait(kEndsWithin);
    ended_ = true;
    workers_.clear();
    for (const Status& of : ends_) EXPECT_TRUE(of.ok()) << of;
    EXPECT_EQ(end.exit_code, 0) << Text();
    for (const std::unique_ptr<Program>& server : servers_) {
      const ProgramEnd server_end = server->Wait(seconds(10));
      EXPECT_EQ(server_end.exit_code, 0) << server_end.output;
    }
    const Json result = Json::parse(folder_.Read(name_ + ".json"));
    uint32_t lost = 0;
    for (const Json& event : result["events"]) lost += event["kind"] == "server_lost" ? 1 : 0;
    std::printf("%u things happened in %.0f s and %lu steps; %u servers were lost\n", disturbances_,
                result["seconds"].get<double>(), result["steps"].get<uint64_t>(), lost);
    return ChecksumOf(folder_, name_ + ".json");
  }
  std::string RunFile(const std::string& pointer) const {
    return TextAt(folder_, "runs/" + name_ + "/run.json", pointer);
  }
  std::string Text() const {
    std::string text = text_ + scheduler_->Output();
    for (const std::unique_ptr<Program>& server : servers_) text += "\n" + server->Output();
    return text;
  }

  TempFolder folder_;
  std::string name_, job_path_, text_;
  std::vector<std::string> settings_;
  uint64_t seed_ = 0;
  uint32_t disturbances_ = 0;
  std::unique_ptr<Program> scheduler_;
  std::vector<std::unique_ptr<Program>> servers_;
  std::unique_ptr<CountingTeam> team_;
  std::vector<Status> ends_;           // Of the workers, when they have ended.
  std::atomic<Step> allowed_ = 0;      // Steps below it may begin.
  std::atomic<bool> ended_ = false;    // Some worker has.
  std::vector<std::jthread> workers_;  // Last, because they use the members above.
};

const std::vector<std::string> kSynchronous = {"train.slices=4"};
const std::vector<std::string> kAsynchronous = {"train.slices=auto", "train.staleness=2"};

struct Mode {
  std::vector<std::string> settings;
  uint32_t disturbances = 0;
};

class CountingWhile : public Counting, public ::testing::WithParamInterface<uint32_t> {
 protected:
  // Also of the undisturbed job.
  void SetUp() override {
    steps_of_ = GetParam() + 1;
    auto spaces = NetSpaces::Make(kServers);
    if (!spaces.ok()) GTEST_SKIP() << "this needs network namespaces: " << spaces.status();
    spaces_.emplace(*std::move(spaces));
  }
};
INSTANTIATE_TEST_SUITE_P(Five, CountingWhile, ::testing::Values(5));
INSTANTIATE_TEST_SUITE_P(Hundred, CountingWhile, ::testing::Values(100));

TEST_P(CountingWhile, ThingsHappenToASynchronousJob) {
  const std::string undisturbed = Count(kSynchronous, 0, 0);
  const std::string disturbed = Count(kSynchronous, GetParam(), 1);
  EXPECT_NE(disturbed, "");
  EXPECT_EQ(disturbed, undisturbed);
}

TEST_P(CountingWhile, ThingsHappenToAnAsynchronousJob) {
  EXPECT_NE(Count(kAsynchronous, GetParam(), 2), "");
}

}  // namespace
}  // namespace dt::test
