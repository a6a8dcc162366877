#include "common/wire/data.h"

#include <cstring>
#include <functional>

#include <gtest/gtest.h>

namespace dt {
namespace {

const std::vector<WireTable> kTables = {{2}, {4}};
const Stamp kStamp{Generation(3), ViewNumber(2), MapVersion(9), ProcessId(1)};

template <class T>
Frame FrameOf(const std::vector<T>& values) {
  return Frame::CopyOf(std::as_bytes(std::span(values)));
}

PullRequest SomePull() {
  PullRequest pull;
  pull.request = 77;
  pull.stamp = kStamp;
  pull.step = 5;
  pull.mode = PullMode::kEvaluate;
  pull.groups = {{ShardId(1), 0, 2}, {ShardId(1), 1, 0}, {ShardId(3), 1, 1}};
  pull.keys = FrameOf<uint64_t>({10, 11, ~0ull});
  return pull;
}

PushRequest SomePush() {
  PushRequest push;
  push.request = 78;
  push.stamp = kStamp;
  push.step = 6;
  push.slice = 1;
  push.slices = 3;
  push.lr_scale = 0.5f;
  push.pieces = {{ShardId(0)}, {ShardId(1), 1, 2}, {ShardId(2)}};
  push.groups = {{ShardId(1), 0, 1}, {ShardId(2), 1, 1}};
  push.keys = FrameOf<uint64_t>({10, 20});
  push.gradients = FrameOf<float>({1, 2, 3, 4, 5, 6});
  return push;
}

std::string HexText(const Frame& frame) {
  std::string text;
  for (const std::byte b : frame.bytes()) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

template <class T>
std::vector<T> Values(const Frame& frame) {
  const auto values = frame.as<T>();
  return {values.begin(), values.end()};
}

TEST(Data, PullSurvivesTheWire) {
  const auto out = DecodeDataRequest(Encode(SomePull()), kTables);
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->kind, DataRequest::Kind::kPull);
  const PullRequest want = SomePull();
  EXPECT_EQ(out->pull.request, want.request);
  EXPECT_EQ(out->pull.stamp, want.stamp);
  EXPECT_EQ(out->pull.step, want.step);
  EXPECT_EQ(out->pull.mode, want.mode);
  EXPECT_EQ(out->pull.groups, want.groups);
  EXPECT_EQ(Values<uint64_t>(out->pull.keys), Values<uint64_t>(want.keys));
}

TEST(Data, PushSurvivesTheWire) {
  const auto out = DecodeDataRequest(Encode(SomePush()), kTables);
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->kind, DataRequest::Kind::kPush);
  const PushRequest want = SomePush();
  EXPECT_EQ(out->push.request, want.request);
  EXPECT_EQ(out->push.stamp, want.stamp);
  EXPECT_EQ(out->push.step, want.step);
  EXPECT_EQ(out->push.slice, want.slice);
  EXPECT_EQ(out->push.slices, want.slices);
  EXPECT_EQ(out->push.pieces, want.pieces);
  EXPECT_EQ(out->push.lr_scale, want.lr_scale);
  EXPECT_EQ(out->push.groups, want.groups);
  EXPECT_EQ(Values<uint64_t>(out->push.keys), Values<uint64_t>(want.keys));
  EXPECT_EQ(Values<float>(out->push.gradients), Values<float>(want.gradients));
}

TEST(Data, CompleteSurvivesTheWire) {
  const auto out = DecodeDataRequest(Encode(CompleteRequest{kStamp, 12}), kTables);
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->kind, DataRequest::Kind::kComplete);
  EXPECT_EQ(out->complete.stamp, kStamp);
  EXPECT_EQ(out->complete.step, 12u);
}

TEST(Data, ArraysAreNotCopied) {
  PullRequest pull = SomePull();
  const std::byte* const keys = pull.keys.bytes().data();
  const auto out = DecodeDataRequest(Encode(pull), kTables);
  EXPECT_EQ(out->pull.keys.bytes().data(), keys);
}

