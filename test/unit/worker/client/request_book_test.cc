// Goal: each request is completed once, by the server that holds its shards when it is answered,
// whatever moves meanwhile. Method: the test answers letters, or executors with maps of their own
// do.
#include "worker/client/request_book.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"

namespace dt::worker {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kBookShards = 8, kDim = 2;
const WireTable kTable{kDim};

ShardMap TwoServers() {
  return MakeShardMap(MapVersion(1), kBookShards,
                      {{ProcessId(1), {"a0", "a1"}}, {ProcessId(2), {"b0"}}});
}
ShardMap Move(ShardMap map, uint32_t shard, ProcessId to) {
  map.version = MapVersion(map.version.value() + 1);
  map.chains[shard] = {map.version, {to}};
  return map;
}
float ValueOf(Key key, size_t column) { return static_cast<float>(10 * key + column); }

// Keys 0..rows-1 of one table.
LookupPlan PlanOf(uint32_t rows) {
  LookupPlan plan;
  plan.tables.resize(1);
  for (uint32_t s = 0; s < kBookShards; ++s) {
    const auto first = static_cast<uint32_t>(plan.tables[0].size());
    for (Key key = 0; key < rows; ++key) {
      if (ShardOf(TableId(0), key, kBookShards) == ShardId(s)) plan.tables[0].push_back(key);
    }
    const auto count = static_cast<uint32_t>(plan.tables[0].size()) - first;
    if (count > 0) plan.groups.push_back({ShardId(s), 0, first, count});
  }
  return plan;
}

// All servers; each decides by its own map.
class Servers {
 public:
  explicit Servers(const ShardMap& map) : map_{{ProcessId(1), map}, {ProcessId(2), map}} {}

  void Learn(ProcessId server, const ShardMap& map) { map_[server] = map; }

  Frames Answer(Frames frames) {
    auto request = DecodeDataRequest(std::move(frames), {&kTable, 1});
    EXPECT_TRUE(request.ok()) << ToText(request.status());
    const bool pull = request->kind == DataRequest::Kind::kPull;
    const Stamp& stamp = pull ? request->pull.stamp : request->push.stamp;
    const ShardMap& map = map_.at(stamp.server);
    DataReply reply{.request = pull ? request->pull.request : request->push.request};
    const auto refused = [&](ShardId shard) {
      if (map.chains[shard.value()].since <= stamp.map) {
        EXPECT_TRUE(map.chains[shard.value()].Has(stamp.server));
        return false;
      }
      if (reply.refused.empty() || reply.refused.back() != shard) reply.refused.push_back(shard);
      return true;
    };
    if (pull) {
      reply.values = Pull(request->pull, refused);
    } else {
      for (const ShardPiece& piece : request->push.pieces) {
        if (refused(piece.shard)) continue;
        ++taken[{request->push.step, piece.shard, piece.piece}];
        by[piece.shard] = stamp.server;
      }
    }
    if (!reply.refused.empty()) reply.change = ChangeSince(map, stamp.map);
    return Encode(reply);
  }

  // How often each piece was accepted.
  std::map<std::tuple<Step, ShardId, uint32_t>, uint32_t> taken;
  std::map<ShardId, ProcessId> by;  // The server that accepted it last.

 private:
  static Frame Pull(const PullRequest& pull, const std::function<bool(ShardId)>& refused) {
    std::vector<float> values;
    std::span<const Key> keys = pull.keys.as<Key>();
    for (const KeyGroup& group : pull.groups) {
      const bool skip = refused(group.shard);
      for (const Key key : keys.first(group.rows)) {
        for (size_t c = 0; c < kDim && !skip; ++c) values.push_back(ValueOf(key, c));
      }
      keys = keys.subspan(group.rows);
    }
    return Frame::CopyOf(std::as_bytes(std::span(values)));
  }

  std::map<ProcessId, ShardMap> map_;
};

class RequestBookTest : public ::testing::Test {
 protected:
  RequestBookTest() : book_({Generation(1), ViewNumber(1), TwoServers(), {}}, OptionsOf()) {}

