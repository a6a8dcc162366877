// Goal: an executor serves many peers and its server's commands at once, and counts every push
// once. Method: real threads over the in-memory network, also under ThreadSanitizer. Every gradient
// is 1, the rate is 1 and rows start at 0: at the end a row is minus the number of its pushes,
// exact in float.
#include "server/service/executor.h"

#include <thread>

#include <gtest/gtest.h>

#include "common/base/pause.h"
#include "common/net/memory_network.h"
#include "test/support/push_maker.h"
#include "test/support/scratch_folder.h"
#include "test/support/shard_sets.h"

namespace dt::server {
namespace {

using test::Grouping;
using test::RowMap;

constexpr Duration kTimeout = seconds(20);
constexpr uint32_t kShards = 8;
const Stamp& kStamp = test::kFirstStamp;

std::vector<TableSpec> CountingTables() {
  TableSpec spec = test::SimpleTable("t", 2);
  spec.init = {InitKind::kZeros, 0};
  return {spec};
}
const std::vector<TableSpec> kTables = CountingTables();

// One worker's connection to one executor. It sends everything twice, as an unreliable network
// might.
class Client {
 public:
  Client(Network& network, const std::string& endpoint) : socket_(*network.Connect(endpoint)) {}

  DataReply Ask(Frames frames, uint64_t request) {
    EXPECT_TRUE(socket_->Send(frames).ok());
    EXPECT_TRUE(socket_->Send(std::move(frames)).ok());
    const TimePoint deadline = SystemClock().Now() + kTimeout;
    while (SystemClock().Now() < deadline) {
      auto got = socket_->Receive(milliseconds(50));
      if (!got.ok()) continue;
      auto reply = DecodeDataReply(*std::move(got));
      EXPECT_TRUE(reply.ok()) << reply.status();
      if (reply.ok() && reply->request == request) return *std::move(reply);
    }
    ADD_FAILURE() << "no answer to request " << request;
    return {};
  }
  DataReply Push(Step step, SliceIndex slice, uint32_t slices, const RowMap& rows) {
    const Grouping grouping(kTables, kShards, test::AllShards(kShards), rows);
    PushRequest push = grouping.Push(++number_, kStamp, step);
    push.slice = slice;
    push.slices = slices;
    return Ask(Encode(push), number_);
  }
  DataReply Pull(Step step, const RowMap& rows) {
    const Grouping grouping(kTables, kShards, test::AllShards(kShards), rows);
    ++number_;
    return Ask(Encode(grouping.Pull(number_, kStamp, step)), number_);
  }
  void Garbage() {
    Frames frames;
    frames.push_back(Frame::Of(8));
    frames[0].as<uint64_t>()[0] = 42;
    EXPECT_TRUE(socket_->Send(std::move(frames)).ok());
  }

 private:
  const std::unique_ptr<ClientSocket> socket_;
  uint64_t number_ = 0;
};

class ExecutorTest : public ::testing::Test {
 protected:
  std::unique_ptr<Executor> Make(uint64_t memory_bytes_max = 1 << 30) {
    ExecutorOptions options;
    options.tables = {{.dim = 2}};
    options.memory_bytes_max = memory_bytes_max;
    options.memory_slack = 0;
    options.memory_bytes = &memory_bytes_;
    return std::make_unique<Executor>(options, *network_->Bind("tcp://127.0.0.1:0"), *network_);
  }
  static ExecutorAnswer Do(Executor& executor, std::unique_ptr<ExecutorCommand> command) {
    executor.Post(std::move(command));
    auto answer = executor.Await(kTimeout);
    EXPECT_TRUE(answer.has_value());
    return answer.has_value() ? *std::move(answer) : ExecutorAnswer{Internal("silent")};
  }
  std::unique_ptr<ExecutorCommand> Begin(uint32_t slices, uint64_t row_memory = 1 << 30) const {
    return BeginCommand(test::SetOf(kTables, slices, kShards, test::AllShards(kShards)),
                        {temp_ / "rows", row_memory});
  }

