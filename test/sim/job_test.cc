// Goal: whatever the network does, a job completes, and all processes carry out the same orders
// once and in the same sequence. A process that crashes ends the job, which names it, within a
// bounded time after its lease. A scheduler that continues a job from its record behaves as if it
// were the first. Method: the real Job and SessionRouter, fake processes, one thread, a simulated
// clock.
#include "scheduler/job/job.h"

#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scheduler/report/result_of.h"
#include "scheduler/service/session_router.h"
#include "test/support/fake_environment.h"
#include "test/support/fake_process.h"
#include "test/support/sim_network.h"
#include "test/support/sim_seeds.h"

namespace dt::scheduler {
namespace {

constexpr Duration kTick = milliseconds(10);

// A packet to the scheduler (to = 0) or to the process with this incarnation.
struct Letter {
  uint64_t to = 0;
  Packet packet;
};

class SimJob {
 public:
  SimJob(uint64_t seed, const JobConfig& job, std::optional<JobOptions::Checkpoint> from = {})
      : network_(seed),
        router_(milliseconds(200),
                [this](const PeerId& peer, const Packet& packet) {
                  network_.Put(now_, {std::stoull(peer), packet});
                }),
        options_{job, Goal::kTrain, Term(1), Generation(1), std::move(from)} {
    job_.emplace(options_, environment_, now_);
  }

  FakeProcess& Add(Role role, const FakeData& data = {}, uint64_t token = 0) {
    processes_.push_back(std::make_unique<FakeProcess>(role, processes_.size() + 1, data));
    processes_.back()->token = token;
    std::vector<Packet> out;
    processes_.back()->Start(now_, out);
    ToScheduler(*processes_.back(), out);
    return *processes_.back();
  }
  void Crash(size_t index) { crashed_.insert(processes_[index]->incarnation()); }
  // Reports the end of a process, as its parent would.
  void TellEnd(size_t index, bool returns) {
    const uint64_t incarnation = processes_[index]->incarnation();
    router_.Forget(Incarnation(incarnation));
    job_->OnProcessEnd(now_, "host",
                       {"it", static_cast<int64_t>(1000 + incarnation), "was killed", returns});
  }

  // The scheduler ends, and a new one continues the job from its record. Sessions survive.
  void RestartScheduler() {
    Result<JobRecord> record = DecodeJobRecord(EncodeJobRecord(job_->record()));
    ASSERT_TRUE(record.ok()) << record.status();
    environment_.planning = false;
    job_.emplace(options_, environment_, *std::move(record), now_);
  }

  template <class Condition>
  bool RunUntil(Duration at_most, Condition condition) {
    for (const TimePoint end = now_ + at_most; now_ < end; Step()) {
      if (condition()) return true;
    }
    return condition();
  }
  bool RunToTheEnd(Duration at_most) {
    return RunUntil(at_most, [&] {
      return job_->phase() == JobPhase::kEnded && router_.all_acknowledged(now_ - seconds(2));
    });
  }
  void Step() {
    now_ += kTick;
    for (const auto& process : processes_) {
      if (crashed_.contains(process->incarnation())) continue;
      std::vector<Packet> out;
      process->Tick(now_, out);
      ToScheduler(*process, out);
    }
    for (Letter& letter : network_.Take(now_)) Deliver(std::move(letter));
    if (std::optional<PlanMade> made = environment_.TakePlan()) job_->On(now_, *std::move(made));
    job_->Tick(now_);
    for (const Outgoing& out : job_->TakeOutgoing()) router_.Send(now_, out.to, out.message);
    router_.Tick(now_);
  }

  SimNetwork<Letter>& network() { return network_; }
  Job& job() { return *job_; }
  FakeEnvironment& environment() { return environment_; }
  TimePoint now() const { return now_; }
  const std::vector<std::unique_ptr<FakeProcess>>& processes() const { return processes_; }