  static RequestBook::Options OptionsOf() {
    return {.wire_tables = {0},
            .tables = {kTable},
            .timeout = seconds(10),
            .resend_after = seconds(1),
            .message_bytes_max = 300};
  }
  // Sends the letters that are due; the answers arrive at once.
  void Exchange() {
    for (RequestBook::Outgoing& letter : book_.TakeOutgoing(now_)) {
      ASSERT_TRUE(
          book_.OnAnswer(now_, letter.executor, servers_.Answer(std::move(letter.frames))).ok());
    }
  }
  void ExpectRows(const LookupPlan& plan) {
    PulledRows rows;
    book_.BeginRows(plan, rows);
    book_.TakeRows(plan, rows);
    ASSERT_EQ(rows.table(0).size(), plan.tables[0].size() * kDim);
    for (size_t i = 0; i < plan.tables[0].size(); ++i) {
      for (size_t c = 0; c < kDim; ++c) {
        ASSERT_EQ(rows.table(0)[i * kDim + c], ValueOf(plan.tables[0][i], c)) << i;
      }
    }
  }
  void BeginPush(const LookupPlan& plan, Step step = 0) {
    const std::vector<float> gradients(plan.tables[0].size() * kDim, 1.0f);
    const std::span<const float> spans[] = {gradients};
    book_.BeginPush(now_, {.step = step}, plan, spans);
  }
  void ExpectTakenOnce() const {
    std::set<ShardId> shards;
    for (const auto& [piece, times] : servers_.taken) {
      EXPECT_EQ(times, 1u);
      shards.insert(std::get<1>(piece));
    }
    EXPECT_EQ(shards.size(), kBookShards);
  }

