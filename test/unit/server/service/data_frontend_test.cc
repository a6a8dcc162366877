#include "server/service/data_frontend.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "test/support/push_maker.h"
#include "test/support/scratch_folder.h"
#include "test/support/shard_sets.h"

namespace dt::server {
namespace {

using test::Grouping;
using test::RowMap;

const Stamp& kStamp = test::kFirstStamp;
const std::vector<TableSpec> kTables = {test::SimpleTable("a", 2)};
constexpr Duration kTimeout = seconds(60);

class Frontend : public ::testing::Test {
 protected:
  void SetUp() override { frontend_.Serve(&shards_, &links_, &copies_, false, answers_); }

  static PushRequest Push(Step step, SliceIndex slice) {
    const Grouping grouping(kTables, 4, test::AllShards(4), RowMap{{{0, 9}, {1, 1}}});
    PushRequest push = grouping.Push(100 + step * 10 + slice, kStamp, step);
    push.slice = slice;
    push.slices = 2;
    return push;
  }
  static PullRequest Pull(Step step, uint64_t request = 7, PullMode mode = PullMode::kTrain) {
    PullRequest pull;
    pull.request = request;
    pull.stamp = kStamp;
    pull.step = step;
    pull.mode = mode;
    pull.groups = {{ShardOf(kTables[0].id, 9, 4), 0, 1}};
    pull.keys = test::FrameOf(std::vector<Key>{9});
    return pull;
  }
  static PullRequest LargePull(Step step, size_t rows) {
    PullRequest pull = Pull(step, 0);
    std::vector<Key> keys;
    for (Key key = 0; keys.size() < rows; ++key) {
      if (ShardOf(kTables[0].id, key, 4) == pull.groups[0].shard) keys.push_back(key);
    }
    pull.groups[0].rows = static_cast<uint32_t>(rows);
    pull.keys = test::FrameOf(keys);
    return pull;
  }
  // The decoded answers to one message, with their peers.
  std::vector<std::pair<PeerId, DataReply>> Tell(const PeerId& peer, Frames frames) {
    frontend_.OnMessage(now_, {peer, std::move(frames)}, answers_);
    return Answers();
  }
  std::vector<std::pair<PeerId, DataReply>> Answers() {
    std::vector<std::pair<PeerId, DataReply>> out;
    for (PeerMessage& m : answers_) {
      auto reply = DecodeDataReply(std::move(m.frames));
      EXPECT_TRUE(reply.ok()) << reply.status();
      out.emplace_back(m.peer, *std::move(reply));
    }
    answers_.clear();
    return out;
  }
  void Gather(Step step) {
    for (SliceIndex s = 0; s < 2; ++s) {
      const auto answers = Tell("w", Encode(Push(step, s)));
      ASSERT_FALSE(answers.empty());
      ASSERT_TRUE(answers[0].second.status.ok()) << answers[0].second.status;
      ASSERT_EQ(answers[0].second.request, 100 + step * 10 + s);
    }
  }

  ShardSet shards_{test::SetOf(kTables, 2, 4, test::AllShards(4))};
  ChainLinks links_;
  ShardCopies copies_{0};
  DataFrontend frontend_{{{.dim = 2}}, kTimeout};
  std::vector<PeerMessage> answers_;
  TimePoint now_{};
};

TEST_F(Frontend, PullOfTheCurrentStepIsAnsweredAtOnce) {
  const auto answers = Tell("w", Encode(Pull(0)));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].first, "w");
  EXPECT_EQ(answers[0].second.request, 7u);
  EXPECT_EQ(answers[0].second.values.size(), 2 * sizeof(float));
}

TEST_F(Frontend, PullOfTheNextStepImpliesThatTheLastIsComplete) {
  Gather(0);
  const auto answers = Tell("w", Encode(Pull(1)));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].second.status.ok());
  EXPECT_EQ(shards_.clock(), 1u);
}

TEST_F(Frontend, PullThatMustWaitIsParkedUntilTheStepIsThere) {
  EXPECT_TRUE(Tell("w", Encode(Pull(1))).empty());
  EXPECT_TRUE(Tell("w", Encode(Pull(1))).empty());  // A resent request does not wait twice.
  EXPECT_TRUE(Tell("v", Encode(Pull(1))).empty());
  EXPECT_EQ(frontend_.parked(), 2u);
  EXPECT_EQ(Tell("w", Encode(Push(0, 1))).size(), 1u);
  const auto answers = Tell("w", Encode(Push(0, 0)));
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[1].first, "w");
  EXPECT_EQ(answers[2].first, "v");
  EXPECT_EQ(frontend_.parked(), 0u);
}

