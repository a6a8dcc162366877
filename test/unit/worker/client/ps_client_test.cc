// Goal: the client keeps its side of the protocol, also with a server that is slow, loses messages,
// or is wrong. Method: a fake server, with a thread for each executor, over the in-memory network.
// Its rows are a function of (table, key, column); it records pushes, and can drop or refuse first
// requests.
#include "worker/client/ps_client.h"

#include <array>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "common/base/mutex.h"
#include "common/net/memory_network.h"

namespace dt::worker {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kClientShards = 8;
// Dimension of each table; the tables of graph and job have the same order.
const std::vector<uint32_t> kDims = {3, 5};
using Formats = std::array<FloatFormat, 2>;
constexpr Formats kFp32 = {FloatFormat::kFp32, FloatFormat::kFp32};
constexpr Formats kMixed = {FloatFormat::kInt8, FloatFormat::kBf16};

std::vector<WireTable> TablesOf(const Formats& formats) {
  return {{kDims[0], formats[0]}, {kDims[1], formats[1]}};
}

// The row as it is received, after encoding for the wire.
std::vector<float> Travelled(const WireTable& wire, const std::vector<float>& row) {
  std::vector<std::byte> bytes(RowsBytes(wire.format, wire.dim, 1));
  EncodeRows(wire.format, wire.dim, row, bytes.data());
  std::vector<float> values(wire.dim);
  DecodeRow(wire.format, bytes.data(), values);
  return values;
}

float RowValue(uint32_t table, Key key, size_t column) {
  return static_cast<float>(table * 1000 + key * 10 + column);
}

std::vector<float> RowOf(uint32_t table, Key key) {
  std::vector<float> row(kDims[table]);
  for (size_t c = 0; c < row.size(); ++c) row[c] = RowValue(table, key, c);
  return row;
}

struct Behaviour {
  std::atomic<uint32_t> drop = 0;    // This many requests get no answer.
  std::atomic<uint32_t> refuse = 0;  // This many requests are answered with Busy.
  std::atomic<bool> fail = false;
  std::atomic<bool> answer_twice = false;
};

class FakeServer {
 public:
  FakeServer(Network& network, const std::vector<std::string>& endpoints) {
    for (const std::string& endpoint : endpoints) {
      sockets_.push_back(*network.Bind(endpoint));
      threads_.emplace_back([this, socket = sockets_.back().get()](std::stop_token stop) {
        while (!stop.stop_requested()) Serve(*socket);
      });
    }
  }

  Behaviour behaviour;
  std::vector<WireTable> tables = TablesOf(kFp32);  // Set this before the first request.

  struct Seen {
    std::set<std::tuple<Step, SliceIndex, ShardId, uint32_t>> pieces;
    std::map<std::pair<uint32_t, Key>, std::vector<float>> gradients;
    std::map<ShardId, uint32_t> named;  // Number of accepted pieces of each shard.
    size_t again = 0;                   // Number of pieces that had been accepted before.
    std::vector<Step> completed;
    size_t pushes = 0, pulls = 0, largest_pull = 0;
  };
  Seen seen() {
    MutexLock lock(mutex_);
    return seen_;
  }

 private:
  void Serve(ServerSocket& socket) {
    auto message = socket.Receive(milliseconds(20));
    if (!message.ok()) return;
    auto request = DecodeDataRequest(std::move(message->frames), tables);
    ASSERT_TRUE(request.ok()) << ToText(request.status());
    if (request->kind == DataRequest::Kind::kComplete) {
      MutexLock lock(mutex_);
      seen_.completed.push_back(request->complete.step);
      return;
    }
    const bool pull = request->kind == DataRequest::Kind::kPull;
    DataReply reply;
    reply.request = pull ? request->pull.request : request->push.request;
    if (TakeOne(behaviour.drop)) return;
    if (TakeOne(behaviour.refuse)) {
      reply.status = Busy("not now");
    } else if (behaviour.fail) {
      reply.status = DataLoss("the shard is gone");
    } else if (pull) {
      reply.values = RowsOf(request->pull);
    } else {
      Note(request->push);
    }
    if (behaviour.answer_twice) {
      ASSERT_TRUE(socket.Send(message->peer, Encode(DataReply(reply))).ok());
    }
    ASSERT_TRUE(socket.Send(message->peer, Encode(reply)).ok());
  }

