// Goal: the scheduler, as a process runs it, works with a real clock, disk and page: checkpoints
// are written, the result is complete, resuming works, nothing hangs. Method: fake processes on an
// in-memory network.
#include "scheduler/service/scheduler.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/entropy.h"
#include "common/base/mutex.h"
#include "common/control/control_link.h"
#include "common/control/packet.h"
#include "common/net/memory_network.h"
#include "scheduler/checkpoint/checkpoint_store.h"
#include "test/support/fake_process.h"
#include "test/support/http_get.h"

namespace dt::scheduler {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// A fake process on its own thread.
class FakeThread {
 public:
  FakeThread(Network& network, const std::string& scheduler, Role role, std::string checkpoint_dir)
      : checkpoint_dir_(std::move(checkpoint_dir)),
        thread_([this, &network, scheduler, role](std::stop_token stop) {
          Run(stop, *network.Connect(scheduler), role);
        }) {}
  void Join() { thread_.join(); }
  const std::vector<std::string>& done() const { return done_; }
  const std::optional<StopMessage>& stop() const { return stop_; }

 private:
  void Run(std::stop_token stop, std::unique_ptr<ClientSocket> socket, Role role) {
    const Clock& clock = SystemClock();
    const TimePoint deadline = clock.Now() + seconds(60);
    FakeProcess process(role, EntropyBits(), {});
    process.order_time = milliseconds(5);
    process.checkpoint_dir = checkpoint_dir_;
    std::vector<Packet> out;
    process.Start(clock.Now(), out);
    // Runs some time after its end, because acknowledgements may have to be repeated.
    TimePoint end = deadline;
    while (!stop.stop_requested() && clock.Now() < end) {
      for (const Packet& packet : out) EXPECT_TRUE(socket->Send(EncodePacket(packet)).ok());
      out.clear();
      if (Result<Frames> frames = socket->Receive(milliseconds(2)); frames.ok()) {
        process.OnPacket(clock.Now(), *DecodePacket(*frames), out);
      }
      process.Tick(clock.Now(), out);
      if (process.stop().has_value()) end = std::min(end, clock.Now() + milliseconds(100));
    }
    done_ = process.done();
    stop_ = process.stop();
  }

  const std::string checkpoint_dir_;
  std::vector<std::string> done_;
  std::optional<StopMessage> stop_;
  std::jthread thread_;
};

class SchedulerTest : public ::testing::Test {
 public:
  SchedulerTest()
      : dir_(fs::path(::testing::TempDir()) /
             ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(dir_);
    job_.job = "j";
    job_.train.batch_size = 10;
    job_.train.epochs = 2;
    job_.cluster.shards = 8;
    job_.cluster.start_timeout = seconds(30);
    job_.checkpoint.dir = (dir_ / "checkpoints").string();
    job_.checkpoint.every_steps = 7;
    job_.run_dir = dir_.string();
    job_.resume_text = "job: j\n";
    job_.resume_fingerprint = 5;
    job_.model.losses.emplace_back().type = "binary_cross_entropy";
  }
  ~SchedulerTest() override { fs::remove_all(dir_); }

 protected:
  SchedulerOptions Options() {
    return {.job = job_,
            .network = *network_,
            .listen = "inproc://scheduler",
            .planner = [](const PlanInput&) { return MadePlan(); }};
  }
  struct Ended {
    JobResult result;
    std::vector<std::string> server, worker;
  };
  Ended Run(SchedulerOptions options) {
    Result<std::unique_ptr<Scheduler>> scheduler = Scheduler::Open(std::move(options));
    EXPECT_TRUE(scheduler.ok()) << scheduler.status();
    if (!scheduler.ok()) return {};
    const std::string& endpoint = (*scheduler)->endpoint();
    FakeThread server(*network_, endpoint, Role::kServer, job_.checkpoint.dir);
    FakeThread worker(*network_, endpoint, Role::kWorker, job_.checkpoint.dir);
    Ended ended;
    ended.result = (*scheduler)->Run(stop_.get_token());
    server.Join();
    worker.Join();
    ended.server = server.done();
    ended.worker = worker.done();
    EXPECT_TRUE(server.stop().has_value() && worker.stop().has_value());
    return ended;
  }