TEST_F(Frontend, ParkedPullsEndAtTheirDeadlineAndSayWhatIsMissing) {
  Tell("w", Encode(Push(0, 0)));
  EXPECT_TRUE(Tell("w", Encode(Pull(1))).empty());
  EXPECT_EQ(frontend_.NextDeadline(), now_ + kTimeout);
  frontend_.OnTick(now_ + kTimeout - milliseconds(1), answers_);
  EXPECT_TRUE(answers_.empty());
  frontend_.OnTick(now_ + kTimeout, answers_);
  const auto answers = Answers();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].second.status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(ToText(answers[0].second.status).find("waits for slice 1 of step 0"), std::string::npos)
      << answers[0].second.status;
  EXPECT_EQ(frontend_.NextDeadline(), TimePoint::max());
}

// Pulls of a megabyte that wait for step 2 do not slow down steps 0 and 1, because they are not
// examined.
TEST_F(Frontend, ParkedPullsCostNothingUntilTheirStep) {
  PullRequest pull = LargePull(2, 128 << 10);
  const TimePoint begun = SystemClock().Now();
  for (pull.request = 0; pull.request < 50; ++pull.request) {
    EXPECT_TRUE(Tell("w", Encode(pull)).empty());
  }
  const TimePoint parked = SystemClock().Now();
  for (int i = 0; i < 100; ++i) Tell("w", Encode(Push(0, 0)));
  EXPECT_LT(SystemClock().Now() - parked, parked - begun) << "each message looked at each pull";
  Tell("w", Encode(Push(0, 1)));
  Tell("w", Encode(Push(1, 0)));
  EXPECT_EQ(frontend_.parked(), 50u);
  EXPECT_EQ(Tell("w", Encode(Push(1, 1))).size(), 51u);
  EXPECT_EQ(frontend_.parked(), 0u);
}

TEST_F(Frontend, ParkedPullsAreBoundedInBytes) {
  PullRequest pull = LargePull(1, 1 << 20);
  const auto park = [&](const PeerId& peer) {
    ++pull.request;
    const auto answers = Tell(peer, Encode(pull));
    if (answers.empty()) return true;
    EXPECT_EQ(answers[0].second.status.code(), StatusCode::kResourceExhausted);
    return false;
  };
  std::map<PeerId, int> parked;
  for (int i = 0; i < 10; ++i) {
    for (const PeerId peer : {"a", "b", "c", "d", "e", "f"}) parked[peer] += park(peer) ? 1 : 0;
  }
  EXPECT_EQ(frontend_.parked(), 31u) << "32 and their heads are more than 256 MiB";
  frontend_.OnTick(now_ + kTimeout, answers_);
  Answers();
  for (int i = 0; i < 10; ++i) parked["g"] += park("g") ? 1 : 0;
  EXPECT_EQ(parked["g"], 7) << "more than 64 MiB of one peer";
}

TEST_F(Frontend, StepsThatNoWorkerCanBeAtAreMalformed) {
  for (const Step step : {Step{1025}, Step{1} << 62}) {
    EXPECT_EQ(Tell("w", Encode(Pull(step)))[0].second.status.code(), StatusCode::kOutOfRange);
    EXPECT_EQ(Tell("w", Encode(Push(step, 0)))[0].second.status.code(), StatusCode::kOutOfRange);
    EXPECT_TRUE(Tell("w", Encode(CompleteRequest{kStamp, step})).empty());
  }
  EXPECT_EQ(frontend_.bad_messages(), 6u);
  EXPECT_EQ(frontend_.parked(), 0u);
  Tell("w", Encode(Push(0, 0)));
  Tell("w", Encode(Push(0, 1)));
  EXPECT_EQ(shards_.clock(), 0u) << "nobody has said that step 0 is complete";
}

TEST_F(Frontend, PullOfAStepThatIsPastIsRefused) {
  Gather(0);
  Tell("w", Encode(CompleteRequest{kStamp, 0}));
  const auto late = Tell("w", Encode(Pull(0)));
  EXPECT_EQ(late[0].second.status.code(), StatusCode::kFailedPrecondition);
  // Evaluation reads the current rows.
  EXPECT_TRUE(Tell("w", Encode(Pull(0, 8, PullMode::kEvaluate)))[0].second.status.ok());
}