  static bool TakeOne(std::atomic<uint32_t>& count) {
    uint32_t left = count;
    while (left > 0 && !count.compare_exchange_weak(left, left - 1)) {
    }
    return left > 0;
  }

  Frame RowsOf(const PullRequest& pull) {
    MutexLock lock(mutex_);
    ++seen_.pulls;
    std::vector<std::byte> answer;
    const Key* key = pull.keys.as<Key>().data();
    for (const KeyGroup& group : pull.groups) {
      std::vector<float> values;
      for (uint32_t i = 0; i < group.rows; ++i) {
        const std::vector<float> row = RowOf(group.table, *key++);
        values.insert(values.end(), row.begin(), row.end());
      }
      const WireTable& wire = tables[group.table];
      answer.resize(answer.size() + wire.BytesOf(group.rows));
      std::byte* const out = answer.data() + answer.size() - wire.BytesOf(group.rows);
      EncodeRows(wire.format, wire.dim, values, out);
    }
    seen_.largest_pull = std::max(seen_.largest_pull, answer.size() + pull.keys.size());
    return Frame::CopyOf(answer);
  }

  void Note(const PushRequest& push) {
    MutexLock lock(mutex_);
    ++seen_.pushes;
    for (const ShardPiece& piece : push.pieces) {
      const auto id = std::tuple(push.step, push.slice, piece.shard, piece.piece);
      seen_.again += seen_.pieces.insert(id).second ? 0 : 1;
      seen_.named[piece.shard] = piece.pieces;
    }
    const Key* key = push.keys.as<Key>().data();
    const std::byte* from = push.gradients.bytes().data();
    for (const KeyGroup& group : push.groups) {
      const WireTable& wire = tables[group.table];
      std::vector<float> values(size_t{group.rows} * wire.dim);
      DecodeRows(wire.format, wire.dim, from, values);
      from += wire.BytesOf(group.rows);
      for (uint32_t i = 0; i < group.rows; ++i) {
        const auto row = values.begin() + i * wire.dim;
        seen_.gradients[{group.table, *key++}] = {row, row + wire.dim};
      }
    }
  }

  Mutex mutex_;
  Seen seen_ DT_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<ServerSocket>> sockets_;
  std::vector<std::jthread> threads_;
};

std::vector<Key> KeysIn(ShardId shard, uint32_t table, uint32_t rows) {
  std::vector<Key> keys;
  for (Key key = 0; key < rows; ++key) {
    if (ShardOf(TableId(table), key, kClientShards) == shard) keys.push_back(key);
  }
  return keys;
}

// Keys 0..rows-1 of both tables, grouped as by a planner.
LookupPlan MakePlan(uint32_t rows) {
  LookupPlan plan;
  plan.tables.resize(kDims.size());
  for (uint32_t s = 0; s < kClientShards; ++s) {
    for (uint32_t table = 0; table < kDims.size(); ++table) {
      const std::vector<Key> keys = KeysIn(ShardId(s), table, rows);
      if (keys.empty()) continue;
      std::vector<Key>& all = plan.tables[table];
      plan.groups.push_back({ShardId(s), table, static_cast<uint32_t>(all.size()),
                             static_cast<uint32_t>(keys.size())});
      all.insert(all.end(), keys.begin(), keys.end());
    }
  }
  return plan;
}

class PsClientTest : public ::testing::Test {
 protected:
  PsClientTest()
      : network_(MakeMemoryNetwork()),
        server_(*network_, {"inproc://a", "inproc://b", "inproc://c"}),
        view_{Generation(1),
              ViewNumber(1),
              MakeShardMap(
                  MapVersion(1), kClientShards,
                  {{ProcessId(1), {"inproc://a", "inproc://b"}}, {ProcessId(2), {"inproc://c"}}}),
              {}} {
    options_.network = network_.get();
    options_.requests.wire_tables = {0, 1};
    options_.requests.tables = server_.tables;
    options_.requests.timeout = seconds(20);
    options_.requests.resend_after = milliseconds(100);
  }