 private:
  void ToScheduler(const FakeProcess& from, const std::vector<Packet>& packets) {
    for (const Packet& packet : packets) {
      EXPECT_EQ(packet.session, from.incarnation());
      network_.Put(now_, {0, packet});
    }
  }
  void Deliver(Letter letter) {
    if (letter.to == 0) {
      const std::string peer = std::to_string(letter.packet.session);
      for (SessionRouter::Arrived& a : router_.OnPacket(now_, peer, std::move(letter.packet))) {
        job_->On(now_, a.from, std::move(a.message));
      }
      return;
    }
    if (crashed_.contains(letter.to)) return;
    std::vector<Packet> out;
    FakeProcess& process = *processes_[letter.to - 1];
    process.OnPacket(now_, std::move(letter.packet), out);
    ToScheduler(process, out);
  }

  TimePoint now_ = TimePoint() + seconds(1000);
  SimNetwork<Letter> network_;
  FakeEnvironment environment_;
  SessionRouter router_;
  JobOptions options_;
  std::optional<Job> job_;
  std::vector<std::unique_ptr<FakeProcess>> processes_;
  std::set<uint64_t> crashed_;
};

JobConfig Job() {
  JobConfig job;
  job.job = "sim";
  job.train.batch_size = 10;
  job.train.epochs = 3;
  job.cluster.servers = 2;
  job.cluster.workers = 2;
  job.cluster.shards = 8;
  job.cluster.lease = seconds(3);
  job.cluster.start_timeout = seconds(60);
  job.checkpoint.every_steps = 7;
  job.train.early_stop = EarlyStopConfig{"valid.auc", 2};
  job.model.losses.emplace_back().type = "binary_cross_entropy";
  return job;
}

class JobSim : public ::testing::TestWithParam<uint64_t> {
 protected:
  void Populate(SimJob& sim) {
    for (int i = 0; i < 2; ++i) sim.Add(Role::kWorker);
    for (int i = 0; i < 2; ++i) sim.Add(Role::kServer);
  }
  const JobConfig job_ = Job();
};

TEST_P(JobSim, CompletesWithTheSameOrdersEverywhere) {
  SimJob sim(GetParam(), job_);
  sim.network().Misbehave({.drop = 0.1, .duplicate = 0.1, .delay_max = milliseconds(120)});
  Populate(sim);
  ASSERT_TRUE(sim.RunToTheEnd(seconds(300))) << Repeat(GetParam());
  EXPECT_TRUE(sim.job().outcome().ok()) << sim.job().outcome() << Repeat(GetParam());
  const auto& p = sim.processes();
  EXPECT_EQ(p[0]->done(), p[1]->done()) << Repeat(GetParam());
  EXPECT_EQ(p[2]->done(), p[3]->done()) << Repeat(GetParam());
  // The AUC is constant, so the first epoch is best, and training ends after two epochs without
  // gain.
  EXPECT_EQ(p[2]->done(),
            (std::vector<std::string>{"save 7", "save 10", "save 14", "save 21", "save 28",
                                      "save 30", "load 10 generation 2", "finish"}));
  EXPECT_EQ(sim.environment().committed,
            (std::vector<std::string>{"7", "10*", "14", "21", "28", "30"}));
  EXPECT_EQ(sim.environment().last.files.size(), 4u);
  Step trained = 0;
  for (const std::string& order : p[0]->done()) {
    if (!order.starts_with("train")) continue;
    EXPECT_EQ(order.substr(0, order.find("..")), fmt::format("train {}", trained))
        << "each step once";
    trained = std::stoull(order.substr(order.find("..") + 2));
  }
  EXPECT_EQ(trained, 30u);
  for (const auto& process : p) EXPECT_TRUE(process->stop().has_value());
}

TEST_P(JobSim, ASchedulerThatTakesTheJobUpGoesOnAsTheFirst) {
  const auto run = [&](int restarts) {
    SimJob sim(GetParam(), job_);
    sim.network().Misbehave({.drop = 0.1, .duplicate = 0.1, .delay_max = milliseconds(120)});
    Populate(sim);
    for (int i = 0; i < restarts; ++i) {
      sim.RunUntil(milliseconds(10 * sim.network().Below(100)),
                   [&] { return sim.job().phase() == JobPhase::kEnded; });
      if (sim.job().phase() != JobPhase::kEnded) sim.RestartScheduler();
    }
    EXPECT_TRUE(sim.RunToTheEnd(seconds(300))) << Repeat(GetParam());
    EXPECT_TRUE(sim.job().outcome().ok()) << sim.job().outcome() << Repeat(GetParam());
    std::vector<std::vector<std::string>> done = {sim.environment().committed};
    for (const auto& process : sim.processes()) done.push_back(process->done());
    return done;
  };
  EXPECT_EQ(run(5), run(0)) << Repeat(GetParam());
}

TEST_P(JobSim, ResultsDoNotDependOnTheNetwork) {
  const auto run = [&](uint64_t seed, double drop) {
    SimJob sim(seed, job_);
    sim.network().Misbehave({.drop = drop, .duplicate = drop, .delay_max = milliseconds(50)});
    Populate(sim);
    EXPECT_TRUE(sim.RunToTheEnd(seconds(300))) << Repeat(GetParam());
    JobResult result = ResultOf(sim.job(), sim.now());
    result.events.clear();
    result.roles.clear();
    result.seconds = result.seconds_total = 0;
    return ToJson(result);
  };
  EXPECT_EQ(run(GetParam(), 0.1), run(1, 0)) << Repeat(GetParam());
}

TEST_P(JobSim, CrashEndsTheJobWithTheProcesssName) {
  JobConfig job = job_;
  job.parallel.optimizer.on = true;  // So the job cannot go on without one of its workers.
  SimJob sim(GetParam(), job);
  sim.network().Misbehave({.drop = 0.05, .duplicate = 0.05, .delay_max = milliseconds(50)});
  Populate(sim);
  const Duration before = milliseconds(50 * sim.network().Below(16));
  sim.RunUntil(before, [&] { return sim.job().phase() == JobPhase::kEnded; });
  ASSERT_NE(sim.job().phase(), JobPhase::kEnded) << Repeat(GetParam());
  const size_t victim = sim.network().Below(4);
  sim.Crash(victim);
  const TimePoint crashed = sim.now();
  // A process that never joined is reported missing at the deadline of the start; others are lost
  // after a lease.
  const auto find = [&] { return sim.job().membership().Find(Incarnation(victim + 1)); };
  const bool joined = find() != nullptr;
  ASSERT_TRUE(sim.RunUntil(joined ? seconds(8) : seconds(70),
                           [&] { return sim.job().phase() == JobPhase::kEnded; }))
      << Repeat(GetParam()) << " after " << SecondsBetween(crashed, sim.now());
  const std::string why = ToText(sim.job().outcome());
  const Member* member = find();  // Its Join may have been in flight at the crash.
  if (member == nullptr) {
    EXPECT_NE(why.find("only"), std::string::npos) << why << Repeat(GetParam());
    return;
  }
  const std::string name =
      fmt::format("{} {} (pid ", victim < 2 ? "worker" : "server", member->id.value());
  EXPECT_EQ(sim.job().outcome().code(), StatusCode::kUnavailable);
  EXPECT_EQ(why.substr(0, name.size()), name) << why << Repeat(GetParam());
  const bool told = sim.RunUntil(seconds(20), [&] {
    for (size_t i = 0; i < 4; ++i) {
      if (i != victim && !sim.processes()[i]->stop().has_value()) return false;
    }
    return true;
  });
  EXPECT_TRUE(told) << Repeat(GetParam());
}

// Orders that the two processes of one server carried out; an order that both did counts once.
std::vector<std::string> DoneByBoth(const FakeProcess& first, const FakeProcess& second) {
  std::vector<std::string> done = first.done();
  const bool twice = !done.empty() && !second.done().empty() && done.back() == second.done()[0];
  done.insert(done.end(), second.done().begin() + (twice ? 1 : 0), second.done().end());
  return done;
}

TEST_P(JobSim, AServerThatKeepsALogIsWaitedForAndReplaced) {
  JobConfig job = job_;
  job.checkpoint.durability = Durability::kLog;
  SimJob sim(GetParam(), job);
  sim.network().Misbehave({.drop = 0.05, .duplicate = 0.05, .delay_max = milliseconds(50)});
  for (int i = 0; i < 2; ++i) sim.Add(Role::kWorker);
  for (uint64_t i = 0; i < 2; ++i) sim.Add(Role::kServer, {}, 71 + i);
  sim.RunUntil(milliseconds(50 * sim.network().Below(20)),
               [&] { return sim.job().phase() == JobPhase::kEnded; });
  const size_t victim = 2 + sim.network().Below(2);
  const bool joined = sim.job().membership().Find(Incarnation(victim + 1)) != nullptr;
  if (!joined || sim.job().phase() == JobPhase::kEnded) return;
  sim.Crash(victim);
  // The replacement starts before the lease has run out, or long after.
  sim.RunUntil(milliseconds(500 * sim.network().Below(40)), [] { return false; });
  ASSERT_NE(sim.job().phase(), JobPhase::kEnded)
      << ToText(sim.job().outcome()) << Repeat(GetParam());
  sim.Add(Role::kServer, {}, 71 + victim - 2);
  ASSERT_TRUE(sim.RunToTheEnd(seconds(300))) << Repeat(GetParam());
  EXPECT_TRUE(sim.job().outcome().ok()) << sim.job().outcome() << Repeat(GetParam());
  const auto& p = sim.processes();
  // The crash may have come before the welcome.
  if (p[victim]->id().value() != 0) {
    EXPECT_EQ(p[4]->id(), p[victim]->id());
  }
  EXPECT_EQ(p[0]->done(), p[1]->done()) << Repeat(GetParam());
  EXPECT_EQ(DoneByBoth(*p[victim], *p[4]), p[5 - victim]->done()) << Repeat(GetParam());
  EXPECT_EQ(sim.environment().last.files.size(), 4u);
  std::vector<std::string> kinds;
  for (const auto& event : sim.job().record().events) {
    if (event.kind == "server_lost" || event.kind == "recovered") kinds.push_back(event.kind);
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"server_lost", "recovered"})) << Repeat(GetParam());
}

