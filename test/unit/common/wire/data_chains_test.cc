// Messages between servers that have copies of the same shards.
#include <functional>

#include <gtest/gtest.h>

#include "common/wire/data.h"

namespace dt {
namespace {

const std::vector<WireTable> kChainTables = {{2}, {4}};
const Stamp kChainStamp{Generation(3), ViewNumber(2), MapVersion(9), ProcessId(1)};

Frame WordsOf(const std::vector<uint64_t>& words) {
  return Frame::CopyOf(std::as_bytes(std::span(words)));
}
std::vector<uint64_t> WordsIn(const Frame& frame) {
  const auto words = frame.as<uint64_t>();
  return {words.begin(), words.end()};
}
std::string HexOfHeader(const Frames& frames) {
  std::string text;
  for (const std::byte b : std::as_const(frames[0]).bytes()) {
    text += fmt::format("{:02x}", static_cast<unsigned>(b));
  }
  return text;
}

// Two records; the second has no rows.
RecordsRequest SomeRecords() {
  return {.stamp = kChainStamp,
          .from = ProcessId(2),
          .parts = {{MapVersion(4), 32, 16, 4}, {MapVersion(9), 24, 0, 0}},
          .heads = WordsOf({1, 2, 3, 4, 5, 6, 7}),
          .keys = WordsOf({10, 11}),
          .gradients = WordsOf({77})};
}

AcksRequest SomeAcks() {
  return {kChainStamp,
          ProcessId(2),
          12,
          {{ShardId(1), MapVersion(4), 1'000'000'000'000}, {ShardId(5), MapVersion(9), 0}}};
}

// The last part of a shard that is copied.
CopyRequest SomeCopy() {
  return {.stamp = kChainStamp,
          .from = ProcessId(2),
          .shard = ShardId(5),
          .since = MapVersion(9),
          .session = 0x123456789abcdef0,
          .number = 3,
          .rows = WordsOf({1, 2}),
          .end = true,
          .position = 4711,
          .now = 12,
          .view = ViewNumber(3),
          .turns = {{ProcessId(3), ViewNumber(3), 12, 14, 26},
                    {ProcessId(4), ViewNumber(2), 0, 13, 13}},
          .settled = 12,
          .applied = {{12, 0, 3}, {13, 1, 1}},
          .life_bytes = {0, 8},
          .lives = WordsOf({3}),
          .held = {{MapVersion(0), 8, 16, 4}},
          .heads = WordsOf({4}),
          .keys = WordsOf({5, 6}),
          .gradients = WordsOf({7})};
}

CopyAckRequest SomeCopyAck() {
  return {kChainStamp, ProcessId(3), ShardId(5), MapVersion(9), 17, 4};
}

TEST(Data, RecordsSurviveTheWire) {
  const auto out = DecodeDataRequest(Encode(SomeRecords()), kChainTables);
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->kind, DataRequest::Kind::kRecords);
  const RecordsRequest want = SomeRecords();
  EXPECT_EQ(out->records.stamp, want.stamp);
  EXPECT_EQ(out->records.from, want.from);
  EXPECT_EQ(out->records.parts, want.parts);
  EXPECT_EQ(WordsIn(out->records.heads), WordsIn(want.heads));
  EXPECT_EQ(WordsIn(out->records.keys), WordsIn(want.keys));
  EXPECT_EQ(WordsIn(out->records.gradients), WordsIn(want.gradients));
}

TEST(Data, AcksSurviveTheWire) {
  const auto out = DecodeDataRequest(Encode(SomeAcks()), kChainTables);
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->kind, DataRequest::Kind::kAcks);
  const AcksRequest want = SomeAcks();
  EXPECT_EQ(out->acks.stamp, want.stamp);
  EXPECT_EQ(out->acks.from, want.from);
  EXPECT_EQ(out->acks.complete, want.complete);
  EXPECT_EQ(out->acks.acks, want.acks);
}