  std::unique_ptr<PsClient> Client() { return *PsClient::Open(view_, options_); }

  void ExpectRows(const LookupPlan& plan, const PulledRows& rows) {
    for (uint32_t t = 0; t < kDims.size(); ++t) {
      ASSERT_EQ(rows.table(t).size(), plan.tables[t].size() * kDims[t]);
      for (size_t i = 0; i < plan.tables[t].size(); ++i) {
        const auto row = rows.table(t).subspan(i * kDims[t], kDims[t]);
        ASSERT_EQ(std::vector<float>(row.begin(), row.end()),
                  Travelled(options_.requests.tables[t], RowOf(t, plan.tables[t][i])));
      }
    }
  }

  void UseFormats(const Formats& formats) {
    options_.requests.tables = server_.tables = TablesOf(formats);
  }

  // Uses the rows themselves as gradients.
  std::vector<std::vector<float>> GradientsOf(const LookupPlan& plan) {
    std::vector<std::vector<float>> gradients(kDims.size());
    for (uint32_t t = 0; t < kDims.size(); ++t) {
      for (const Key key : plan.tables[t]) {
        for (size_t c = 0; c < kDims[t]; ++c) gradients[t].push_back(RowValue(t, key, c));
      }
    }
    return gradients;
  }

  Status Push(PsClient& client, const PushInfo& info, const LookupPlan& plan) {
    const std::vector<std::vector<float>> gradients = GradientsOf(plan);
    const std::vector<std::span<const float>> spans(gradients.begin(), gradients.end());
    client.BeginPush(info, plan, spans);
    return client.WaitForPushes();
  }

  void ExpectPushed(const LookupPlan& plan) {
    const FakeServer::Seen seen = server_.seen();
    size_t rows = 0;
    for (uint32_t t = 0; t < kDims.size(); ++t) {
      rows += plan.tables[t].size();
      for (const Key key : plan.tables[t]) {
        ASSERT_TRUE(seen.gradients.contains({t, key}));
        ASSERT_EQ(seen.gradients.at({t, key}),
                  Travelled(options_.requests.tables[t], RowOf(t, key)));
      }
    }
    EXPECT_EQ(seen.gradients.size(), rows);
    EXPECT_EQ(seen.named.size(), kClientShards) << "every shard is named, also those without rows";
  }

