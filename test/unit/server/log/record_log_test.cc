// Goal: committed records are read back exactly, however the process ended; an incomplete record at
// the end is cut off; any damage is detected and named. Method: real files; the log is torn at
// every offset and every byte is flipped; a file size limit imitates a full disk.
#include "server/log/record_log.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/log/record_log_reader.h"
#include "test/support/full_disk.h"
#include "test/support/scratch_folder.h"

namespace dt::server {
namespace {

using ::testing::HasSubstr;

const Generation kLogGeneration(3);

std::string ReadFile(const std::string& path) {
  std::string text(std::filesystem::file_size(path), '\0');
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  return text;
}

void WriteFile(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
}

// The parts of a record: its head, keys and gradients.
using Parts = std::array<std::string, 3>;

RecordBytes BytesOf(const Parts& parts) {
  const auto kept = std::make_shared<const Parts>(parts);
  return {.head = parts[0],
          .keys = std::as_bytes(std::span((*kept)[1])),
          .gradients = std::as_bytes(std::span((*kept)[2])),
          .owner = kept};
}

std::string TextOf(const Frame& frame) {
  const auto bytes = frame.as<char>();
  return {bytes.begin(), bytes.end()};
}

class RecordLogTest : public ::testing::Test {
 protected:
  std::unique_ptr<RecordLog> Open(uint64_t segment = 1, uint64_t record = 1) {
    auto log =
        RecordLog::Open({.dir = folder_.path(), .executor = 2}, kLogGeneration, segment, record);
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  static Parts PartsOf(uint64_t record) {
    return {"head " + std::to_string(record), std::string(record % 3, 'k'),
            std::string(record % 4 == 0 ? 0 : 20 + record, static_cast<char>('a' + record % 26))};
  }
  static void Append(RecordLog& log, uint64_t record) { log.Append(BytesOf(PartsOf(record))); }
  std::string Path(uint64_t segment) const {
    return folder_ / ("log-2-" + std::to_string(segment));
  }
  // Number of records read in order (1, 2, …), and the status at the end, or the damage.
  struct ReadBack {
    uint64_t records = 0;
    Status status;
    RecordLogReader::End end;
  };
  ReadBack ReadAll(uint64_t first_segment = 1, uint64_t first_record = 1) {
    ReadBack back;
    auto reader = RecordLogReader::Open({folder_.path(), 2, kLogGeneration, first_segment});
    back.status = reader.status();
    while (back.status.ok()) {
      auto record = reader->Next();
      back.status = record.status();
      if (!record.ok()) return back;
      if (!record->has_value()) break;
      const uint64_t number = first_record + back.records++;
      const auto& [head, keys, gradients] = **record;
      EXPECT_EQ((Parts{TextOf(head), TextOf(keys), TextOf(gradients)}), PartsOf(number));
    }
    if (!back.status.ok()) return back;
    auto end = reader->Finish();
    back.status = end.status();
    if (end.ok()) back.end = *std::move(end);
    return back;
  }

  const test::ScratchFolder folder_;
};

TEST_F(RecordLogTest, GivesBackWhatWasCommittedAndNothingElse) {
  {
    const auto log = Open();
    for (uint64_t r = 1; r <= 10; ++r) Append(*log, r);
    EXPECT_TRUE(log->behind());
    ASSERT_TRUE(log->Commit().ok());
    EXPECT_FALSE(log->behind());
    EXPECT_EQ(log->bytes(), std::filesystem::file_size(Path(1)));
    Append(*log, 11);  // This record is never committed.
  }
  const ReadBack back = ReadAll();
  EXPECT_TRUE(back.status.ok()) << back.status;
  EXPECT_EQ(back.records, 10u);
  EXPECT_EQ(back.end.next_segment, 2u);
  EXPECT_EQ(back.end.next_record, 11u);
  EXPECT_EQ(back.end.torn_bytes, 0u);
}

TEST_F(RecordLogTest, AnEndTornAtAnyByteIsCutOffAndTheLogGoesOn) {
  uint64_t whole = 0;
  {
    const auto log = Open();
    for (uint64_t r = 1; r <= 3; ++r) Append(*log, r);
    ASSERT_TRUE(log->Commit().ok());
    whole = log->bytes();
    Append(*log, 4);
    ASSERT_TRUE(log->Commit().ok());
  }
  const std::string text = ReadFile(Path(1));
  for (size_t size = 0; size <= text.size(); ++size) {
    WriteFile(Path(1), text.substr(0, size));
    const ReadBack back = ReadAll();
    ASSERT_TRUE(back.status.ok()) << size << ": " << back.status;
    if (size < whole) {
      EXPECT_LT(back.records, 4u) << size;
      continue;
    }
    ASSERT_EQ(back.records, size == text.size() ? 4u : 3u) << size;
    EXPECT_EQ(back.end.torn_bytes, size == text.size() ? 0u : size - whole);
    const auto log = Open(back.end.next_segment, back.end.next_record);
    for (uint64_t r = back.records + 1; r <= 6; ++r) Append(*log, r);
    ASSERT_TRUE(log->Commit().ok());
    EXPECT_EQ(ReadAll().records, 6u) << size;
    std::filesystem::remove(Path(2));
  }
}

// Space that the file system had allocated, without the data that should have followed.
TEST_F(RecordLogTest, AnEndOfZeroesIsTorn) {
  {
    const auto log = Open();
    for (uint64_t r = 1; r <= 4; ++r) Append(*log, r);
    ASSERT_TRUE(log->Commit().ok());
  }
  const std::string text = ReadFile(Path(1));
  WriteFile(Path(1), text + std::string(5000, '\0'));
  EXPECT_EQ(ReadAll().records, 4u);
  WriteFile(Path(1), text.substr(0, text.size() - 12) + std::string(12, '\0'));
  const ReadBack back = ReadAll();
  EXPECT_TRUE(back.status.ok()) << back.status;
  EXPECT_EQ(back.records, 3u);
}

TEST_F(RecordLogTest, AFlippedBitAnywhereIsFoundAndNamed) {
  std::vector<uint64_t> begins;  // Offsets of the records of the first segment.
  {
    const auto log = Open();
    for (uint64_t r = 1; r <= 4; ++r) {
      begins.push_back(log->bytes());
      Append(*log, r);
      ASSERT_TRUE(log->Commit().ok());
    }
    ASSERT_TRUE(log->BeginSegmentAtCut(1).ok());
    for (uint64_t r = 5; r <= 6; ++r) Append(*log, r);
    ASSERT_TRUE(log->Commit().ok());
  }
  for (const uint64_t segment : {1, 2}) {
    const std::string text = ReadFile(Path(segment));
    for (size_t at = 0; at < text.size(); ++at) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
      WriteFile(Path(segment), damaged);
      const ReadBack back = ReadAll();
      ASSERT_EQ(back.status.code(), StatusCode::kDataLoss) << segment << " " << at;
      EXPECT_THAT(ToText(back.status), HasSubstr(Path(segment)));
      uint64_t begin = 0;
      for (const uint64_t b : begins) begin = segment == 1 && at >= b ? b : begin;
      if (segment == 1) {
        EXPECT_THAT(ToText(back.status), HasSubstr(fmt::format("byte {}:", begin))) << at;
      }
    }
    WriteFile(Path(segment), text);
  }
  EXPECT_EQ(ReadAll().records, 6u);
}

TEST_F(RecordLogTest, AnEarlierSegmentThatEndsEarlyOrIsMissingIsDamage) {
  {
    const auto log = Open();
    for (uint64_t r = 1; r <= 4; ++r) {
      Append(*log, r);
      ASSERT_TRUE(log->Commit().ok());
      ASSERT_TRUE(log->BeginSegmentAtCut(1).ok());
    }
  }
  const std::string text = ReadFile(Path(2));
  for (size_t size = 0; size < text.size(); ++size) {
    WriteFile(Path(2), text.substr(0, size));
    const ReadBack back = ReadAll();
    ASSERT_EQ(back.status.code(), StatusCode::kDataLoss) << size;
    EXPECT_THAT(ToText(back.status), HasSubstr("log-2-")) << size;
  }
  std::filesystem::remove(Path(2));
  EXPECT_THAT(ToText(ReadAll().status), HasSubstr(Path(2) + " is missing"));
  std::filesystem::remove(Path(1));
  EXPECT_THAT(ToText(ReadAll().status), HasSubstr(Path(1) + " is missing"));
}

TEST_F(RecordLogTest, ACheckpointCutsWhatItHoldsAndKeepsTheRest) {
  const auto log = Open();
  for (uint64_t r = 1; r <= 9; ++r) {  // 1 to 5 | 6 to 9 |, with the cuts of steps 3 and 5.
    if (r == 6) {
      ASSERT_TRUE(log->BeginSegmentAtCut(3).ok());
    }
    Append(*log, r);
    ASSERT_TRUE(log->Commit().ok());
  }
  ASSERT_TRUE(log->BeginSegmentAtCut(5).ok());
  const uint64_t before = log->bytes();
  EXPECT_EQ(log->Cut(4), 1u) << "there is no such cut";
  EXPECT_EQ(log->bytes(), before);
  EXPECT_EQ(log->Cut(3), 2u);
  EXPECT_LT(log->bytes(), before);
  RemoveSegments(folder_.path(), 2, 2);
  EXPECT_FALSE(std::filesystem::exists(Path(1)));
  const ReadBack back = ReadAll(2, 6);
  EXPECT_TRUE(back.status.ok()) << back.status;
  EXPECT_EQ(back.records, 4u);
  EXPECT_EQ(log->Cut(5), 3u);
}

// As those in which the parts of a shard's copy are, which the checkpoint does not hold.
TEST_F(RecordLogTest, ACheckpointKeepsTheSegmentsThatAreNeededBesideIt) {
  const auto log = Open();
  for (const auto& [step, keep_from] : std::vector<std::pair<Step, uint64_t>>{{3, 1}, {5, 2}}) {
    Append(*log, static_cast<uint64_t>(step));
    ASSERT_TRUE(log->Commit().ok());
    ASSERT_TRUE(log->BeginSegmentAtCut(step, keep_from).ok());
  }
  EXPECT_EQ(log->Cut(3), 1u);
  EXPECT_EQ(log->Cut(5), 2u);
}

// The checkpoint in between was abandoned.
TEST_F(RecordLogTest, ALaterCheckpointCutsWhatAnEarlierOneWouldHaveCut) {
  const auto log = Open();
  for (const Step step : {3, 5, 7}) {
    Append(*log, 1);
    ASSERT_TRUE(log->Commit().ok());
    ASSERT_TRUE(log->BeginSegmentAtCut(step).ok());
  }
  EXPECT_EQ(log->Cut(5), 3u);
  EXPECT_EQ(log->Cut(3), 3u) << "it comes late";
  EXPECT_EQ(log->Cut(7), 4u);
}

TEST_F(RecordLogTest, AReturnToACheckpointThatWasNotCompletedDoesNotCount) {
  const auto log = Open();
  for (uint64_t r = 1; r <= 4; ++r) Append(*log, r);
  ASSERT_TRUE(log->Commit().ok());
  ASSERT_TRUE(log->Restart(Generation(4)).ok());
  EXPECT_EQ(log->first_segment(), 2u);
  const ReadBack back = ReadAll();
  EXPECT_TRUE(back.status.ok()) << back.status;
  EXPECT_EQ(back.records, 4u);
  EXPECT_EQ(back.end.next_segment, 2u);
  EXPECT_FALSE(std::filesystem::exists(Path(2)));
}

TEST_F(RecordLogTest, AFullDiskLosesNothingAndIsNamed) {
  const auto log = Open();
  for (uint64_t r = 1; r <= 4; ++r) Append(*log, r);
  ASSERT_TRUE(log->Commit().ok());
  const uint64_t size = log->bytes();
  // Room for one record and a part of the next.
  std::optional<test::FileSizeLimit> limit(size + 100);
  for (uint64_t r = 5; r <= 8; ++r) Append(*log, r);
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Status full = log->Commit();
    EXPECT_EQ(full.code(), StatusCode::kUnavailable);
    EXPECT_THAT(ToText(full), HasSubstr(Path(1) + " cannot take "));
    EXPECT_THAT(ToText(full), HasSubstr("File too large"));
    EXPECT_THAT(ToText(full), HasSubstr("ulimit -f"));
    EXPECT_EQ(std::filesystem::file_size(Path(1)), size) << "nothing half written stays";
    EXPECT_TRUE(log->behind());
    EXPECT_FALSE(log->broken());
  }
  limit.reset();
  ASSERT_TRUE(log->Commit().ok());
  EXPECT_EQ(ReadAll().records, 8u);
}

}  // namespace
}  // namespace dt::server
