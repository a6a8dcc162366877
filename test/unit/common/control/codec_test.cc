#include <random>

#include <gtest/gtest.h>

#include "common/control/messages.h"
#include "test/unit/common/control/message_samples.h"

namespace dt {
namespace {

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Hand-made FlatBuffers: a message whose body, number `type` of the union, has one field: a vector
// with `times` offsets, all of which point to `item` at the end of the message.
std::string PointingOftenTo(const std::vector<uint32_t>& item, uint32_t times, uint32_t type,
                            uint32_t field) {
  const auto halves = [](uint32_t low, uint32_t high) { return low | high << 16; };
  std::vector<uint32_t> words = {16, 0x3143'5444, halves(8, 12), halves(8, 4), 8, 0, type};
  const size_t vtable = words.size();  // The vtable of the body, which has only this field.
  words.resize(vtable + 1 + field / 2 + 1);
  words[vtable] = halves(4 * static_cast<uint32_t>(words.size() - vtable), 8);
  words.back() = halves(field % 2 == 0 ? 4 : 0, field % 2 == 0 ? 0 : 4);
  words[5] = 4 * static_cast<uint32_t>(words.size() - 5);
  words.push_back(4 * static_cast<uint32_t>(words.size() - vtable));
  words.push_back(4);
  words.push_back(times);
  for (uint32_t i = 0; i < times; ++i) words.push_back(4 * (times - i));
  words.insert(words.end(), item.begin(), item.end());
  return {reinterpret_cast<const char*>(words.data()), 4 * words.size()};
}

// Encoding is a function of the value, so messages are equal if and only if their bytes are.
TEST(Control, EveryMessageComesBackAsItWas) {
  for (const ControlMessage& message : ControlSamples()) {
    const std::string bytes = EncodeControl(message);
    const Result<ControlMessage> back = DecodeControl(Bytes(bytes));
    ASSERT_TRUE(back.ok()) << NameOf(message) << ": " << ToText(back.status());
    EXPECT_EQ(back->index(), message.index());
    EXPECT_EQ(EncodeControl(*back), bytes) << NameOf(message);
  }
}

TEST(Control, FieldsArriveInTheirPlaces) {
  const auto samples = ControlSamples();
  const auto join = std::get<JoinMessage>(*DecodeControl(Bytes(EncodeControl(samples[0]))));
  EXPECT_EQ(join.role, Role::kServer);
  EXPECT_EQ(join.incarnation.value(), ~0ull);
  EXPECT_EQ(join.pid, 4711);
  EXPECT_EQ(join.host, "host");
  EXPECT_EQ(join.job_fingerprint, 99u);
  EXPECT_EQ(join.devices, std::get<JoinMessage>(samples[0]).devices);
  EXPECT_EQ(join.id, ProcessId(2));
  EXPECT_EQ(join.address, "10.0.0.2");
  const auto data = std::get<DataReadyMessage>(*DecodeControl(Bytes(EncodeControl(samples[1]))));
  EXPECT_EQ(data.columns, std::get<DataReadyMessage>(samples[1]).columns);
  const auto start = std::get<StartMessage>(*DecodeControl(Bytes(EncodeControl(samples[16]))));
  EXPECT_EQ(start.view, std::get<StartMessage>(samples[16]).view);
  EXPECT_EQ(start.team, 2u);
  EXPECT_EQ(start.plans, std::vector{PlanBytes{std::string("p\0n", 3)}});
  EXPECT_EQ(start.tables_on_worker, std::vector{TableId(~0ull)});
}

TEST(Control, MessagesAreReadAtAnyAddress) {
  for (const ControlMessage& message : ControlSamples()) {
    const std::string shifted = "x" + EncodeControl(message);
    EXPECT_TRUE(DecodeControl(Bytes(shifted).subspan(1)).ok()) << NameOf(message);
  }
}

TEST(Control, ValuesOutOfRangeAreMalformed) {
  const ControlMessage bad[] = {
      JoinMessage{static_cast<Role>(9), {}, 0, "", 0, "", 0, {}, 0, {}},
      JoinMessage{Role::kWorker, {}, 0, "", 0, "", 0, {}, 0, {{static_cast<DeviceKind>(7)}}},
      FailedMessage{static_cast<StatusCode>(99), {}},
      OrderMessage{1, EvaluateOrder{0, static_cast<SplitKind>(3)}},
      OrderDoneMessage{1, EvaluateDone{{{{}, {1.0f}, {}}}}},
      StartMessage{},
  };
  for (const ControlMessage& message : bad) {
    const auto result = DecodeControl(Bytes(EncodeControl(message)));
    EXPECT_EQ(result.status().code(), StatusCode::kOutOfRange) << NameOf(message);
  }
}

// A join in which 10,000 endpoints are the same text of 10 kB: 50 kB would become 100 MB.
TEST(Control, ATextThatIsPointedToOftenIsMalformed) {
  const auto join_of = [](uint32_t endpoints, uint32_t length) {
    std::vector<uint32_t> text(1 + length / 4 + 1, 0x7878'7878);
    text[0] = length;
    text.back() = 0;
    return PointingOftenTo(text, endpoints, 1, 7);
  };
  const auto good = DecodeControl(Bytes(join_of(2, 4)));
  ASSERT_TRUE(good.ok()) << ToText(good.status());
  EXPECT_EQ(std::get<JoinMessage>(*good).endpoints, std::vector<std::string>(2, "xxxx"));
  const auto refused = DecodeControl(Bytes(join_of(10'000, 10'000)));
  EXPECT_EQ(refused.status().code(), StatusCode::kOutOfRange);
}

// Each table needs 4 bytes in the message, and the size of a DeviceInfo in memory.
TEST(Control, ManyEmptyTablesAreMalformed) {
  const std::vector<uint32_t> table = {static_cast<uint32_t>(-4),
                                       4 | 4 << 16};  // The offset of its vtable, which follows.
  EXPECT_TRUE(DecodeControl(Bytes(PointingOftenTo(table, 1, 1, 9))).ok());
  const std::string message = PointingOftenTo(table, 500'000, 1, 9);
  EXPECT_EQ(DecodeControl(Bytes(message)).status().code(), StatusCode::kOutOfRange);
}

// Many structs without texts, and many short texts, need the most memory for their bytes.
TEST(Control, LargeMessagesOfOurOwnAreRead) {
  constexpr size_t kMany = 50'000;
  JoinMessage join;
  join.endpoints.assign(kMany, "");
  join.devices.assign(kMany, {});
  StartMessage start;
  std::vector<ServerInfo> servers;
  for (uint32_t i = 0; i < 1024; ++i) servers.push_back({ProcessId(i + 1), {""}});
  start.view.map = MakeShardMap(MapVersion(1), 1 << 14, servers);
  start.plans.resize(1);
  start.plans[0].bytes.assign(20 << 20, 'p');
  start.view.workers.assign(kMany, ProcessId(7));
  start.tables_on_worker.assign(kMany, TableId(1));
  EvaluateDone scores;
  scores.losses.assign(kMany, {});
  scores.losses[0] = {std::vector<EvaluatePart>(kMany), std::vector<float>(5'000'000),
                      std::vector<uint8_t>(5'000'000)};
  for (const ControlMessage& message : std::initializer_list<ControlMessage>{
           join, DataReadyMessage{.columns = std::vector<ColumnSpec>(kMany)},
           HeartbeatMessage{.tables = std::vector<TableReport>(kMany)}, start,
           OrderDoneMessage{1, scores},
           OrderDoneMessage{2, FinishDone{std::vector<TableReport>(kMany), {}, {}}},
           RowsWrittenMessage{1, std::vector<CheckpointFile>(kMany)},
           KvPutMessage{"", std::string(20 << 20, 'v')}}) {
    const auto back = DecodeControl(Bytes(EncodeControl(message)));
    EXPECT_TRUE(back.ok()) << NameOf(message) << ": " << ToText(back.status());
  }
}

TEST(Control, NoBytesCanHurt) {
  constexpr uint64_t kSeed = 20260131;
  std::mt19937_64 random(kSeed);
  for (const ControlMessage& message : ControlSamples()) {
    const std::string good = EncodeControl(message);
    for (size_t length = 0; length < good.size(); ++length) {
      DecodeControl(Bytes(good).first(length)).IgnoreError();
    }
    for (int round = 0; round < 2000; ++round) {
      std::string bytes = good;
      const int flips = 1 + static_cast<int>(random() % 4);
      for (int i = 0; i < flips; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
      const Result<ControlMessage> back = DecodeControl(Bytes(bytes));
      // An accepted message can be encoded and decoded again.
      if (back.ok()) {
        EXPECT_TRUE(DecodeControl(Bytes(EncodeControl(*back))).ok()) << "seed " << kSeed;
      }
    }
  }
}

}  // namespace
}  // namespace dt
