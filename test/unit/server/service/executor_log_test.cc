// Goal: an executor acknowledges only what its log contains, recovers from its log, keeps rows and
// acknowledgements consistent when the disk is full, and ends with a sentence if it stays full.
// Method: real threads over the in-memory network and real files; a file size limit imitates a full
// disk.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/net/memory_network.h"
#include "server/service/executor.h"
#include "test/support/full_disk.h"
#include "test/support/push_maker.h"
#include "test/support/scratch_folder.h"
#include "test/support/shard_sets.h"

namespace dt::server {
namespace {

using test::Grouping;
using test::RowMap;
using ::testing::HasSubstr;

constexpr Duration kTimeout = seconds(20);
constexpr uint32_t kShards = 4;
const Stamp& kStamp = test::kFirstStamp;
const RowMap kRows = {{{0, 3}, {1, 1}}, {{0, 4}, {1, 1}}};

std::vector<TableSpec> Tables() {
  TableSpec spec = test::SimpleTable("t", 2);
  spec.init = {InitKind::kZeros, 0};
  return {spec};
}
const std::vector<TableSpec> kTables = Tables();

class ExecutorLog : public ::testing::Test {
 protected:
  void Start(Duration log_timeout = kTimeout) {
    executor_.reset();
    ExecutorOptions options;
    options.tables = {{2}};
    options.memory_bytes_max = 1 << 30;
    options.memory_bytes = &memory_bytes_;
    options.log_timeout = log_timeout;
    executor_ =
        std::make_unique<Executor>(options, *network_->Bind("tcp://127.0.0.1:0"), *network_);
    socket_ = *network_->Connect(executor_->endpoint());
  }
  ExecutorAnswer Begin(std::optional<LogLocation::Base> base) {
    executor_->Post(BeginCommand(test::SetOf(kTables, 1, kShards, test::AllShards(kShards)), {},
                                 LogLocation{folder_.path(), 0, false, std::move(base)}));
    auto answer = executor_->Await(kTimeout);
    EXPECT_TRUE(answer.has_value());
    return answer.has_value() ? *std::move(answer) : ExecutorAnswer{Internal("silent")};
  }
  DataReply Ask(Frames frames) {
    EXPECT_TRUE(socket_->Send(std::move(frames)).ok());
    const TimePoint deadline = SystemClock().Now() + kTimeout;
    while (SystemClock().Now() < deadline) {
      auto got = socket_->Receive(milliseconds(50));
      if (!got.ok()) continue;
      auto reply = DecodeDataReply(*std::move(got));
      if (reply.ok() && reply->request == number_) return *std::move(reply);
    }
    return {0, Internal("no answer"), {}};
  }
  Status Push(Step step) {
    const Grouping grouping(kTables, kShards, test::AllShards(kShards), kRows);
    return Ask(Encode(grouping.Push(++number_, kStamp, step))).status;
  }
  // The value of every row, if all are equal.
  float Value(Step step) {
    const Grouping grouping(kTables, kShards, test::AllShards(kShards), kRows);
    const DataReply reply = Ask(Encode(grouping.Pull(++number_, kStamp, step)));
    EXPECT_TRUE(reply.status.ok()) << reply.status;
    const auto values = reply.values.as<float>();
    for (const float v : values) EXPECT_EQ(v, values[0]);
    return values.empty() ? 1.0f : values[0];
  }
  std::string Segment(int n) const { return folder_ / fmt::format("log-0-{}", n); }

  const test::ScratchFolder folder_;
  const std::unique_ptr<Network> network_ = MakeMemoryNetwork();
  std::atomic<uint64_t> memory_bytes_ = 0;
  std::unique_ptr<ClientSocket> socket_;
  std::unique_ptr<Executor> executor_;
  uint64_t number_ = 0;
};

TEST_F(ExecutorLog, GoesOnWhereItsLogEnds) {
  Start();
  EXPECT_EQ(Begin({}).first_segment, 1u);
  for (Step step = 0; step < 5; ++step) ASSERT_TRUE(Push(step).ok());
  for (int life = 0; life < 3; ++life) {
    Start();
    const ExecutorAnswer begun = Begin(LogLocation::Base{});
    ASSERT_TRUE(begun.status.ok()) << begun.status;
    EXPECT_EQ(begun.first_segment, 1u);
    const Step step = 5 + static_cast<Step>(life);
    EXPECT_EQ(Value(step), -static_cast<float>(step));
    ASSERT_TRUE(Push(step - 1).ok()) << "again: it is dropped";
    ASSERT_TRUE(Push(step).ok());
  }
}

TEST_F(ExecutorLog, WhatADamagedLogHeldIsNotServed) {
  Start();
  Begin({});
  for (Step step = 0; step < 3; ++step) ASSERT_TRUE(Push(step).ok());
  executor_.reset();
  std::filesystem::resize_file(Segment(1), std::filesystem::file_size(Segment(1)) - 10);
  std::filesystem::copy_file(Segment(1), Segment(2));
  Start();
  const Status begun = Begin(LogLocation::Base{}).status;
  EXPECT_EQ(begun.code(), StatusCode::kDataLoss);
  EXPECT_THAT(ToText(begun), HasSubstr(Segment(1)));
  EXPECT_EQ(Push(3).code(), StatusCode::kResourceExhausted) << "it serves nobody";
}

TEST_F(ExecutorLog, AFullDiskRefusesPushesKeepsTheRowsAndGoesOnWhenThereIsRoom) {
  Start();
  Begin({});
  for (Step step = 0; step < 3; ++step) ASSERT_TRUE(Push(step).ok());
  {
    const test::FileSizeLimit full(std::filesystem::file_size(Segment(1)) + 20);
    for (int attempt = 0; attempt < 3; ++attempt) {
      const Status refused = Push(3);
      EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
      EXPECT_THAT(ToText(refused), HasSubstr(Segment(1) + " cannot take"));
    }
    EXPECT_EQ(Value(3), -3.0f) << "pulls go on";
    EXPECT_FALSE(executor_->TakeFailure().has_value());
  }
  Status taken;  // The next attempts may still fail as before.
  for (int attempt = 0; attempt < 20 && !(taken = Push(3)).ok(); ++attempt) {
  }
  ASSERT_TRUE(taken.ok()) << taken;
  ASSERT_TRUE(Push(4).ok());
  EXPECT_EQ(Value(5), -5.0f);
  Start();
  ASSERT_TRUE(Begin(LogLocation::Base{}).status.ok());
  EXPECT_EQ(Value(5), -5.0f);
}

TEST_F(ExecutorLog, ADiskThatStaysFullEndsTheServerWithTheSentence) {
  Start(milliseconds(50));
  Begin({});
  ASSERT_TRUE(Push(0).ok());
  const test::FileSizeLimit limit(std::filesystem::file_size(Segment(1)) + 20);
  std::optional<Status> failure;
  const TimePoint deadline = SystemClock().Now() + kTimeout;
  while (!failure.has_value() && SystemClock().Now() < deadline) {
    EXPECT_FALSE(Push(1).ok());
    failure = executor_->TakeFailure();
  }
  ASSERT_TRUE(failure.has_value());
  EXPECT_THAT(ToText(*failure), HasSubstr(Segment(1) + " cannot take"));
  EXPECT_THAT(ToText(*failure), HasSubstr("raise the limit on the size of files"));
}

}  // namespace
}  // namespace dt::server