TEST(Data, AnswersSurviveTheWire) {
  DataReply good;
  good.request = 5;
  good.values = FrameOf<float>({1.5f, -2});
  const auto out = DecodeDataReply(Encode(good));
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(out->status.ok());
  EXPECT_EQ(out->request, 5u);
  EXPECT_EQ(Values<float>(out->values), (std::vector<float>{1.5f, -2}));

  DataReply moved;
  moved.refused = {ShardId(0), ShardId(3)};
  moved.change = {MapVersion(2),
                  MapVersion(5),
                  {{ShardId(0), {MapVersion(5), {ProcessId(2)}}},
                   {ShardId(3), {MapVersion(4), {ProcessId(2), ProcessId(4)}}}},
                  {{ProcessId(2), {"a", "b"}}, {ProcessId(4), {"c"}}}};
  const auto changed = DecodeDataReply(Encode(moved));
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->refused, moved.refused);
  EXPECT_EQ(changed->change, moved.change);

  DataReply bad;
  bad.request = 6;
  bad.status = WithHint(WithWhere(Stale("the map is old"), "server 2"), "refresh it");
  const auto refused = DecodeDataReply(Encode(bad));
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_EQ(refused->status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ToText(refused->status), "the map is old (server 2); refresh it");
}

// The bytes of version 13. If one of these tests fails, the format has changed: increase
// kWireVersion.
TEST(Data, BytesOfTheVersionStay) {
  EXPECT_EQ(HexText(Encode(SomePull())[0]),
            "18000000445444410000000000000a001200080007000c000a000000000000010d00000014000000"
            "00000e00400030003800080007002c000e0000000000000103000000000000000200000000000000"
            "0900000000000000010000000000000000000000140000004d000000000000000500000000000000"
            "03000000010000000000000002000000010000000100000000000000030000000100000001000000");
  EXPECT_EQ(HexText(Encode(SomePush())[0]),
            "18000000445444410000000000000a001000080007000c000a000000000000020d00000018000000"
            "140050003c004400040028002c003000340038001400000003000000000000000200000000000000"
            "090000000000000001000000000000000000000001000000030000000000003f3800000018000000"
            "4e000000000000000600000000000000000000000200000001000000000000000100000002000000"
            "01000000010000000300000000000000000000000100000001000000010000000200000002000000"
            "0000000001000000");
  EXPECT_EQ(HexText(Encode(CompleteRequest{kStamp, 12})[0]),
            "140000004454444100000a001000080007000c000a000000000000030d0000000c00000008002c00"
            "24000400080000000300000000000000020000000000000009000000000000000100000000000000"
            "0c00000000000000");
  DataReply reply;
  reply.request = 6;
  reply.status = Stale("old");
  EXPECT_EQ(HexText(Encode(reply)[0]),
            "140000004454444100000a001200080007000c000a000000000000040d0000001400000000000e00"
            "1c001400040008000c0010000e0000000900000024000000180000000c0000000600000000000000"
            "00000000000000000000000000000000030000006f6c6400");
}

TEST(Data, LyingRequestsAreRefused) {
  struct Case {
    std::string name;
    std::function<Frames()> make;
  };
  const auto pull = [](auto change) {
    return [change] {
      PullRequest p = SomePull();
      change(p);
      return Encode(p);
    };
  };
  const auto push = [](auto change) {
    return [change] {
      PushRequest p = SomePush();
      change(p);
      return Encode(p);
    };
  };
  const Case cases[] = {
      {"no frames", [] { return Frames{}; }},
      {"an empty header", [] { return Frames(1); }},
      {"a frame too few",
       [] {
         Frames f = Encode(SomePull());
         f.pop_back();
         return f;
       }},
      {"a frame too many",
       [] {
         Frames f = Encode(SomePush());
         f.emplace_back();
         return f;
       }},
      {"an answer", [] { return Encode(DataReply{}); }},
      {"keys missing", pull([](auto& p) {
         p.keys = FrameOf<uint64_t>({1, 2});
       })},
      {"half a key", pull([](auto& p) { p.keys = Frame::CopyOf(p.keys.bytes().first(23)); })},
      {"no such table", pull([](auto& p) { p.groups[2].table = 2; })},
      {"groups out of order", pull([](auto& p) { std::swap(p.groups[0], p.groups[2]); })},
      {"a group twice", pull([](auto& p) { p.groups[1].table = 0; })},
      {"more rows than fit", pull([](auto& p) { p.groups[2].rows = ~0u; })},
      {"an unknown mode", pull([](auto& p) { p.mode = PullMode(7); })},
      {"gradients missing", push([](auto& p) { p.gradients = FrameOf<float>({1}); })},
      {"slice beyond", push([](auto& p) { p.slice = 3; })},
      {"no slices", push([](auto& p) { p.slices = 0; })},
      {"piece beyond", push([](auto& p) { p.pieces[1].piece = 2; })},
      {"no pieces", push([](auto& p) { p.pieces[1].pieces = 0; })},
      {"too many pieces", push([](auto& p) { p.pieces[1].pieces = 4097; })},
      {"pieces out of order", push([](auto& p) { std::swap(p.pieces[0], p.pieces[1]); })},
      {"a piece twice", push([](auto& p) { p.pieces[0] = p.pieces[1]; })},
      {"rows without a piece", push([](auto& p) { p.pieces.pop_back(); })},
      {"a rate that is no number", push([](auto& p) { p.lr_scale = 0.0f / 0.0f; })},
  };
  for (const Case& c : cases) {
    const auto out = DecodeDataRequest(c.make(), kTables);
    ASSERT_FALSE(out.ok()) << c.name;
    EXPECT_EQ(out.status().code(), StatusCode::kOutOfRange) << c.name;
  }
}