  const fs::path dir_;
  JobConfig job_;
  std::unique_ptr<Network> network_ = MakeMemoryNetwork();
  std::stop_source stop_;
};

// A peer that sends requests all the time cannot delay the job's messages or its clock.
TEST_F(SchedulerTest, AFloodStarvesNobody) {
  network_ = MakeZmqNetwork({});  // ZeroMQ has a queue for each peer.
  std::vector<std::jthread> floods;
  for (int i = 0; i < 2; ++i) {
    floods.emplace_back([this](std::stop_token stop) {
      const auto socket = *network_->Connect("inproc://scheduler");
      for (uint64_t n = 0; !stop.stop_requested(); ++n) {
        const Packet packet{
            .session = 1 + n % 1000, .sequence = 1, .payload = std::string(500, 'x')};
        socket->Send(EncodePacket(packet)).IgnoreError();
      }
    });
  }
  const TimePoint begin = SystemClock().Now();
  const Ended ended = Run(Options());
  EXPECT_TRUE(ended.result.status.ok()) << ended.result.status;
  EXPECT_LT(SecondsBetween(begin, SystemClock().Now()), 30.0);
}

TEST_F(SchedulerTest, AJobRunsToItsEnd) {
  SchedulerOptions options = Options();
  std::atomic<int> reports = 0;
  options.on_progress = [&](const Progress& p) {
    ++reports;
    EXPECT_LE(p.step, p.steps);
  };
  const Ended ended = Run(std::move(options));
  EXPECT_TRUE(ended.result.status.ok()) << ended.result.status;
  EXPECT_EQ(ended.server, (std::vector<std::string>{"save 7", "save 14", "save 20", "finish"}));
  EXPECT_EQ(ended.worker.back(), "finish");
  const Json json = Json::parse(ToJson(ended.result));
  EXPECT_EQ(json["steps"], 20);
  EXPECT_EQ(json["samples"], 190);
  EXPECT_EQ(json["metrics"]["train"]["logloss"], 0.5);
  EXPECT_EQ(json["metrics"]["valid"]["logloss"], 0.25);
  EXPECT_GT(json["metrics"]["test"]["auc"], 0.0);
  EXPECT_EQ(json["roles"].size(), 3u);
  EXPECT_EQ(json["tables"]["item"]["rows"], 10);
  EXPECT_EQ(json["checksum"]["tables"]["item"], "ffffffffffffffff0000000000000005");
  EXPECT_EQ(json["checksum"]["dense"], "00000000000000060000000000000005");
  EXPECT_EQ(json["history"].size(), 2u);
  EXPECT_EQ(ListCheckpoints(job_.checkpoint.dir).size(), 3u);
  for (const CheckpointInfo& info : ListCheckpoints(job_.checkpoint.dir)) {
    EXPECT_TRUE(VerifyCheckpoint(info.folder).ok()) << VerifyCheckpoint(info.folder);
  }
  EXPECT_FALSE(fs::exists(dir_ / "run.json"));
}

TEST_F(SchedulerTest, ResumesTheNewestAndEvaluatesACheckpoint) {
  ASSERT_TRUE(Run(Options()).result.status.ok());
  fs::remove_all(ListCheckpoints(job_.checkpoint.dir).back().folder);
  SchedulerOptions options = Options();
  options.resume = "auto";
  const Ended resumed = Run(std::move(options));
  EXPECT_EQ(resumed.result.status, OkStatus());
  EXPECT_EQ(resumed.server.front().substr(0, 7), "load 14");
  EXPECT_EQ(resumed.result.steps, 20u);
  EXPECT_EQ(resumed.result.samples, 190u);

  SchedulerOptions evaluate = Options();
  evaluate.goal = Goal::kEvaluate;
  evaluate.checkpoint = ListCheckpoints(job_.checkpoint.dir).front().folder;
  const Ended evaluated = Run(std::move(evaluate));
  EXPECT_EQ(evaluated.result.status, OkStatus());
  EXPECT_EQ(evaluated.worker,
            (std::vector<std::string>{"load 7 generation 2", "evaluate test 7", "finish"}));
  EXPECT_TRUE(evaluated.result.test.has_value());
}

TEST_F(SchedulerTest, AnotherJobsCheckpointIsRefusedAtOnce) {
  ASSERT_TRUE(Run(Options()).result.status.ok());
  job_.resume_fingerprint = 6;
  job_.resume_text = "job: other\n";
  SchedulerOptions options = Options();
  options.resume = "auto";
  EXPECT_EQ(Scheduler::Open(options).status().code(), StatusCode::kInvalidArgument);
  options.resume = (dir_ / "nowhere").string();
  EXPECT_FALSE(Scheduler::Open(options).ok());
}

TEST_F(SchedulerTest, AStopWhileWaitingEndsAtOnce) {
  const auto scheduler = *Scheduler::Open(Options());
  EXPECT_TRUE(fs::exists(dir_ / "run.json"));
  stop_.request_stop();
  const JobResult result = scheduler->Run(stop_.get_token());
  EXPECT_EQ(result.status.code(), StatusCode::kCancelled);
}

// The page asks once a second; even if it asked just before the end, its next request is still
// answered.
TEST_F(SchedulerTest, AnOpenPageSeesTheEnd) {
  const auto scheduler = *Scheduler::Open(Options());
  std::jthread running([&] { scheduler->Run(stop_.get_token()); });
  const auto phase = [&] {
    const Json json = Json::parse(test::HttpGet(scheduler->page() + "status").body, nullptr, false);
    return json.is_object() ? json.value("phase", "") : "";
  };
  EXPECT_EQ(phase(), "gathering");
  stop_.request_stop();
  const TimePoint asks_again = SystemClock().Now() + seconds(1);
  std::string last;
  while (SystemClock().Now() < asks_again) last = phase();
  EXPECT_EQ(last, "ended");
}

TEST_F(SchedulerTest, MissingProcessesAreNamed) {
  job_.cluster.start_timeout = milliseconds(200);
  const auto scheduler = *Scheduler::Open(Options());
  const JobResult result = scheduler->Run(stop_.get_token());
  EXPECT_EQ(result.status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(ToText(result.status).find("only 0 of 1 server and 0 of 1 worker"), std::string::npos)
      << ToText(result.status);
}

TEST_F(SchedulerTest, StatusAndGarbageAreAnsweredAndSurvived) {
  const auto scheduler = *Scheduler::Open(Options());
  std::jthread running([&] { scheduler->Run(stop_.get_token()); });
  const auto socket = *network_->Connect(scheduler->endpoint());
  for (size_t size : {0u, 1u, 31u, 32u, 33u, 1000u}) {
    Frames frames;
    frames.push_back(Frame::CopyOf(std::vector<std::byte>(size, std::byte{0x5a})));
    EXPECT_TRUE(socket->Send(std::move(frames)).ok());
    EXPECT_TRUE(socket->Send(EncodePacket({size, 1, 0, std::string(size, 'x')})).ok());
  }
  const auto status = RequestStatus(*network_, scheduler->endpoint(), seconds(20));
  ASSERT_TRUE(status.ok()) << status.status();
  const Json json = Json::parse(*status);
  EXPECT_EQ(json["phase"], "gathering");
  EXPECT_GT(json["malformed"], 0);
  stop_.request_stop();
}

// A planner that runs until it is told to end.
class SlowPlanner {
 public:
  Result<MadePlan> Plan() {
    const TimePoint deadline = SystemClock().Now() + seconds(60);
    MutexLock lock(mutex_);
    begun_ = true;
    changed_.NotifyAll();
    while (!may_end_ && changed_.WaitUntil(lock, deadline)) {
    }
    return MadePlan();
  }
  void AwaitBegin() {
    const TimePoint deadline = SystemClock().Now() + seconds(30);
    MutexLock lock(mutex_);
    while (!begun_ && changed_.WaitUntil(lock, deadline)) {
    }
    EXPECT_TRUE(begun_);
  }
  void End() {
    MutexLock lock(mutex_);
    may_end_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  Condition changed_;
  bool begun_ DT_GUARDED_BY(mutex_) = false, may_end_ DT_GUARDED_BY(mutex_) = false;
};

TEST_F(SchedulerTest, WhileAPlanIsMadeLeasesAndTheStatusGoOn) {
  job_.cluster.lease = milliseconds(300);
  SlowPlanner planner;
  SchedulerOptions options = Options();
  options.planner = [&](const PlanInput&) { return planner.Plan(); };
  std::jthread meanwhile([&] {
    planner.AwaitBegin();
    const TimePoint over = SystemClock().Now() + 5 * job_.cluster.lease;
    do {
      const auto status = RequestStatus(*network_, "inproc://scheduler", seconds(20));
      EXPECT_EQ(Json::parse(status.value_or("{}")).value("phase", ""), "planning");
    } while (SystemClock().Now() < over);
    planner.End();
  });
  const Ended ended = Run(std::move(options));
  EXPECT_TRUE(ended.result.status.ok()) << ended.result.status;
  EXPECT_EQ(ended.result.steps, 20u);
}

TEST_F(SchedulerTest, AStopWhileAPlanIsMadeEndsTheJobAtOnce) {
  SlowPlanner planner;
  SchedulerOptions options = Options();
  options.planner = [&](const PlanInput&) { return planner.Plan(); };
  const auto scheduler = *Scheduler::Open(std::move(options));
  FakeThread server(*network_, scheduler->endpoint(), Role::kServer, job_.checkpoint.dir);
  FakeThread worker(*network_, scheduler->endpoint(), Role::kWorker, job_.checkpoint.dir);
  std::jthread stopper([&] {
    planner.AwaitBegin();
    stop_.request_stop();
  });
  const JobResult result = scheduler->Run(stop_.get_token());
  EXPECT_EQ(result.status.code(), StatusCode::kCancelled);
  server.Join();
  worker.Join();
  EXPECT_TRUE(server.stop().has_value() && worker.stop().has_value());
  planner.End();  // The scheduler waits for the planner's thread when it is destroyed.
}

}  // namespace
}  // namespace dt::scheduler
