// Goal: the record of a job is complete, and can be written and read. Method: a job driven by the
// test, interrupted while many things are unfinished.
#include "scheduler/state/job_record.h"

#include "test/unit/scheduler/job/job_fixture.h"

namespace dt::scheduler {
namespace {

class JobRecordTest : public JobTest {
 protected:
  // One step is trained and one server still writes its rows; meanwhile training goes on, and one
  // worker has reported.
  void PlayToTheMiddle() {
    config_.checkpoint.every_steps = 4;
    Begin();
    PlayOn();
  }
  void PlayOn() {
    for (uint64_t from : {1, 2}) {
      Say(from, OrderDoneMessage{1, TrainDone{4, 40, {5}, {0.5}, 0.1}});
    }
    for (uint64_t from : {1, 2}) Say(from, OrderDoneMessage{2, SaveDone{}});
    Say(3, OrderDoneMessage{2, SaveDone{{{"a", 1, 2}}, true}});
    Say(1, OrderDoneMessage{3, TrainDone{8, 40, {5}, {}, 0.1}});
    Say(1, KvPutMessage{"key", std::string("\xff\0\n", 3)});
    Say(2, KvGetMessage{"another"});
  }
};

TEST_F(JobRecordTest, ComesBackAsItWasInTheMiddleOfAJob) {
  PlayToTheMiddle();
  const JobRecord& record = job_->record();
  EXPECT_EQ(record.phase, JobPhase::kRunning);
  const RecordParts parts = EncodeJobRecord(record);
  const Result<JobRecord> back = DecodeJobRecord(parts);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(EncodeJobRecord(*back), parts);
  EXPECT_EQ(back->members.size(), 3u);
  EXPECT_EQ(back->members.back().join.pid, 2);
  EXPECT_EQ(back->start.view, record.start.view);
  EXPECT_EQ(back->start.plans, record.start.plans);
  EXPECT_EQ(back->training->schedule.state.step, 4u);
  EXPECT_EQ(back->training->checkpoint.writing, std::set<ProcessId>{ProcessId(1)});
  EXPECT_EQ(back->training->checkpoint.manifest.files.size(), 1u);
  EXPECT_EQ(back->orders.out.size(), 1u);
  EXPECT_EQ(back->orders.out[0].outcomes.size(), 1u);
  EXPECT_EQ(back->rendezvous.values.at("key"), std::string("\xff\0\n", 3));
  EXPECT_EQ(back->events.size(), record.events.size());
}

TEST_F(JobRecordTest, DiffersWhereTheJobsDiffer) {
  PlayToTheMiddle();
  const RecordParts before = EncodeJobRecord(job_->record());
  Say(2, KvPutMessage{"another", ""});
  EXPECT_NE(EncodeJobRecord(job_->record()), before);
}

TEST_F(JobRecordTest, IsPrintedWithLongTextsShortened) {
  environment_.plan->explanation = std::string(5000, 'x');
  PlayToTheMiddle();
  const std::string text = PrintJobRecord(job_->record());
  EXPECT_NE(text.find("\"host\": \"host\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"(5000 bytes)\""), std::string::npos) << text;
  EXPECT_EQ(text.find("xxx"), std::string::npos);
}

TEST_F(JobRecordTest, DamagedBytesAreRefused) {
  PlayToTheMiddle();
  const RecordParts parts = EncodeJobRecord(job_->record());
  EXPECT_EQ(DecodeJobRecord({}).status().code(), StatusCode::kDataLoss);
  for (const auto& [name, bytes] : parts) {
    RecordParts damaged = parts;
    damaged.erase(name);
    EXPECT_EQ(DecodeJobRecord(damaged).status().code(), StatusCode::kDataLoss) << name;
    for (size_t size = 0; size < bytes.size(); size += 97) {
      damaged[name] = bytes.substr(0, size);
      EXPECT_EQ(DecodeJobRecord(damaged).status().code(), StatusCode::kDataLoss) << name;
    }
    damaged[name] = "{}";
    EXPECT_EQ(DecodeJobRecord(damaged).status().code(), StatusCode::kDataLoss) << name;
  }
}

// What is written once must not change afterwards.
TEST_F(JobRecordTest, SomePartsStayAsTheyAreOnceTheRunHasBegun) {
  config_.checkpoint.every_steps = 4;
  Begin();
  const RecordParts begun = EncodeJobRecord(job_->record());
  const RecordParts changing = EncodeJobRecord(job_->record(), PartsOf::kRun);
  EXPECT_EQ(begun.size(), changing.size() + 3);
  PlayOn();
  const RecordParts later = EncodeJobRecord(job_->record());
  for (const auto& [name, bytes] : begun) {
    if (changing.contains(name)) continue;
    EXPECT_EQ(later.at(name), bytes) << name;
  }
}

TEST_F(JobRecordTest, AnotherSchedulerTakesTheJobUp) {
  PlayToTheMiddle();
  const JobRecord record = *DecodeJobRecord(EncodeJobRecord(job_->record()));
  job_.emplace(JobOptions{config_, Goal::kTrain, Term(2), Generation(2), {}}, environment_, record,
               kStart);
  EXPECT_EQ(job_->record().term, Term(2));
  Say(3, RowsWrittenMessage{2, {{"rows", 3, 4}}});
  EXPECT_EQ(environment_.committed, std::vector<std::string>{"4"});
  Say(2, OrderDoneMessage{3, TrainDone{8, 40, {5}, {}, 0.1}});
  EXPECT_EQ(job_->record().training->schedule.state.step, 8u);
  Say(1, KvPutMessage{"another", "value"});
  EXPECT_EQ(SentTo<KvValueMessage>(2).size(), 1u);
  EXPECT_EQ(Outcome(), "not ended");
}

TEST_F(JobRecordTest, ASchedulerThatTakesAJobUpWhileItPlansPlansAgain) {
  plans_at_once_ = false;
  JoinAll();
  Say(1, Data());
  Say(2, Data());
  environment_.planning = false;  // The planning ended with the first scheduler.
  const JobRecord record = job_->record();
  job_.emplace(JobOptions{config_, Goal::kTrain, Term(2), Generation(2), {}}, environment_, record,
               kStart);
  job_->Tick(kStart);
  TellPlan();
  EXPECT_EQ(job_->phase(), JobPhase::kStarting);
}

}  // namespace
}  // namespace dt::scheduler