TEST(Data, CopiesSurviveTheWire) {
  const auto out = DecodeDataRequest(Encode(SomeCopy()), kChainTables);
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->kind, DataRequest::Kind::kCopy);
  const CopyRequest want = SomeCopy();
  const CopyRequest& copy = out->copy;
  EXPECT_EQ(copy.stamp, want.stamp);
  EXPECT_EQ(copy.from, want.from);
  EXPECT_EQ(copy.shard, want.shard);
  EXPECT_EQ(copy.since, want.since);
  EXPECT_EQ(copy.session, want.session);
  EXPECT_EQ(copy.number, want.number);
  EXPECT_EQ(copy.end, want.end);
  EXPECT_EQ(copy.position, want.position);
  EXPECT_EQ(copy.now, want.now);
  EXPECT_EQ(copy.turns, want.turns);
  EXPECT_EQ(copy.view, want.view);
  EXPECT_EQ(copy.settled, want.settled);
  EXPECT_EQ(copy.applied, want.applied);
  EXPECT_EQ(copy.life_bytes, want.life_bytes);
  EXPECT_EQ(copy.held, want.held);
  for (const Frame CopyRequest::*frame :
       {&CopyRequest::rows, &CopyRequest::lives, &CopyRequest::heads, &CopyRequest::keys,
        &CopyRequest::gradients}) {
    EXPECT_EQ(WordsIn(copy.*frame), WordsIn(want.*frame));
  }

  const CopyAckRequest ack = SomeCopyAck();
  const auto acked = DecodeDataRequest(Encode(ack), kChainTables);
  ASSERT_TRUE(acked.ok()) << acked.status();
  ASSERT_EQ(acked->kind, DataRequest::Kind::kCopyAck);
  EXPECT_EQ(acked->copy_ack.stamp, ack.stamp);
  EXPECT_EQ(acked->copy_ack.from, ack.from);
  EXPECT_EQ(acked->copy_ack.shard, ack.shard);
  EXPECT_EQ(acked->copy_ack.since, ack.since);
  EXPECT_EQ(acked->copy_ack.session, ack.session);
  EXPECT_EQ(acked->copy_ack.next, ack.next);
}

// The bytes of version 13, as in data_test.cc.
TEST(Data, BytesOfTheVersionStayBetweenServers) {
  EXPECT_EQ(HexOfHeader(Encode(SomeRecords())),
            "18000000445444410000000000000a001200080007000c000a000000000000050d00000010000000"
            "00000a003000040028002c000a000000030000000000000002000000000000000900000000000000"
            "01000000000000000000000002000000040000000200000004000000000000002000000010000000"
            "0400000000000000090000000000000018000000000000000000000000000000");
  EXPECT_EQ(HexOfHeader(Encode(SomeAcks())),
            "18000000445444410000000000000a001000080007000c000a000000000000060d00000010000000"
            "0c003800040024002c0028000c000000030000000000000002000000000000000900000000000000"
            "010000000000000002000000100000000c0000000000000000000000020000000400000000000000"
            "0010a5d4e80000000100000000000000090000000000000000000000000000000500000000000000");
  EXPECT_EQ(HexOfHeader(Encode(SomeCopy())),
            "140000004454444100000a001200080007000c000a000000000000070d0000002800000000002200"
            "7c00080028002c00400048005000070058006000300034003800680070003c002200000000000001"
            "03000000000000000200000000000000090000000000000001000000000000000200000005000000"
            "ac0000009c0000007c000000400000000900000000000000f0debc9a785634120300000000000000"
            "67120000000000000c0000000000000003000000000000000c000000000000000000000002000000"
            "0c00000000000000030000000000000000000000000000000d000000000000000100000000000000"
            "01000000000000000000000001000000000000000000000008000000100000000400000000000000"
            "0200000000000000080000000200000003000000000000000c000000000000000e00000000000000"
            "1a000000000000000300000000000000020000000000000000000000000000000d00000000000000"
            "0d000000000000000400000000000000");
  EXPECT_EQ(HexOfHeader(Encode(SomeCopyAck())),
            "140000004454444100000a001000080007000c000a000000000000080d0000001400000010004400"
            "0400240028002c0034003c0010000000030000000000000002000000000000000900000000000000"
            "01000000000000000300000005000000090000000000000011000000000000000400000000000000");
}

TEST(Data, FramesThatDoNotBelongAreRefused) {
  for (const Frames& good :
       {Encode(SomeRecords()), Encode(SomeAcks()), Encode(SomeCopy()), Encode(SomeCopyAck())}) {
    ASSERT_TRUE(DecodeDataRequest(good, kChainTables).ok());
    Frames more = good, fewer = good;
    more.emplace_back();
    fewer.pop_back();
    EXPECT_EQ(DecodeDataRequest(more, kChainTables).status().code(), StatusCode::kOutOfRange);
    EXPECT_EQ(DecodeDataRequest(fewer, kChainTables).status().code(), StatusCode::kOutOfRange);
    EXPECT_FALSE(DecodeDataReply(good).ok());
  }
}

TEST(Data, RecordsStayAsTheyCameWhateverTheirSenderDoes) {
  std::vector<uint64_t> shared = WordsIn(SomeRecords().heads);  // A peer could change it.
  Frames frames = Encode(SomeRecords());
  frames[1] = Frame::OfPeer(std::as_writable_bytes(std::span(shared)), nullptr);
  const auto records = DecodeDataRequest(std::move(frames), kChainTables);
  ASSERT_TRUE(records.ok()) << records.status();
  shared.assign(shared.size(), 99);
  EXPECT_EQ(WordsIn(records->records.heads), WordsIn(SomeRecords().heads));
}

}  // namespace
}  // namespace dt