TEST_F(Frontend, CompleteIsNotAnsweredAndApplies) {
  Gather(0);
  EXPECT_TRUE(Tell("w", Encode(CompleteRequest{kStamp, 0})).empty());
  EXPECT_EQ(shards_.clock(), 1u);
  EXPECT_TRUE(Tell("w", Encode(CompleteRequest{kStamp, ~Step{0}})).empty());
  EXPECT_EQ(shards_.clock(), 1u);
}

TEST_F(Frontend, OldStampsAreRefusedWithoutEffect) {
  PushRequest push = Push(0, 0);
  push.stamp.generation = Generation(0);
  const auto answers = Tell("w", Encode(push));
  EXPECT_EQ(answers[0].second.status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(shards_.held_bytes(), 0u);
  EXPECT_EQ(frontend_.bad_messages(), 0u);
}

TEST_F(Frontend, GarbageIsCountedAndAnswered) {
  const std::vector<uint64_t> words = {1, 2, 3};
  for (uint64_t n = 1; n <= 3; ++n) {
    Frames frames;
    frames.push_back(test::FrameOf(words));
    const auto answers = Tell("w", std::move(frames));
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].second.status.code(), StatusCode::kOutOfRange);
    EXPECT_EQ(frontend_.bad_messages(), n);
  }
  EXPECT_EQ(Tell("w", {}).size(), 1u);
  EXPECT_TRUE(Tell("w", Encode(Pull(0)))[0].second.status.ok());
}

// A peer that reconnects has a new name each time.
TEST_F(Frontend, AFloodOfGarbageIsTenLinesAMinute) {
  const auto lines_of = [&](TimePoint now) {
    ::testing::internal::CaptureStderr();
    now_ = now;
    for (int i = 0; i < 1000; ++i) Tell(std::to_string(frontend_.bad_messages()), {});
    const std::string text = ::testing::internal::GetCapturedStderr();
    return std::ranges::count(text, '\n');
  };
  EXPECT_EQ(lines_of(now_), 10);
  EXPECT_EQ(lines_of(now_ + seconds(59)), 0);
  EXPECT_EQ(lines_of(now_ + seconds(1)), 10);
  EXPECT_EQ(frontend_.bad_messages(), 3000u);
}

// The same bytes must be recorded and applied.
TEST_F(Frontend, RecordsHaveWhatWasPushedThoughItsSenderChangesIt) {
  struct Kept : RecordSink {
    void OnRecord(ShardId, const Record& record) override { records.push_back(record); }
    std::vector<Record> records;
  } kept;
  shards_.RecordTo(&kept);
  frontend_.Serve(&shards_, &links_, &copies_, true, answers_);
  const Frames sent = Encode(Push(0, 0));
  // Memory that a peer could change.
  std::vector<uint64_t> keys(sent[1].size() / 8), gradients(sent[2].size() / 8);
  std::memcpy(keys.data(), sent[1].bytes().data(), sent[1].size());
  std::memcpy(gradients.data(), sent[2].bytes().data(), sent[2].size());
  Frames lent = sent;
  lent[1] = Frame::OfPeer(std::as_writable_bytes(std::span(keys)), nullptr);
  lent[2] = Frame::OfPeer(std::as_writable_bytes(std::span(gradients)), nullptr);
  EXPECT_TRUE(Tell("w", std::move(lent)).empty()) << "it is not in the log yet";
  keys.assign(keys.size(), ~uint64_t{0});
  gradients.assign(gradients.size(), ~uint64_t{0});
  frontend_.OnCommit(OkStatus(), answers_);
  EXPECT_TRUE(Answers()[0].second.status.ok());
  std::vector<std::byte> recorded_keys, recorded_gradients;
  for (const Record& record : kept.records) {
    std::ranges::copy(KeysOf(record.contribution), std::back_inserter(recorded_keys));
    std::ranges::copy(GradientsOf(record.contribution), std::back_inserter(recorded_gradients));
  }
  EXPECT_TRUE(std::ranges::equal(recorded_keys, sent[1].bytes()));
  EXPECT_TRUE(std::ranges::equal(recorded_gradients, sent[2].bytes()));
  shards_.RecordTo(nullptr);
}