// The parent of a server reports its end: neither the next server nor the job waits for the lease.
TEST_P(JobSim, AServerThatIsToldToHaveEndedIsReplacedWithoutALease) {
  JobConfig job = job_;
  job.checkpoint.durability = Durability::kLog;
  job.cluster.lease = seconds(1000);
  SimJob sim(GetParam(), job);
  sim.network().Misbehave({.drop = 0.05, .duplicate = 0.05, .delay_max = milliseconds(50)});
  for (int i = 0; i < 2; ++i) sim.Add(Role::kWorker);
  for (uint64_t i = 0; i < 2; ++i) sim.Add(Role::kServer, {}, 71 + i);
  sim.RunUntil(milliseconds(50 * sim.network().Below(20)),
               [&] { return sim.job().phase() == JobPhase::kEnded; });
  const size_t victim = 2 + sim.network().Below(2);
  const bool joined = sim.job().membership().Find(Incarnation(victim + 1)) != nullptr;
  if (!joined || sim.job().phase() == JobPhase::kEnded) return;
  sim.Crash(victim);
  sim.TellEnd(victim, true);
  sim.Add(Role::kServer, {}, 71 + victim - 2);
  ASSERT_TRUE(sim.RunToTheEnd(seconds(100))) << Repeat(GetParam());
  EXPECT_TRUE(sim.job().outcome().ok()) << sim.job().outcome() << Repeat(GetParam());
  const auto& p = sim.processes();
  EXPECT_EQ(DoneByBoth(*p[victim], *p[4]), p[5 - victim]->done()) << Repeat(GetParam());
}

