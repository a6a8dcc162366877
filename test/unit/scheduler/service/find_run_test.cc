// Goal: a scheduler goes on with the run that the last one left if a member of that run speaks to
// it, and begins another in all other cases. Method: an in-memory network; members are sockets that
// send one packet again and again.
#include "scheduler/service/find_run.h"

#include <thread>

#include <gtest/gtest.h>

#include "common/base/pause.h"
#include "common/control/packet.h"
#include "common/net/memory_network.h"
#include "common/wire/data.h"
#include "test/support/scratch_folder.h"

namespace dt::scheduler {
namespace {

constexpr const char* kListen = "tcp://127.0.0.1:0";
constexpr const char* kAddress = "tcp://127.0.0.1:7";

class FindRunTest : public ::testing::Test {
 protected:
  FindRunTest() {
    job_.fingerprint = 5;
    job_.cluster.lease = milliseconds(300);
  }

  // The last scheduler dies here, with these members.
  void LeaveRun(const RunIdentity& identity, const std::vector<uint64_t>& members = {77},
                JobPhase phase = JobPhase::kRunning) {
    ASSERT_TRUE(runs_->BeginRun(identity).ok());
    JobRecord record;
    record.phase = phase;
    for (uint32_t id = 1; const uint64_t incarnation : members) {
      record.members.push_back({.id = ProcessId(id++)});
      record.members.back().join.incarnation = Incarnation(incarnation);
    }
    ASSERT_TRUE(runs_->Keep(record).ok());
  }
  static RunIdentity Ours() { return {kAddress, 5, kWireVersion, 0}; }

  // What a scheduler finds while this process sends its packets there.
  Result<FoundRun> Find(uint64_t speaker, const std::string& listen = kListen) {
    std::jthread member([&](std::stop_token stop) {
      const auto socket = *network_->Connect(kAddress);
      while (!stop.stop_requested()) {
        socket->Send(EncodePacket({.session = speaker, .sequence = 9})).IgnoreError();
        Pause(milliseconds(5));
      }
    });
    return BindAndFindRun(job_, *network_, listen, false, *runs_);
  }

  const test::ScratchFolder folder_;
  JobConfig job_;
  const std::unique_ptr<Network> network_ = MakeMemoryNetwork();
  const std::unique_ptr<RunStore> runs_ = *RunStore::Open(*OpenRocksStateStore(folder_.path()));
};

TEST_F(FindRunTest, GoesOnWhenAMemberSpeaks) {
  LeaveRun(Ours());
  const Result<FoundRun> found = Find(77);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE(found->run.has_value());
  EXPECT_EQ(found->run->record.members.size(), 1u);
  EXPECT_EQ(found->socket->endpoint(), kAddress);
}

TEST_F(FindRunTest, AlsoAtAnAddressThatIsGiven) {
  LeaveRun(Ours());
  EXPECT_TRUE(Find(77, kAddress)->run.has_value());
}

TEST_F(FindRunTest, BeginsAnotherWhenThereIsNone) {
  const Result<FoundRun> found = Find(77);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->run.has_value());
}

// Strangers may be processes that have not joined yet; they find the other run where they look.
TEST_F(FindRunTest, BeginsAnotherAtTheAddressWhenOnlyStrangersSpeak) {
  LeaveRun(Ours());
  const TimePoint begin = SystemClock().Now();
  const Result<FoundRun> found = Find(78);
  EXPECT_FALSE(found->run.has_value());
  EXPECT_EQ(found->socket->endpoint(), kAddress);
  EXPECT_GE(SystemClock().Now() - begin, job_.cluster.lease);
}

TEST_F(FindRunTest, DoesNotWaitForARunThatNobodyHadJoined) {
  LeaveRun(Ours(), {});
  job_.cluster.lease = std::chrono::hours(1);
  const Result<FoundRun> found = Find(78);
  EXPECT_FALSE(found->run.has_value());
  EXPECT_EQ(found->socket->endpoint(), kAddress);
}

// Its processes may have been killed together with it, and it returns to its last checkpoint.
TEST_F(FindRunTest, GoesOnWithTheRunOfASchedulerThatWasKilledJustNow) {
  LeaveRun(Ours(), {77}, JobPhase::kEnded);
  job_.cluster.lease = milliseconds(100);
  EXPECT_TRUE(BindAndFindRun(job_, *network_, kListen, true, *runs_)->run.has_value());
  EXPECT_FALSE(BindAndFindRun(job_, *network_, kListen, false, *runs_)->run.has_value());
  LeaveRun(Ours());
  EXPECT_TRUE(BindAndFindRun(job_, *network_, kListen, true, *runs_)->run.has_value());
}

TEST_F(FindRunTest, BeginsAnotherWhenTheRunIsOfAnotherJobBuildOrAddress) {
  RunIdentity other_job = Ours(), other_build = Ours(), elsewhere = Ours();
  other_job.job_fingerprint = 6;
  other_build.wire_version = kWireVersion + 1;
  elsewhere.address = "inproc://scheduler";
  for (const RunIdentity& other : {other_job, other_build, elsewhere}) {
    LeaveRun(other);
    EXPECT_FALSE(Find(77)->run.has_value());
  }
  LeaveRun(Ours());
  EXPECT_FALSE(Find(77, "tcp://127.0.0.1:8")->run.has_value());
  EXPECT_FALSE(Find(77, "tcp://10.0.0.1:0")->run.has_value());
}

TEST_F(FindRunTest, BeginsAnotherWhenTheAddressIsTaken) {
  LeaveRun(Ours());
  const auto stranger = *network_->Bind(kAddress);
  const Result<FoundRun> found = Find(77);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->run.has_value());
  EXPECT_NE(found->socket->endpoint(), kAddress);
}

}  // namespace
}  // namespace dt::scheduler
