// Goal: a ring delivers every record once, in order and complete. Method: one ring with a writer
// thread and a reader thread, also under ThreadSanitizer; records of many sizes describe their own
// content.
#include "common/net/shm/shm_segment.h"

#include <cstring>
#include <thread>

#include <gtest/gtest.h>

namespace dt {
namespace {

constexpr uint64_t kRecords = 5'000;

std::vector<std::byte> RecordOf(uint64_t number) {
  std::vector<std::byte> record(16 + number * 40 % 4096, static_cast<std::byte>(number));
  const ShmRecordHead head{static_cast<uint32_t>(record.size()), 1};
  std::memcpy(record.data(), &head, sizeof(head));
  std::memcpy(record.data() + sizeof(head), &number, sizeof(number));
  return record;
}

TEST(ShmRing, CarriesEveryRecordInOrder) {
  auto ring = std::make_unique<ShmRing>();
  std::jthread writer([&] {
    ShmRingWriter out(*ring);
    for (uint64_t i = 0; i < kRecords;) {
      const auto outcome = out.Write(RecordOf(i));
      ASSERT_NE(outcome, ShmRingWriter::Outcome::kBroken);
      if (outcome == ShmRingWriter::Outcome::kWritten) ++i;
    }
  });
  ShmRingReader in(*ring);
  std::vector<std::byte> record;
  for (uint64_t i = 0; i < kRecords;) {
    const auto outcome = in.Read(record);
    ASSERT_NE(outcome, ShmRingReader::Outcome::kBroken);
    if (outcome == ShmRingReader::Outcome::kEmpty) continue;
    ASSERT_EQ(record, RecordOf(i++));
  }
  EXPECT_TRUE(in.empty());
}

TEST(ShmRing, IsFullWhenItsReaderSleepsAndBrokenWhenItsReaderLies) {
  auto ring = std::make_unique<ShmRing>();
  ShmRingWriter out(*ring);
  size_t written = 0;
  while (out.Write(RecordOf(100)) == ShmRingWriter::Outcome::kWritten) ++written;
  EXPECT_EQ(written, kShmRingBytes / RecordOf(100).size());
  ring->head.store(uint64_t{1} << 40);
  EXPECT_EQ(out.Write(RecordOf(100)), ShmRingWriter::Outcome::kBroken);
}

}  // namespace
}  // namespace dt
