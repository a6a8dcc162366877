#include "common/wire/control.h"

#include <random>

#include <gtest/gtest.h>

#include "test/unit/common/wire/control_samples.h"

namespace dt {
namespace {

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The message's bytes decide equality: encoding is a function of the value.
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
  const auto data = std::get<DataReadyMessage>(*DecodeControl(Bytes(EncodeControl(samples[1]))));
  EXPECT_EQ(data.columns, std::get<DataReadyMessage>(samples[1]).columns);
  const auto start = std::get<StartMessage>(*DecodeControl(Bytes(EncodeControl(samples[16]))));
  EXPECT_EQ(start.map, std::get<StartMessage>(samples[16]).map);
  EXPECT_EQ(start.plan, std::string("p\0n", 3));
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
      // What is accepted is a message: it can be encoded and read again.
      if (back.ok()) {
        EXPECT_TRUE(DecodeControl(Bytes(EncodeControl(*back))).ok()) << "seed " << kSeed;
      }
    }
  }
}

}  // namespace
}  // namespace dt
