// Goal: a job that loses what nobody else has begins again from its last checkpoint, with those
// that are expected, or with those that are there in time; never more often in a row than it may.
#include <algorithm>

#include <gmock/gmock.h>

#include "test/unit/scheduler/job/job_fixture.h"

namespace dt::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobReturnsTest : public JobTest {
 protected:
  JobReturnsTest() {
    config_.cluster.lease = seconds(1000);
    config_.cluster.wait_for_server = seconds(40);
    config_.parallel.optimizer.on = true;  // No worker can be done without.
    MakeThatReturns();
  }
  void MakeThatReturns() {
    options_.emplace(JobOptions{.job = config_,
                                .term = Term(1),
                                .generation = Generation(1),
                                .run = 5,
                                .may_return = true});
    job_.emplace(*options_, environment_, kStart);
  }
  void End(uint64_t pid, bool returns, Duration at = {}) {
    job_->OnProcessEnd(kStart + at, "host",
                       {"worker 2", static_cast<int64_t>(pid), "was killed", returns});
  }
  // The job that begins again takes the place of this one.
  void BeginAgain(Duration at = {}) {
    std::optional<Job::Beginning> again = job_->TakeBeginning();
    ASSERT_TRUE(again.has_value());
    job_.emplace(*options_, environment_, std::move(again->record), kStart + at);
  }
  void Tick(Duration at) { job_->Tick(kStart + at); }

  std::optional<JobOptions> options_;
};

TEST_F(JobReturnsTest, AllAreToldAndItBeginsInTheNextGenerationWithThoseThatJoin) {
  Begin();
  ASSERT_EQ(job_->phase(), JobPhase::kRunning);
  End(1, true);
  const std::vector<Outgoing> out = job_->TakeOutgoing();
  const auto told = std::ranges::count_if(out, [](const Outgoing& each) {
    const auto* const stop = std::get_if<StopMessage>(&each.message);
    return stop != nullptr && stop->code == StatusCode::kAborted;
  });
  EXPECT_EQ(told, 3);
  BeginAgain();
  EXPECT_EQ(job_->phase(), JobPhase::kGathering);
  EXPECT_EQ(job_->record().generation, Generation(2));
  EXPECT_NE(job_->record().run, 5U);
  EXPECT_THAT(job_->record().returns.why, HasSubstr("was killed"));
  for (const uint64_t process : {12, 14}) Join(process, Role::kWorker);
  EXPECT_EQ(job_->phase(), JobPhase::kGathering);
  Join(13, Role::kServer);
  Tick(seconds(1));
  EXPECT_EQ(job_->phase(), JobPhase::kReading);
}

// Messages that came meanwhile are not passed over.
TEST_F(JobReturnsTest, AStreamBeginsAgainWhereItBegan) {
  config_.data.stream = StreamConfig{.from_end = true};
  config_.train.batch_size = 1000;  // It waits for more messages.
  MakeThatReturns();
  DataReadyMessage data = Data(0);
  const auto read = [&](uint64_t first, uint64_t end) {
    data.partitions = {{0, end}, {0, 7}};
    for (uint64_t from : {first, first + 1}) Say(from, data);
    for (uint64_t from : {first, first + 1, first + 2}) Say(from, ReadyMessage{});
  };
  JoinAll();
  read(1, 5);
  ASSERT_TRUE(job_->record().training.has_value());
  End(1, true);
  BeginAgain();
  for (const uint64_t process : {12, 13}) Join(process, Role::kWorker);
  Join(14, Role::kServer);
  Tick(seconds(1));
  read(12, 50);
  ASSERT_TRUE(job_->record().training.has_value());
  EXPECT_THAT(job_->record().training->schedule.stream.ends, ElementsAre(50, 7));
  EXPECT_THAT(job_->record().stream_begins, ElementsAre(5, 7));
  EXPECT_EQ(job_->record().training->schedule.stream.next, job_->record().stream_begins);
}

// It had only been silent.
TEST_F(JobReturnsTest, AFormerMemberHearsThatItIsToJoinAgain) {
  Begin();
  End(1, true);
  BeginAgain();
  Say(2, HeartbeatMessage{});
  const std::vector<StopMessage> told = SentTo<StopMessage>(2);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].code, StatusCode::kAborted);
}

TEST_F(JobReturnsTest, OthersAreWaitedForAndThenItBeginsWithThoseThatAreThere) {
  Begin();
  End(1, true);
  BeginAgain();
  Join(12, Role::kWorker);
  Join(13, Role::kServer);
  Tick(seconds(40));
  EXPECT_EQ(job_->phase(), JobPhase::kGathering);
  Tick(seconds(41));
  EXPECT_EQ(job_->phase(), JobPhase::kReading);
  EXPECT_TRUE(job_->outcome().ok());
}

TEST_F(JobReturnsTest, WithoutAServerItEndsAndSaysWhatWasLost) {
  Begin();
  End(1, true);
  BeginAgain();
  Join(12, Role::kWorker);
  Tick(seconds(41));
  EXPECT_THAT(Outcome(), HasSubstr("was killed; 41 s later only 0 of 1 server and 1 of 2 workers "
                                   "have come back"));
}

// `launch` has not started another, so that nobody waits for it.
TEST_F(JobReturnsTest, OneThatIsNotStartedAgainIsNotExpected) {
  Begin();
  End(1, true);
  BeginAgain();
  Join(13, Role::kServer);
  End(2, false);
  EXPECT_EQ(Outcome(), "not ended");
  Join(14, Role::kWorker);  // In the place of 1.
  Tick(seconds(1));
  EXPECT_EQ(job_->phase(), JobPhase::kReading);
}

TEST_F(JobReturnsTest, OneThatEndsByItselfEndsTheJob) {
  Begin();
  End(1, false);
  EXPECT_FALSE(job_->TakeBeginning().has_value());
  EXPECT_THAT(Outcome(), HasSubstr("worker 2 (pid 1 on host) was killed"));
}

TEST_F(JobReturnsTest, WhileProcessesGatherAnotherTakesAPlace) {
  JoinAll();
  MakeThatReturns();
  Join(1, Role::kWorker);
  Join(3, Role::kServer);
  End(1, true);
  EXPECT_FALSE(job_->TakeBeginning().has_value());
  Join(11, Role::kWorker);
  Join(2, Role::kWorker);
  Tick(seconds(1));
  EXPECT_EQ(job_->phase(), JobPhase::kReading);
}

TEST_F(JobReturnsTest, NotMoreOftenInARowThanRestartsAllow) {
  config_.cluster.restarts = 2;
  MakeThatReturns();
  for (uint64_t time = 0; time < 3; ++time) {
    const uint64_t first = 10 * time;
    Join(first + 1, Role::kWorker);
    Join(first + 2, Role::kWorker);
    Join(first + 3, Role::kServer);
    Tick(seconds(1));
    ASSERT_EQ(job_->phase(), JobPhase::kReading) << time;
    End(first + 1, true);
    if (time < 2) BeginAgain();
  }
  EXPECT_FALSE(job_->TakeBeginning().has_value());
  EXPECT_THAT(Outcome(), HasSubstr("was killed"));
}

}  // namespace
}  // namespace dt::scheduler