TEST_P(JobSim, AnEndThatIsToldEndsTheJobAtOnceWithTheProcesssName) {
  JobConfig job = job_;
  job.parallel.optimizer.on = true;  // So the job cannot go on without one of its workers.
  SimJob sim(GetParam(), job);
  Populate(sim);
  sim.RunUntil(milliseconds(50 + 50 * sim.network().Below(16)), [] { return false; });
  if (sim.job().phase() == JobPhase::kEnded) return;
  const size_t victim = sim.network().Below(4);
  const Member* const member = sim.job().membership().Find(Incarnation(victim + 1));
  const std::string name = member == nullptr ? "it (pid " : member->Name();
  sim.Crash(victim);
  sim.TellEnd(victim, false);
  EXPECT_EQ(sim.job().phase(), JobPhase::kEnded) << Repeat(GetParam());
  EXPECT_EQ(ToText(sim.job().outcome()).substr(0, name.size()), name) << Repeat(GetParam());
  EXPECT_TRUE(sim.RunToTheEnd(seconds(1))) << "nobody waits for what has ended";
}

// A process that has read a server's token cannot displace that server: it waits in vain for the
// server's lease to run out.
TEST_P(JobSim, ATokenDoesNotDisplaceAServerThatLives) {
  JobConfig job = job_;
  job.checkpoint.durability = Durability::kLog;
  SimJob sim(GetParam(), job);
  for (int i = 0; i < 2; ++i) sim.Add(Role::kWorker);
  const FakeProcess& owner = sim.Add(Role::kServer, {}, 71);
  sim.Add(Role::kServer, {}, 72);
  ASSERT_TRUE(sim.RunUntil(seconds(30), [&] { return owner.id().value() != 0; }));
  sim.RunUntil(milliseconds(50 * sim.network().Below(10)),
               [&] { return sim.job().phase() == JobPhase::kEnded; });
  if (sim.job().phase() == JobPhase::kEnded) return;
  const FakeProcess& thief = sim.Add(Role::kServer, {}, 71);
  ASSERT_TRUE(sim.RunToTheEnd(seconds(300))) << Repeat(GetParam());
  EXPECT_TRUE(sim.job().outcome().ok()) << sim.job().outcome() << Repeat(GetParam());
  EXPECT_TRUE(thief.refused().has_value()) << Repeat(GetParam());
  EXPECT_EQ(thief.id().value(), 0u) << Repeat(GetParam());
  for (const auto& event : sim.job().record().events) EXPECT_NE(event.kind, "server_lost");
}

