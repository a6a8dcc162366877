// Goal: what the schedulers of a job leave on disk tells the next one where to go on, and nothing
// else does. Method: a store on disk, opened again as by another process; damaged values.
#include "scheduler/service/run_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/scratch_folder.h"

namespace dt::scheduler {
namespace {

using ::testing::HasSubstr;

// Counts what is written.
class CountingState : public StateStore {
 public:
  explicit CountingState(std::unique_ptr<StateStore> real) : real_(std::move(real)) {}
  Result<std::optional<std::string>> Get(const std::string& key) override {
    return real_->Get(key);
  }
  Result<std::map<std::string, std::string>> GetAll(const std::string& prefix) override {
    return real_->GetAll(prefix);
  }
  Status RemoveAll(const std::string& prefix) override { return real_->RemoveAll(prefix); }
  Status Put(const std::map<std::string, std::string>& values) override {
    for (const auto& [key, value] : values) written.push_back(key);
    return real_->Put(values);
  }
  std::vector<std::string> written;

 private:
  const std::unique_ptr<StateStore> real_;
};

class RunStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<StateStore> State() { return *OpenRocksStateStore(folder_.path()); }
  // As another scheduler process would.
  void Open() {
    store_.reset();
    auto state = std::make_unique<CountingState>(State());
    state_ = state.get();
    store_ = *RunStore::Open(std::move(state));
  }
  void Damage(const std::string& key, const std::string& value) {
    store_.reset();
    ASSERT_TRUE(State()->Put({{key, value}}).ok());
    Open();
  }
  static JobRecord Record(JobPhase phase) {
    JobRecord record;
    record.phase = phase;
    record.run = 77;
    record.members.push_back({.id = ProcessId(1)});
    record.start.plans = {{"a plan"}};
    return record;
  }

  const test::ScratchFolder folder_;
  CountingState* state_ = nullptr;
  std::unique_ptr<RunStore> store_;
};

const RunIdentity kIdentity{"tcp://127.0.0.1:7", 5, 6, 1000.5};

TEST_F(RunStoreTest, TermsGrowWithSchedulersAndGenerationsWithRuns) {
  Open();
  EXPECT_EQ(store_->term(), Term(1));
  ASSERT_TRUE(store_->BeginRun(kIdentity).ok());
  EXPECT_EQ(store_->generation(), Generation(1));
  Open();
  EXPECT_EQ(store_->term(), Term(2));
  EXPECT_EQ(store_->generation(), Generation(1));
  ASSERT_TRUE(store_->KeepGeneration(Generation(5)).ok());
  Open();
  ASSERT_TRUE(store_->BeginRun(kIdentity).ok());
  EXPECT_EQ(store_->generation(), Generation(6));
}

TEST_F(RunStoreTest, ARunWithoutAnEndIsFound) {
  Open();
  EXPECT_FALSE(store_->Unfinished()->has_value());
  ASSERT_TRUE(store_->BeginRun(kIdentity).ok());
  ASSERT_TRUE(store_->Keep(Record(JobPhase::kRunning)).ok());
  Open();
  const std::optional<UnfinishedRun> run = *store_->Unfinished();
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->identity.address, kIdentity.address);
  EXPECT_EQ(run->identity.begun, 1000.5);
  EXPECT_EQ(run->record.run, 77u);
  EXPECT_EQ(run->record.start.plans, std::vector{PlanBytes{"a plan"}});
}

TEST_F(RunStoreTest, ARunIsOverWhenItEndsAndWhenAnotherBegins) {
  Open();
  ASSERT_TRUE(store_->BeginRun(kIdentity).ok());
  ASSERT_TRUE(store_->Keep(Record(JobPhase::kRunning)).ok());
  ASSERT_TRUE(store_->EndRun().ok());
  Open();
  EXPECT_FALSE(store_->Unfinished()->has_value());
  ASSERT_TRUE(store_->BeginRun(kIdentity).ok());
  Open();
  EXPECT_FALSE(store_->Unfinished()->has_value()) << "nobody heard of it";
}

TEST_F(RunStoreTest, OnlyWhatHasChangedIsWritten) {
  Open();
  ASSERT_TRUE(store_->BeginRun(kIdentity).ok());
  JobRecord record = Record(JobPhase::kGathering);
  ASSERT_TRUE(store_->Keep(record).ok());
  record.phase = JobPhase::kStarting;
  record.start.plans = {{"another plan"}};
  ASSERT_TRUE(store_->Keep(record).ok());
  state_->written.clear();
  ASSERT_TRUE(store_->Keep(record).ok());
  EXPECT_EQ(state_->written, std::vector<std::string>());
  record.phase = JobPhase::kRunning;
  ASSERT_TRUE(store_->Keep(record).ok());
  EXPECT_EQ(state_->written, std::vector<std::string>{"run/phase"});
  // Another scheduler knows what is there.
  Open();
  ASSERT_TRUE(store_->Unfinished().ok());
  state_->written.clear();
  record.last_checkpoint = "there";
  ASSERT_TRUE(store_->Keep(record).ok());
  EXPECT_EQ(state_->written, std::vector<std::string>{"run/last_checkpoint"});
  EXPECT_EQ((*store_->Unfinished())->record.start.plans, std::vector{PlanBytes{"another plan"}});
}

TEST_F(RunStoreTest, DamageIsToldAndNotTakenForAnotherRun) {
  Open();
  ASSERT_TRUE(store_->BeginRun(kIdentity).ok());
  ASSERT_TRUE(store_->Keep(Record(JobPhase::kRunning)).ok());
  const std::string members = *state_->Get("run/members").value();
  for (const std::string& bad : {std::string(), members.substr(1), std::string("\xff")}) {
    Damage("run/members", bad);
    const Status status = store_->Unfinished().status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_THAT(ToText(status), HasSubstr("record of the job is damaged"));
  }
  Damage("run", "{");
  EXPECT_EQ(store_->Unfinished().status().code(), StatusCode::kDataLoss);
  store_.reset();
  ASSERT_TRUE(State()->Put({{"term", "x"}}).ok());
  EXPECT_THAT(ToText(RunStore::Open(State()).status()), HasSubstr("holds \"x\" as term"));
}

}  // namespace
}  // namespace dt::scheduler
