// Goal: a job whose worker is lost goes on in a view without it, and decides what is complete only
// from what all others report. Method: messages written by the test, and a simulated clock.
#include <gmock/gmock.h>

#include "test/unit/scheduler/job/job_fixture.h"

namespace dt::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Workers 1 and 2 have the ids 2 and 3; server 3 has the id 1.
class WorkerViewsTest : public JobTest {
 protected:
  void Lose(uint64_t worker) {
    job_->OnProcessEnd(kStart, "host", {"worker", static_cast<int64_t>(worker), "was killed"});
  }
  static ViewReportMessage Report(Step step, bool entered = false, uint64_t view = 2) {
    return {ViewNumber(view), step, entered};
  }
};

TEST_F(WorkerViewsTest, AStepThatNobodyKnowsCompleteIsDoneAgain) {
  Begin();
  job_->TakeOutgoing();
  Lose(2);
  EXPECT_EQ(Outcome(), "not ended");
  std::vector<Outgoing> told = job_->TakeOutgoing();
  ASSERT_THAT(told, SizeIs(3)) << "the lost one that it is gone, the others of the view";
  for (const Outgoing& out : told) {
    if (out.to == Incarnation(2)) {
      EXPECT_TRUE(std::holds_alternative<StopMessage>(out.message));
      continue;
    }
    const auto& next = std::get<NewViewMessage>(out.message);
    EXPECT_EQ(next.view.number, ViewNumber(2));
    EXPECT_THAT(next.view.workers, ElementsAre(ProcessId(2)));
  }
  Say(1, Report(3, true));
  EXPECT_THAT(job_->TakeOutgoing(), IsEmpty()) << "the server may know more";
  Say(3, Report(3));
  told = job_->TakeOutgoing();
  ASSERT_GE(told.size(), 2U);
  EXPECT_EQ(std::get<ViewBeginsMessage>(told[0].message).step, 3U);
  const auto& order = std::get<OrderMessage>(told[1].message);
  EXPECT_EQ(order.number, 1U) << "the same order goes on";
  EXPECT_THAT(std::get<TrainOrder>(order.what).slice_owner, ElementsAre(0, 0));
  EXPECT_EQ(events().back().kind, "view");
}

TEST_F(WorkerViewsTest, AStepThatAServerKnowsCompleteIsCompleteForAll) {
  Begin();
  Lose(2);
  Say(1, Report(3, true));
  Say(3, Report(4));
  const auto begins = SentTo<ViewBeginsMessage>(1);
  ASSERT_THAT(begins, SizeIs(1));
  EXPECT_EQ(begins[0].step, 4U);
}

TEST_F(WorkerViewsTest, ACompleteStepThatAWorkerHasNotEnteredEndsTheJob) {
  Begin();
  Lose(2);
  Say(1, Report(3));
  Say(3, Report(4));
  EXPECT_EQ(Outcome(), "worker 2 (pid 1 on host) has done 3 steps, and 4 are complete");
}

TEST_F(WorkerViewsTest, ReportsOfOtherViewsChangeNothing) {
  Begin();
  Lose(2);
  job_->TakeOutgoing();
  Say(1, Report(3, false, 1));
  Say(3, Report(3));
  Say(3, Report(9));
  EXPECT_THAT(job_->TakeOutgoing(), IsEmpty());
  Say(1, Report(3));
  const auto begins = SentTo<ViewBeginsMessage>(1);
  ASSERT_THAT(begins, SizeIs(1));
  EXPECT_EQ(begins[0].step, 3U) << "the first report counts";
}

