// Goal: no bytes can harm the decoders, and what they accept is consistent. Method: valid messages
// are cut and their bits, bytes and words changed by a seeded generator; daily runs use ASan. The
// libFuzzer target is test/fuzz/message_fuzz.cc.
#include <cstring>

#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "common/wire/data.h"

namespace dt {
namespace {

constexpr uint64_t kSeed = 20260101;
const std::vector<WireTable> kMutatedTables = {
    {3, FloatFormat::kBf16}, {1}, {8, FloatFormat::kInt8}};

class Draws {
 public:
  explicit Draws(uint64_t stream) : stream_(stream) {}
  uint32_t Below(uint32_t bound) { return Philox(kSeed, stream_, count_++)[0] % bound; }

 private:
  const uint64_t stream_;
  uint64_t count_ = 0;
};

Frames GoodMessage(Draws& draw) {
  const KeyGroups groups = {{ShardId(0), 0, 2}, {ShardId(0), 2, 1}, {ShardId(9), 1, 4}};
  const uint32_t kind = draw.Below(8);
  if (kind == 0) {
    PullRequest pull;
    pull.groups = groups;
    pull.keys = Frame::Of(7 * 8);
    return Encode(pull);
  }
  if (kind == 1) {
    PushRequest push;
    push.groups = groups;
    push.keys = Frame::Of(7 * 8);
    push.gradients = Frame::Of(12 + 12 + 16);
    return Encode(push);
  }
  if (kind == 2) return Encode(CompleteRequest{{}, draw.Below(1000)});
  if (kind == 3) return Encode(AcksRequest{{}, {}, 3, {{ShardId(1), {}, 7}, {ShardId(9), {}, 8}}});
  if (kind == 4) return Encode(CopyAckRequest{});
  if (kind == 5) {
    return Encode(RecordsRequest{.parts = {{{}, 8, 16, 4}, {{}, 8, 0, 0}},
                                 .heads = Frame::Of(16),
                                 .keys = Frame::Of(16),
                                 .gradients = Frame::Of(8)});
  }
  if (kind == 6) {
    return Encode(CopyRequest{.rows = Frame::Of(32),
                              .end = true,
                              .turns = {{ProcessId(3), ViewNumber(2), 4, 5, 6}},
                              .applied = {{6, 0, 3}},
                              .life_bytes = {8, 0, 0},
                              .lives = Frame::Of(8),
                              .held = {{{}, 8, 8, 4}},
                              .heads = Frame::Of(8),
                              .keys = Frame::Of(8),
                              .gradients = Frame::Of(8)});
  }
  DataReply reply;
  if (draw.Below(2) == 0) reply.status = WithHint(Unavailable("disk {} is full", 3), "make room");
  reply.values = Frame::Of(16);
  return Encode(reply);
}

void Damage(Frames& frames, Draws& draw) {
  for (uint32_t n = draw.Below(4); n > 0 && !frames.empty(); --n) {
    Frame& frame =
        frames[draw.Below(3) == 0 ? draw.Below(static_cast<uint32_t>(frames.size())) : 0];
    const auto size = static_cast<uint32_t>(frame.size());
    const uint32_t how = draw.Below(8);
    if (how == 0) frames.pop_back();
    if (how == 1) frame = Frame::CopyOf(frame.bytes().first(draw.Below(size + 1)));
    if (how > 1 && size >= 4) {
      const uint32_t words[] = {0, 1, 4, 0x7fffffff, 0x80000000, 0xffffffff, draw.Below(64), size};
      const uint32_t at = draw.Below(size - 3) & (how == 2 ? ~0u : ~3u);
      std::memcpy(frame.bytes().data() + at, &words[draw.Below(8)], how == 3 ? 1 : 4);
    }
  }
}

void ExpectConsistent(std::span<const KeyGroup> groups, const Frame& keys, const Frame* grads) {
  uint64_t rows = 0, bytes = 0;
  for (const KeyGroup& g : groups) {
    ASSERT_LT(g.table, kMutatedTables.size());
    rows += g.rows;
    bytes += kMutatedTables[g.table].BytesOf(g.rows);
  }
  EXPECT_EQ(keys.as<uint64_t>().size(), rows);
  if (grads != nullptr) {
    EXPECT_EQ(grads->size(), bytes);
  }
}

TEST(DataMutation, DecodersRefuseOrAgreeWithThemselves) {
  uint32_t accepted = 0, refused = 0;
  for (uint64_t round = 0; round < 20'000; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << " round " << round);
    Draws draw(round);
    Frames frames = GoodMessage(draw);
    Damage(frames, draw);
    const auto reply = DecodeDataReply(frames);
    const auto request = DecodeDataRequest(std::move(frames), kMutatedTables);
    EXPECT_FALSE(reply.ok() && request.ok());
    ++(reply.ok() || request.ok() ? accepted : refused);
    if (!request.ok()) continue;
    if (request->kind == DataRequest::Kind::kPull) {
      ExpectConsistent(request->pull.groups, request->pull.keys, nullptr);
    } else if (request->kind == DataRequest::Kind::kPush) {
      ExpectConsistent(request->push.groups, request->push.keys, &request->push.gradients);
      EXPECT_LT(request->push.slice, request->push.slices);
      for (const ShardPiece& piece : request->push.pieces) EXPECT_LT(piece.piece, piece.pieces);
    }
  }
  EXPECT_GT(accepted, 2000u);  // Both outcomes must be frequent.
  EXPECT_GT(refused, 2000u);
}

}  // namespace
}  // namespace dt