TEST_P(JobSim, AServerThatDoesNotComeBackEndsTheJob) {
  JobConfig job = job_;
  job.cluster.wait_for_server = seconds(10);
  SimJob sim(GetParam(), job);
  for (int i = 0; i < 2; ++i) sim.Add(Role::kWorker);
  for (uint64_t i = 0; i < 2; ++i) sim.Add(Role::kServer, {}, 71 + i);
  sim.RunUntil(milliseconds(200), [] { return false; });
  sim.Crash(3);
  ASSERT_FALSE(sim.RunUntil(seconds(12), [&] { return sim.job().phase() == JobPhase::kEnded; }));
  ASSERT_TRUE(sim.RunUntil(seconds(3), [&] { return sim.job().phase() == JobPhase::kEnded; }));
  const std::string name = fmt::format("server {} (pid ", sim.processes()[3]->id().value());
  EXPECT_EQ(ToText(sim.job().outcome()).substr(0, name.size()), name) << Repeat(GetParam());
}

TEST_P(JobSim, StopsOnRequestWithACheckpointAndGoesOnFromIt) {
  SimJob sim(GetParam(), job_);
  Populate(sim);
  sim.RunUntil(milliseconds(100 + 20 * sim.network().Below(20)), [] { return false; });
  if (sim.job().phase() == JobPhase::kEnded) return;
  sim.job().RequestStop(sim.now());
  ASSERT_TRUE(sim.RunToTheEnd(seconds(20))) << Repeat(GetParam());
  EXPECT_EQ(sim.job().outcome().code(), StatusCode::kCancelled);
  if (sim.environment().committed.empty()) return;  // Nothing has been trained yet.
  const Step stopped = sim.environment().last.schedule.step;
  EXPECT_EQ(stopped, sim.job().training()->schedule().state().step) << Repeat(GetParam());

  SimJob again(GetParam() + 100, job_, JobOptions::Checkpoint{"/from", sim.environment().last});
  Populate(again);
  ASSERT_TRUE(again.RunToTheEnd(seconds(300))) << Repeat(GetParam());
  EXPECT_TRUE(again.job().outcome().ok()) << again.job().outcome();
  EXPECT_EQ(again.processes()[2]->done().front(), fmt::format("load {} generation 2", stopped));
  EXPECT_EQ(again.job().training()->schedule().state().step, 30u);
  EXPECT_EQ(again.job().training()->schedule().state().samples, 285u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, JobSim, ::testing::ValuesIn(SimSeeds()));

}  // namespace
}  // namespace dt::scheduler