  TimePoint now_{};
  RequestBook book_;
  Servers servers_{TwoServers()};
};

TEST_F(RequestBookTest, NothingIsDueTwice) {
  const LookupPlan plan = PlanOf(20);
  book_.BeginPull(now_, plan, 0, PullMode::kTrain);
  EXPECT_FALSE(book_.TakeOutgoing(now_).empty());
  EXPECT_TRUE(book_.TakeOutgoing(now_).empty());
  now_ += seconds(1);
  // The letter was not answered, so it is sent again.
  EXPECT_FALSE(book_.TakeOutgoing(now_).empty());
}

TEST_F(RequestBookTest, AServerThatAnswersNotEvenAPingIsSilent) {
  const LookupPlan plan = PlanOf(60);
  book_.BeginPull(now_, plan, 0, PullMode::kTrain);
  book_.TakeOutgoing(now_);  // The servers have them, and the rows are not there yet.
  std::set<ProcessId> alive = {ProcessId(1)};
  const auto silent_after = [&](Duration time) {
    std::vector<ProcessId> silent;
    for (Duration passed{}; passed < time; passed += milliseconds(50)) {
      now_ += milliseconds(50);
      for (RequestBook::Outgoing& ping : book_.Pings(now_)) {
        if (!alive.contains(book_.routes().executors()[ping.executor].server)) continue;
        EXPECT_TRUE(book_.OnAnswer(now_, ping.executor, servers_.Answer(ping.frames)).ok());
      }
      silent = book_.Silent(now_);
    }
    return silent;
  };
  EXPECT_EQ(silent_after(milliseconds(2900)), std::vector<ProcessId>{});
  EXPECT_EQ(silent_after(milliseconds(200)), std::vector{ProcessId(2)});
  alive.insert(ProcessId(2));
  EXPECT_EQ(silent_after(seconds(4)), std::vector<ProcessId>{});
  Exchange();
  ExpectRows(plan);  // The answers to pings count for nothing else.
  EXPECT_TRUE(book_.Pings(now_ + seconds(9)).empty()) << "nobody owes anything";
}

TEST_F(RequestBookTest, APullOfAShardThatHasLeftGoesToItsNewServer) {
  const LookupPlan plan = PlanOf(60);
  const ShardMap moved = Move(TwoServers(), 1, ProcessId(2));
  servers_.Learn(ProcessId(1), moved);
  servers_.Learn(ProcessId(2), moved);
  book_.BeginPull(now_, plan, 0, PullMode::kTrain);
  Exchange();
  EXPECT_TRUE(book_.Awaited(plan).has_value());  // The refused part is still awaited.
  Exchange();
  EXPECT_FALSE(book_.Awaited(plan).has_value());
  EXPECT_EQ(book_.routes().map(), moved);
  ExpectRows(plan);
}

TEST_F(RequestBookTest, ARefusedPieceKeepsItsKeyAndOthersAreNotSentAgain) {
  const LookupPlan plan = PlanOf(200);
  const ShardMap moved = Move(TwoServers(), 6, ProcessId(1));
  servers_.Learn(ProcessId(1), moved);
  servers_.Learn(ProcessId(2), moved);
  BeginPush(plan);
  Exchange();
  Exchange();
  EXPECT_FALSE(book_.AwaitedBefore(1).has_value());
  EXPECT_EQ(servers_.by[ShardId(6)], ProcessId(1));
  ExpectTakenOnce();
}

// The old server has accepted a push and handed the shard over. Its answer arrives when the client
// knows the newer map, so it does not count.
TEST_F(RequestBookTest, AnAnswerOfWhoHoldsTheShardNoLongerDoesNotCount) {
  const LookupPlan plan = PlanOf(60);
  BeginPush(plan);
  auto letters = book_.TakeOutgoing(now_);
  std::vector<Frames> answers;
  for (RequestBook::Outgoing& letter : letters) {
    answers.push_back(servers_.Answer(std::move(letter.frames)));
  }
  // Another request teaches the client the new map.
  const ShardMap moved = Move(TwoServers(), 1, ProcessId(2));
  servers_.Learn(ProcessId(1), moved);
  servers_.Learn(ProcessId(2), moved);
  const LookupPlan other = PlanOf(60);
  book_.BeginPull(now_, other, 0, PullMode::kTrain);
  Exchange();
  for (size_t i = 0; i < letters.size(); ++i) {
    ASSERT_TRUE(book_.OnAnswer(now_, letters[i].executor, std::move(answers[i])).ok());
  }
  EXPECT_TRUE(book_.AwaitedBefore(1).has_value());
  now_ += seconds(1);
  Exchange();
  EXPECT_FALSE(book_.AwaitedBefore(1).has_value());
  EXPECT_EQ(servers_.by[ShardId(1)], ProcessId(2));
  for (const auto& [piece, times] : servers_.taken) {
    EXPECT_EQ(times, std::get<1>(piece) == ShardId(1) ? 2u : 1u);
  }
}

// Server 2 has gone, and nobody answers in its stead.
TEST_F(RequestBookTest, WhatAServerThatIsGoneOwesGoesElsewhereAtOnce) {
  ShardMap without = TwoServers();
  without.version = MapVersion(2);
  without.servers.pop_back();
  for (Chain& chain : without.chains) {
    if (chain.Has(ProcessId(2))) chain = {without.version, {ProcessId(1)}};
  }
  servers_.Learn(ProcessId(1), without);
  const LookupPlan plan = PlanOf(60);
  BeginPush(plan);
  for (RequestBook::Outgoing& letter : book_.TakeOutgoing(now_)) {
    const Frames answer = servers_.Answer(std::move(letter.frames));
    // The answer is lost.
    if (book_.routes().executors()[letter.executor].server == ProcessId(2)) continue;
    ASSERT_TRUE(book_.OnAnswer(now_, letter.executor, answer).ok());
  }
  ASSERT_TRUE(book_.AwaitedBefore(1).has_value());
  servers_.taken.clear();
  // A pull of a former shard of server 2 from server 1 reveals the change.
  const ShardMap newer = Move(without, 0, ProcessId(1));
  servers_.Learn(ProcessId(1), newer);
  const LookupPlan other = PlanOf(60);
  book_.BeginPull(now_, other, 0, PullMode::kTrain);
  Exchange();
  Exchange();
  Exchange();
  EXPECT_FALSE(book_.AwaitedBefore(1).has_value());
  EXPECT_FALSE(book_.Awaited(other).has_value());
  ExpectRows(other);
}

// As above, but the scheduler tells the client: no answer is needed, and no time has to pass.
TEST_F(RequestBookTest, ANewerMapSendsWhatAServerThatIsGoneOwesToOthersAtOnce) {
  ShardMap without = TwoServers();
  without.version = MapVersion(2);
  without.servers.pop_back();
  for (Chain& chain : without.chains) {
    if (chain.Has(ProcessId(2))) chain = {without.version, {ProcessId(1)}};
  }
  const LookupPlan plan = PlanOf(60);
  BeginPush(plan);
  const LookupPlan other = PlanOf(40);
  book_.BeginPull(now_, other, 0, PullMode::kTrain);
  for (RequestBook::Outgoing& letter : book_.TakeOutgoing(now_)) {
    if (book_.routes().executors()[letter.executor].server == ProcessId(2)) continue;  // Lost.
    const Frames answer = servers_.Answer(std::move(letter.frames));
    ASSERT_TRUE(book_.OnAnswer(now_, letter.executor, answer).ok());
  }
  ASSERT_TRUE(book_.AwaitedBefore(1).has_value());
  ASSERT_TRUE(book_.Awaited(other).has_value());
  servers_.Learn(ProcessId(1), without);
  book_.OnMap(now_, without);
  EXPECT_EQ(book_.routes().map(), without);
  for (RequestBook::Outgoing& letter : book_.TakeOutgoing(now_)) {
    EXPECT_EQ(book_.routes().executors()[letter.executor].server, ProcessId(1));
    ASSERT_TRUE(
        book_.OnAnswer(now_, letter.executor, servers_.Answer(std::move(letter.frames))).ok());
  }
  EXPECT_FALSE(book_.AwaitedBefore(1).has_value());
  EXPECT_FALSE(book_.Awaited(other).has_value());
  ExpectRows(other);
  ExpectTakenOnce();
  for (const auto& [shard, server] : servers_.by) EXPECT_EQ(server, ProcessId(1));
}

// Requests to servers that are still there are not sent twice; these servers refuse what they must.
TEST_F(RequestBookTest, AMapWithAllServersSendsNothing) {
  const LookupPlan plan = PlanOf(60);
  BeginPush(plan);
  EXPECT_FALSE(book_.TakeOutgoing(now_).empty());
  const ShardMap moved = Move(TwoServers(), 1, ProcessId(2));
  book_.OnMap(now_, moved);
  EXPECT_EQ(book_.routes().map(), moved);
  EXPECT_TRUE(book_.TakeOutgoing(now_).empty());
  book_.OnMap(now_, TwoServers());
  EXPECT_EQ(book_.routes().map(), moved) << "an older map is passed over";
}

// The server refuses but knows no newer map than the client; this must not lead to a busy loop.
TEST_F(RequestBookTest, ARefusalThatTeachesNothingIsTriedLaterAndEndsAtTheDeadline) {
  const LookupPlan plan = PlanOf(3);
  BeginPush(plan);
  size_t sent = 0;
  Status late;
  for (; late.ok() && now_ < TimePoint() + seconds(60); now_ += milliseconds(10)) {
    for (RequestBook::Outgoing& letter : book_.TakeOutgoing(now_)) {
      ++sent;
      auto request = DecodeDataRequest(std::move(letter.frames), {&kTable, 1});
      DataReply reply{.request = request->push.request};
      for (const ShardPiece& piece : request->push.pieces) reply.refused.push_back(piece.shard);
      reply.change = ChangeSince(TwoServers(), MapVersion(1));
      ASSERT_TRUE(book_.OnAnswer(now_, letter.executor, Encode(reply)).ok());
    }
    late = book_.CheckTimes(now_);
  }
  EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(ToText(late), HasSubstr("is elsewhere"));
  EXPECT_LT(sent, 100u);
}

TEST_F(RequestBookTest, AnAnswerWithAWrongMapIsAnError) {
  BeginPush(PlanOf(3));
  auto letters = book_.TakeOutgoing(now_);
  auto request = DecodeDataRequest(std::move(letters[0].frames), {&kTable, 1});
  DataReply reply{.request = request->push.request};
  reply.refused = {request->push.pieces[0].shard};
  reply.change = {
      MapVersion(1), MapVersion(2), {{ShardId(99), {MapVersion(2), {ProcessId(1)}}}}, {}};
  EXPECT_EQ(book_.OnAnswer(now_, letters[0].executor, Encode(reply)).code(),
            StatusCode::kOutOfRange);
}

TEST_F(RequestBookTest, TooManyOrTooFewValuesAreAnError) {
  const LookupPlan plan = PlanOf(20);
  book_.BeginPull(now_, plan, 0, PullMode::kTrain);
  auto letters = book_.TakeOutgoing(now_);
  auto request = DecodeDataRequest(std::move(letters[0].frames), {&kTable, 1});
  DataReply reply{.request = request->pull.request, .values = Frame::Of(4)};
  const Status status = book_.OnAnswer(now_, letters[0].executor, Encode(reply));
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(ToText(status), HasSubstr("4 bytes of values"));
}

TEST_F(RequestBookTest, MessagesCarryTheGenerationTheViewAndTheServerMeant) {
  book_.SetGeneration(Generation(7));
  BeginPush(PlanOf(3));
  for (RequestBook::Outgoing& letter : book_.TakeOutgoing(now_)) {
    auto request = DecodeDataRequest(std::move(letter.frames), {&kTable, 1});
    const ProcessId server = book_.routes().executors()[letter.executor].server;
    EXPECT_EQ(request->push.stamp, (Stamp{Generation(7), ViewNumber(1), MapVersion(1), server}));
  }
}

}  // namespace
}  // namespace dt::worker