  const std::unique_ptr<Network> network_ = MakeMemoryNetwork();
  std::atomic<uint64_t> memory_bytes_ = 0;
  const test::ScratchFolder temp_;
};

TEST_F(ExecutorTest, IsBusyUntilItHasShards) {
  auto executor = Make();
  Client client(*network_, executor->endpoint());
  EXPECT_EQ(client.Pull(0, {}).status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Do(*executor, ReportCommand()).status.code(), StatusCode::kInternal);
  EXPECT_TRUE(Do(*executor, Begin(1)).status.ok());
  EXPECT_TRUE(client.Pull(0, {}).status.ok());
}

TEST_F(ExecutorTest, ManyWorkersInStepCountEveryPushOnce) {
  constexpr uint32_t kWorkers = 4;
  constexpr Step kSteps = 25;
  auto executor = Make();
  ASSERT_TRUE(Do(*executor, Begin(kWorkers)).status.ok());
  {
    std::vector<std::jthread> workers;
    for (uint32_t w = 0; w < kWorkers; ++w) {
      workers.emplace_back([&, w] {
        Client client(*network_, executor->endpoint());
        // All workers push key 0; each of the keys 1 to 4 is pushed by one worker.
        const RowMap rows = {{{0, 0}, {1, 1}}, {{0, w + 1}, {1, 1}}};
        for (Step step = 0; step < kSteps; ++step) {
          // Waits for the other workers, as at a barrier.
          const DataReply pulled = client.Pull(step, rows);
          ASSERT_TRUE(pulled.status.ok()) << pulled.status;
          for (const float v : pulled.values.as<float>()) {
            const auto own = static_cast<float>(step);
            ASSERT_TRUE(v == -own || v == -own * kWorkers) << v << " at step " << step;
          }
          ASSERT_TRUE(client.Push(step, w, kWorkers, rows).status.ok());
          if (step % 5 == w) client.Garbage();
        }
      });
    }
  }
  const ExecutorAnswer report = Do(*executor, ReportCommand());
  ASSERT_TRUE(report.status.ok()) << report.status;
  EXPECT_EQ(report.tables[0].rows, 1u + kWorkers);
  Client client(*network_, executor->endpoint());
  const DataReply last = client.Pull(kSteps, {{{0, 0}, {0, 0}}});
  ASSERT_EQ(last.values.as<float>().size(), 2u);
  EXPECT_EQ(last.values.as<float>()[0], -static_cast<float>(kSteps * kWorkers));
}

TEST_F(ExecutorTest, SaveThatWaitsForAStepInVainSaysWhatIsMissing) {
  auto executor = Make();
  ASSERT_TRUE(Do(*executor, Begin(1)).status.ok());
  const ExecutorAnswer answer =
      Do(*executor, SaveCommand(3, {"/nowhere", ProcessId(1), 0}, milliseconds(30)));
  EXPECT_EQ(answer.status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(dt::ToText(answer.status).find("waits for every slice of step 0"), std::string::npos)
      << answer.status;
}

// If it went on waiting for messages before it passes on a result, each would take a tenth of a
// second.
TEST_F(ExecutorTest, PassesOnResultsAtOnce) {
  constexpr int kTimes = 50;
  constexpr Key kKeys = 20'000;
  auto executor = Make();
  ASSERT_TRUE(Do(*executor, Begin(1, 64 << 10)).status.ok());
  TimePoint begin = SystemClock().Now();
  for (int i = 0; i < kTimes; ++i) ASSERT_TRUE(Do(*executor, ReportCommand()).status.ok());
  EXPECT_LT(SystemClock().Now() - begin, seconds(1)) << "answers to orders";

  Client client(*network_, executor->endpoint());
  RowMap rows;
  for (Key key = 0; key < kKeys; ++key) rows[{0, key}] = {1, 1};
  ASSERT_TRUE(client.Push(0, 0, 1, rows).status.ok());
  ASSERT_TRUE(client.Pull(1, {}).status.ok());
  ASSERT_TRUE(PollUntil(SystemClock().Now() + kTimeout, milliseconds(1), [&] {
    return Do(*executor, ReportCommand()).tables[0].rows_on_disk > kKeys / 2;
  }));
  begin = SystemClock().Now();
  for (Key first = 0; first < Key{kTimes}; ++first) {
    RowMap some;
    for (Key key = first; key < kKeys; key += kKeys / 100) some[{0, key}] = {0, 0};
    const DataReply pulled = client.Pull(1, some);
    ASSERT_TRUE(pulled.status.ok()) << pulled.status;
    for (const float v : pulled.values.as<float>()) ASSERT_EQ(v, -1);
  }
  EXPECT_LT(SystemClock().Now() - begin, seconds(1)) << "rows from the disk";
}

TEST_F(ExecutorTest, TooLargeTablesEndItWithAdvice) {
  auto executor = Make(/*memory_bytes_max=*/10'000);
  ASSERT_TRUE(Do(*executor, Begin(1)).status.ok());
  Client client(*network_, executor->endpoint());
  RowMap rows;
  for (Key key = 0; key < 2000; ++key) rows[{0, key}] = {1, 1};
  ASSERT_TRUE(client.Push(0, 0, 1, rows).status.ok());
  EXPECT_FALSE(executor->TakeFailure().has_value());
  ASSERT_TRUE(client.Pull(1, {}).status.ok());
  std::optional<Status> failure;
  const TimePoint deadline = SystemClock().Now() + kTimeout;
  while (!failure.has_value() && SystemClock().Now() < deadline) {
    client.Pull(1, {});
    failure = executor->TakeFailure();
  }
  ASSERT_TRUE(failure.has_value());
  EXPECT_NE(dt::ToText(*failure).find("cluster.server.memory"), std::string::npos) << *failure;
}

TEST_F(ExecutorTest, EndsWhileRequestsWait) {
  auto executor = Make();
  ASSERT_TRUE(Do(*executor, Begin(1)).status.ok());
  auto socket = network_->Connect(executor->endpoint());
  PullRequest pull;
  pull.step = 9;
  pull.stamp = kStamp;
  ASSERT_TRUE((*socket)->Send(Encode(pull)).ok());
  executor.reset();
}

}  // namespace
}  // namespace dt::server