  const std::unique_ptr<Network> network_;
  FakeServer server_;
  const View view_;
  PsClient::Options options_;
};

TEST_F(PsClientTest, RowsOfSeveralExecutorsAndTablesLandInRowOrder) {
  const auto client = Client();
  PulledRows rows;
  for (const uint32_t count : {100, 1, 0, 37}) {
    const LookupPlan plan = MakePlan(count);
    client->BeginPull(plan, 0, PullMode::kTrain);
    ASSERT_TRUE(client->FinishPull(plan, rows).ok());
    ExpectRows(plan, rows);
  }
}

TEST_F(PsClientTest, APushNamesEveryShardAndCarriesEveryRow) {
  const auto client = Client();
  const LookupPlan plan = MakePlan(3);
  ASSERT_TRUE(Push(*client, {.step = 4, .slice = 1, .slices = 2}, plan).ok());
  ExpectPushed(plan);
  EXPECT_EQ(server_.seen().pushes, 3);
}

TEST_F(PsClientTest, APushWithoutRowsStillMovesEveryClock) {
  const auto client = Client();
  const LookupPlan plan = MakePlan(0);
  ASSERT_TRUE(Push(*client, {}, plan).ok());
  ExpectPushed(plan);
}

TEST_F(PsClientTest, ALargePushIsCutInPiecesThatAddUp) {
  options_.requests.message_bytes_max = 200;
  const auto client = Client();
  const LookupPlan plan = MakePlan(500);
  ASSERT_TRUE(Push(*client, {}, plan).ok());
  ExpectPushed(plan);
  EXPECT_GT(server_.seen().pushes, 30);
}

TEST_F(PsClientTest, ALargePullIsCutInMessagesThatAddUp) {
  options_.requests.message_bytes_max = 200;
  for (const Formats& formats : {kFp32, kMixed}) {
    UseFormats(formats);
    const auto client = Client();
    const LookupPlan plan = MakePlan(500);
    PulledRows rows;
    client->BeginPull(plan, 0, PullMode::kTrain);
    ASSERT_TRUE(client->FinishPull(plan, rows).ok());
    ExpectRows(plan, rows);
  }
  EXPECT_GT(server_.seen().pulls, 60);
  // Messages are filled up to whole groups.
  EXPECT_LE(server_.seen().largest_pull, 200 + kClientShards * 2 * 3);
}

TEST_F(PsClientTest, PartsOfAPullThatAreLostOrRefusedComeAgain) {
  options_.requests.message_bytes_max = 500;
  const auto client = Client();
  const LookupPlan plan = MakePlan(300);
  server_.behaviour.drop = 7;
  server_.behaviour.refuse = 5;
  PulledRows rows;
  client->BeginPull(plan, 0, PullMode::kTrain);
  ASSERT_TRUE(client->FinishPull(plan, rows).ok());
  ExpectRows(plan, rows);
}

TEST_F(PsClientTest, RowsTravelInTheFormatOfTheirTable) {
  for (const Formats& formats : {kMixed, Formats{FloatFormat::kFp16, FloatFormat::kInt8}}) {
    UseFormats(formats);
    const auto client = Client();
    const LookupPlan plan = MakePlan(100);
    PulledRows rows;
    client->BeginPull(plan, 0, PullMode::kTrain);
    ASSERT_TRUE(client->FinishPull(plan, rows).ok());
    ExpectRows(plan, rows);
    const PushInfo info{.step = formats == kMixed ? Step{0} : Step{1}};
    ASSERT_TRUE(Push(*client, info, plan).ok());
    ExpectPushed(plan);
  }
}

TEST_F(PsClientTest, WhatIsLostIsSentAgainUnderTheSameNumber) {
  const auto client = Client();
  const LookupPlan plan = MakePlan(50);
  server_.behaviour.drop = 4;
  PulledRows rows;
  client->BeginPull(plan, 0, PullMode::kTrain);
  ASSERT_TRUE(client->FinishPull(plan, rows).ok());
  ExpectRows(plan, rows);
  server_.behaviour.drop = 2;
  ASSERT_TRUE(Push(*client, {}, plan).ok());
  ExpectPushed(plan);
}

TEST_F(PsClientTest, ABusyServerIsAskedAgain) {
  options_.requests.resend_after = seconds(100);
  server_.behaviour.refuse = 3;
  const auto client = Client();
  const LookupPlan plan = MakePlan(50);
  PulledRows rows;
  client->BeginPull(plan, 0, PullMode::kTrain);
  ASSERT_TRUE(client->FinishPull(plan, rows).ok());
  ExpectRows(plan, rows);
}

TEST_F(PsClientTest, SecondAnswersAreIgnored) {
  server_.behaviour.answer_twice = true;
  const auto client = Client();
  const LookupPlan plan = MakePlan(50);
  PulledRows rows;
  for (int i = 0; i < 5; ++i) {
    client->BeginPull(plan, 0, PullMode::kTrain);
    ASSERT_TRUE(client->FinishPull(plan, rows).ok());
    ExpectRows(plan, rows);
    ASSERT_TRUE(Push(*client, {.step = static_cast<Step>(i)}, plan).ok());
  }
}

TEST_F(PsClientTest, AServersErrorNamesItsEndpoint) {
  server_.behaviour.fail = true;
  const auto client = Client();
  const Status status = Push(*client, {}, MakePlan(5));
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(ToText(status), HasSubstr("the shard is gone (inproc://"));
}

TEST_F(PsClientTest, SilenceEndsAtTheDeadline) {
  server_.behaviour.drop = 1000;
  options_.requests.timeout = milliseconds(300);
  const auto client = Client();
  const LookupPlan plan = MakePlan(5);
  PulledRows rows;
  client->BeginPull(plan, 7, PullMode::kTrain);
  const Status status = client->FinishPull(plan, rows);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(ToText(status), HasSubstr("did not answer a pull of step 7"));
  EXPECT_THAT(ToText(status), HasSubstr("inproc://"));
}

TEST_F(PsClientTest, WhatAServerRefusedWithIsSaidAtTheDeadline) {
  server_.behaviour.refuse = 1000;
  options_.requests.timeout = milliseconds(300);
  const auto client = Client();
  const Status status = Push(*client, {.step = 7}, MakePlan(5));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(ToText(status), HasSubstr("refused a push of step 7"));
  EXPECT_THAT(ToText(status), HasSubstr("not now"));
}

TEST_F(PsClientTest, TheEndOfTheJobEndsAWaitAtOnce) {
  server_.behaviour.drop = 1000;
  options_.requests.timeout = seconds(60);
  options_.interrupted = [] { return Cancelled("the job was stopped"); };
  const auto client = Client();
  const TimePoint begun = SystemClock().Now();
  EXPECT_EQ(ToText(Push(*client, {}, MakePlan(5))), "the job was stopped");
  EXPECT_LT(SecondsBetween(begun, SystemClock().Now()), 10);
}

TEST_F(PsClientTest, RequestsOfTrainingAreInTheTimeline) {
  Timeline timeline({.first = 7, .last = 7});
  options_.requests.timeline = &timeline;
  server_.behaviour.refuse = 1;  // The request is resent but recorded once.
  const auto client = Client();
  const LookupPlan plan = MakePlan(50);
  PulledRows rows;
  for (const PullMode mode : {PullMode::kTrain, PullMode::kEvaluate}) {
    client->BeginPull(plan, 7, mode);
    ASSERT_TRUE(client->FinishPull(plan, rows).ok());
  }
  ASSERT_TRUE(Push(*client, {.step = 7, .slice = 2, .slices = 3}, plan).ok());
  ASSERT_TRUE(Push(*client, {.step = 8, .slice = 2, .slices = 3}, plan).ok());
  uint64_t pulled = 0, pushed = 0;
  for (const RecordedSpan& span : timeline.Spans()) {
    EXPECT_LT(span.begin, span.end);
    (span.label.track == Track::kPull ? pulled : pushed) += span.bytes;
    EXPECT_EQ(span.slice, span.label.track == Track::kPush ? 2 : 0);
  }
  EXPECT_EQ(timeline.Spans().size(), 3 + 3);  // One pull and one push for each executor.
  const uint64_t both_ways = 50 * (2 * sizeof(Key) + (kDims[0] + kDims[1]) * sizeof(float));
  EXPECT_EQ(pulled, both_ways);
  EXPECT_EQ(pushed, both_ways);
}

TEST_F(PsClientTest, CompleteReachesEveryExecutor) {
  const auto client = Client();
  ASSERT_TRUE(client->Complete(9).ok());
  // When this later request is answered, the earlier messages have arrived.
  ASSERT_TRUE(Push(*client, {}, MakePlan(50)).ok());
  EXPECT_EQ(server_.seen().completed, std::vector<Step>({9, 9, 9}));
}

}  // namespace
}  // namespace dt::worker