TEST(Data, KeysStayAsTheyWereCheckedWhateverTheirSenderDoes) {
  std::vector<uint64_t> shared;  // Memory that a peer could change at any time.
  const auto lent = [&shared](Frames frames) {
    const auto keys = std::as_const(frames[1]).as<uint64_t>();
    shared.assign(keys.begin(), keys.end());
    frames[1] = Frame::OfPeer(std::as_writable_bytes(std::span(shared)), nullptr);
    return frames;
  };
  const auto pull = DecodeDataRequest(lent(Encode(SomePull())), kTables);
  ASSERT_TRUE(pull.ok()) << pull.status();
  shared.assign(shared.size(), 99);
  EXPECT_EQ(Values<uint64_t>(pull->pull.keys), Values<uint64_t>(SomePull().keys));
  const auto push = DecodeDataRequest(lent(Encode(SomePush())), kTables);
  ASSERT_TRUE(push.ok()) << push.status();
  shared.assign(shared.size(), 99);
  EXPECT_EQ(Values<uint64_t>(push->push.keys), Values<uint64_t>(SomePush().keys));
}

TEST(Data, AnotherWireVersionIsNamed) {
  Frames frames = Encode(SomePull());
  const std::string before = HexText(frames[0]);
  // The version is the last word of this number.
  for (size_t i = frames[0].size() / 4 * 4 - 4; i > 0; i -= 4) {
    uint32_t word = 0;
    std::memcpy(&word, frames[0].bytes().data() + i, 4);
    if (word != kWireVersion) continue;
    word = kWireVersion + 1;
    std::memcpy(frames[0].bytes().data() + i, &word, 4);
    break;
  }
  ASSERT_NE(HexText(frames[0]), before);
  const auto out = DecodeDataRequest(std::move(frames), kTables);
  ASSERT_FALSE(out.ok());
  EXPECT_NE(ToText(out.status()).find(fmt::format("wire version {}", kWireVersion + 1)),
            std::string::npos)
      << out.status();
}

TEST(Data, LyingAnswersAreRefused) {
  DataReply reply;
  reply.values = Frame::Of(6);
  EXPECT_FALSE(DecodeDataReply(Encode(reply)).ok());
  EXPECT_FALSE(DecodeDataReply(Encode(SomePull())).ok());
  EXPECT_FALSE(DecodeDataReply({}).ok());
  reply.values = {};
  reply.status = Stale("x");
  Frames frames = Encode(reply);
  frames.emplace_back();
  EXPECT_FALSE(DecodeDataReply(std::move(frames)).ok());
  reply.status = {};
  for (const std::vector<ShardId>& refused :
       {std::vector{ShardId(3), ShardId(0)}, std::vector{ShardId(3), ShardId(3)}}) {
    reply.refused = refused;
    EXPECT_FALSE(DecodeDataReply(Encode(reply)).ok());
  }
}

}  // namespace
}  // namespace dt