// A restarted scheduler asks again whoever has not reported, and tells others what has begun.
TEST_F(WorkerViewsTest, AnotherSchedulerAsksAgain) {
  Begin();
  Lose(2);
  Say(3, Report(3));
  const JobRecord record = job_->record();
  job_.emplace(JobOptions{config_, Goal::kTrain, Term(2), Generation(1), {}}, environment_, record,
               kStart);
  Join(1, Role::kWorker);
  EXPECT_THAT(SentTo<NewViewMessage>(1), SizeIs(1));
  Join(3, Role::kServer);
  EXPECT_THAT(SentTo<NewViewMessage>(3), IsEmpty()) << "it has reported";
  Say(1, Report(3));
  EXPECT_THAT(SentTo<ViewBeginsMessage>(1), SizeIs(1));
  Join(1, Role::kWorker);
  EXPECT_THAT(SentTo<ViewBeginsMessage>(1), SizeIs(1)) << "in case it was lost";
}

// Some workers may have loaded the checkpoint, and others not.
TEST_F(WorkerViewsTest, WhileACheckpointIsLoadedItsStepCounts) {
  JobOptions::Checkpoint checkpoint{.folder = "/done/40", .manifest = {}};
  checkpoint.manifest.schedule.step = 40;
  checkpoint.manifest.train_rows = 100;
  Make(checkpoint);
  Begin();
  Lose(2);
  Say(1, Report(0));
  Say(3, Report(0));
  const std::vector<Outgoing> told = job_->TakeOutgoing();
  size_t loads = 0;
  for (const Outgoing& out : told) {
    if (const auto* begins = std::get_if<ViewBeginsMessage>(&out.message)) {
      EXPECT_EQ(begins->step, 40U);
    }
    const auto* const order = std::get_if<OrderMessage>(&out.message);
    if (order != nullptr && out.to == Incarnation(1)) ++loads;
  }
  EXPECT_EQ(loads, 2U) << "at first, and again in the new view";
}

// Twice two workers report that they do not reach each other: the second leaves, and another of its
// machine wants its place.
TEST_F(WorkerViewsTest, AMachineThatIsNotReachedAgainRests) {
  config_.train.slices = 2;
  Make();
  Begin();
  Duration at{};
  const auto enter = [&](uint64_t worker, uint32_t view) {
    Say(worker, Data(), at);
    Say(worker, ReadyMessage{}, at);
    for (const uint64_t from : {uint64_t{1}, uint64_t{3}}) Say(from, Report(0, false, view), at);
    ViewReportMessage report = Report(0, false, view);
    report.newcomer = true;
    Say(worker, report, at);
  };
  const auto part = [&](uint64_t worker, uint32_t id, uint32_t view) {
    at += seconds(60);
    for (const uint64_t from : {uint64_t{1}, uint64_t{3}, worker}) {
      HeartbeatMessage beat;
      beat.peers = {ViewNumber(view), ProcessId(from == 1 ? id : 2), 60, true};
      if (from == 3) beat.peers = {};
      Say(from, beat, at);
    }
    job_->Tick(kStart + at);
    ASSERT_EQ(events().back().kind, "worker_lost");
    for (const uint64_t from : {uint64_t{1}, uint64_t{3}})
      Say(from, Report(0, false, view + 1), at);
    ASSERT_EQ(events().back().kind, "view");
  };
  part(2, 3, 1);
  Join(4, Role::kWorker);
  enter(4, 3);
  ASSERT_EQ(events().back().kind, "view") << "at once";
  const auto newest = static_cast<uint32_t>(job_->record().views.workers.back().value());
  part(4, newest, 3);
  Join(5, Role::kWorker);
  enter(5, 5);
  EXPECT_EQ(events().back().kind, "worker_waits");
  EXPECT_THAT(job_->record().views.workers, SizeIs(1));
  at += seconds(61);
  for (const uint64_t from : {1, 3, 5}) Say(from, HeartbeatMessage{}, at);
  job_->Tick(kStart + at);
  EXPECT_THAT(job_->record().views.workers, SizeIs(2));
}

TEST_F(WorkerViewsTest, TheLastWorkerEndsTheJob) {
  Begin();
  Lose(2);
  Lose(1);
  EXPECT_EQ(Outcome(), "worker 2 (pid 1 on host) was killed; see its log");
}

}  // namespace
}  // namespace dt::scheduler