// A server whose shards are all on two servers.
struct Member : RecordSink {
  Member(uint32_t self, uint64_t version)
      : shards({.tables = kTables,
                .slices = 2,
                .view = {kStamp.generation, kStamp.view, MapOf(version), {}},
                .self = ProcessId(self)}) {
    shards.RecordTo(this);
    links.SetMap({}, shards);
  }
  static ShardMap MapOf(uint64_t version) {
    ShardMap map =
        MakeShardMap(MapVersion(version), 4, {{ProcessId(1), {"a"}}, {ProcessId(2), {"b"}}});
    for (Chain& chain : map.chains) {
      chain.members = {ProcessId(1), ProcessId(2)};
      chain.since = map.version;
    }
    return map;
  }
  void OnRecord(ShardId shard, const Record& record) override { links.OnRecord(shard, record); }

  ShardSet shards;
  ChainLinks links;
};

TEST_F(Frontend, RecordsThatComeBeforeTheirMapWaitForIt) {
  Member head(1, 2), tail(2, 1);
  frontend_.Serve(&tail.shards, &tail.links, &copies_, false, answers_);
  ASSERT_TRUE(head.shards.Push(Push(0, 0)).ok());
  std::vector<ChainLinks::Letter> letters;
  head.links.TakeLetters(now_, head.shards, letters);
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_TRUE(Tell("head", letters[0].frames).empty());
  const auto records = [](const Member& member) {
    Position all = 0;
    for (const Shard& shard : member.shards.shards()) all += shard.position();
    return all;
  };
  frontend_.TakeEarly(now_);
  EXPECT_EQ(records(tail), 0u);
  tail.shards.SetMap(Member::MapOf(2));
  tail.links.SetMap(now_, tail.shards);
  frontend_.TakeEarly(now_);
  EXPECT_GT(records(head), 0u);
  EXPECT_EQ(records(tail), records(head));
  EXPECT_EQ(frontend_.bad_messages(), 0u);
  frontend_.Serve(nullptr, nullptr, nullptr, false, answers_);
}

// That its first copy is known here does not mean that the next member has it.
TEST_F(Frontend, ARepeatedPushIsAnsweredWhenItsFirstCopyIsStable) {
  Member head(1, 1), tail(2, 1);
  frontend_.Serve(&head.shards, &head.links, &copies_, false, answers_);
  DataFrontend next({{.dim = 2}}, kTimeout);
  next.Serve(&tail.shards, &tail.links, &copies_, false, answers_);
  EXPECT_TRUE(Tell("w", Encode(Push(0, 0))).empty());
  EXPECT_TRUE(Tell("w", Encode(Push(0, 0))).empty());
  frontend_.OnTick(now_, answers_);
  EXPECT_TRUE(Answers().empty());
  std::vector<ChainLinks::Letter> letters;
  head.links.TakeLetters(now_, head.shards, letters);
  ASSERT_EQ(letters.size(), 1u);
  next.OnMessage(now_, {"head", letters[0].frames}, answers_);
  letters.clear();
  tail.links.TakeLetters(now_, tail.shards, letters);
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_TRUE(Tell("tail", letters[0].frames).empty());
  frontend_.OnTick(now_, answers_);
  const auto answers = Answers();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].first, "w");
  EXPECT_TRUE(answers[0].second.status.ok());
  EXPECT_EQ(Tell("w", Encode(Push(0, 0))).size(), 1u) << "it is stable already";
  next.Serve(nullptr, nullptr, nullptr, false, answers_);
  frontend_.Serve(nullptr, nullptr, nullptr, false, answers_);
}

TEST_F(Frontend, WithoutShardsItIsBusyAndParkedPullsAreSentAway) {
  EXPECT_TRUE(Tell("w", Encode(Pull(1))).empty());
  frontend_.Serve(nullptr, nullptr, nullptr, false, answers_);
  EXPECT_EQ(Answers()[0].second.status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Tell("w", Encode(Pull(0)))[0].second.status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Tell("w", Encode(Push(0, 0)))[0].second.status.code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(Tell("w", Encode(CompleteRequest{kStamp, 0})).empty());
  frontend_.OnTick(now_ + 2 * kTimeout, answers_);
  EXPECT_TRUE(answers_.empty());
}

}  // namespace
}  // namespace dt::server
