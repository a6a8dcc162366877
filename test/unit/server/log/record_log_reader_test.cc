// Goal: the reader believes nothing that a checksum alone cannot say: whose segment it is, of which
// generation, which record comes next. Method: logs are made byte by byte, every checksum right, so
// that only the fact under test is wrong. What a real log leaves behind is in record_log_test.cc.
#include "server/log/record_log_reader.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/log/record_log_format.h"
#include "test/support/scratch_folder.h"

namespace dt::server {
namespace {

using record_log::RecordHead;
using record_log::SegmentHead;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr uint32_t kExecutor = 2;
const Generation kGeneration(5);

template <class T>
std::string RawBytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// A head with its digest, after `change` has been made to it.
std::string HeadOf(uint64_t segment, uint64_t first_record,
                   const std::function<void(SegmentHead&)>& change = nullptr) {
  SegmentHead head{.executor = kExecutor,
                   .generation = kGeneration.value(),
                   .segment = segment,
                   .first_record = first_record};
  if (change) change(head);
  head.digest = record_log::DigestOfHead(head);
  return RawBytes(head);
}

// A record with this head, and without keys and gradients.
std::string RecordOf(uint64_t number, const std::string& text,
                     const std::function<void(RecordHead&)>& change = nullptr) {
  const uint64_t nothing = HashBytes({});
  RecordHead head{.number = number,
                  .bytes = {text.size(), 0, 0},
                  .digests = {HashBytes(std::as_bytes(std::span(text))), nothing, nothing}};
  if (change) change(head);
  head.digest = record_log::DigestOfHead(head);
  return RawBytes(head) + text + RawBytes(record_log::EndMarkOf(number));
}

class RecordLogReaderTest : public ::testing::Test {
 protected:
  std::string Path(uint64_t segment, uint32_t executor = kExecutor) const {
    return record_log::SegmentPath(folder_.path(), executor, segment);
  }
  void Write(const std::string& path, const std::string& bytes) const {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  std::string Read(const std::string& path) const {
    std::stringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    return bytes.str();
  }
  bool Exists(uint64_t segment) const { return std::filesystem::exists(Path(segment)); }
  Result<RecordLogReader> Open(uint64_t first_segment = 1, bool sync = false) const {
    return RecordLogReader::Open({folder_.path(), kExecutor, kGeneration, first_segment, sync});
  }

  struct ReadBack {
    std::vector<std::string> texts;
    Status status;
    RecordLogReader::End end;
  };
  ReadBack ReadAll(uint64_t first_segment = 1, bool sync = false) const {
    ReadBack back;
    auto reader = Open(first_segment, sync);
    back.status = reader.status();
    while (back.status.ok()) {
      auto record = reader->Next();
      back.status = record.status();
      if (!record.ok()) return back;
      if (!record->has_value()) break;
      const auto bytes = std::as_const((*record)->head).as<char>();
      back.texts.emplace_back(bytes.begin(), bytes.end());
    }
    if (!back.status.ok()) return back;
    auto end = reader->Finish();
    back.status = end.status();
    if (end.ok()) back.end = *std::move(end);
    return back;
  }
  // What is wrong with a log of one good record and this segment behind it.
  Status StatusWith(const std::string& second_segment) const {
    Write(Path(1), HeadOf(1, 1) + RecordOf(1, "a"));
    Write(Path(2), second_segment);
    const ReadBack back = ReadAll();
    EXPECT_EQ(Read(Path(2)), second_segment) << "what is damaged stays as it is";
    return back.status;
  }
  void ExpectDamage(const std::string& second_segment, uint64_t at, const char* what) const {
    const Status status = StatusWith(second_segment);
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << what;
    EXPECT_THAT(ToText(status), HasSubstr(fmt::format("{}, byte {}: {}", Path(2), at, what)));
  }

  const test::ScratchFolder folder_;
};

TEST_F(RecordLogReaderTest, RecordsOfAllSegmentsComeInOrderAndTheEndTellsWhereTheLogGoesOn) {
  const std::string texts[] = {HeadOf(1, 1) + RecordOf(1, "a") + RecordOf(2, "b"), HeadOf(2, 3),
                               HeadOf(3, 3) + RecordOf(3, "c")};
  for (size_t s = 0; s < 3; ++s) Write(Path(s + 1), texts[s]);
  const ReadBack back = ReadAll();
  ASSERT_TRUE(back.status.ok()) << back.status;
  EXPECT_THAT(back.texts, ElementsAre("a", "b", "c"));
  EXPECT_EQ(back.end.next_segment, 4u);
  EXPECT_EQ(back.end.next_record, 4u);
  EXPECT_EQ(back.end.records, 3u);
  EXPECT_EQ(back.end.torn_bytes, 0u);
  EXPECT_EQ(back.end.bytes, texts[0].size() + texts[1].size() + texts[2].size());
  ASSERT_EQ(back.end.segments.size(), 3u);
  for (size_t s = 0; s < 3; ++s) {
    EXPECT_EQ(back.end.segments[s].number, s + 1);
    EXPECT_EQ(back.end.segments[s].bytes, texts[s].size()) << s;
  }
}

TEST_F(RecordLogReaderTest, ProgressCountsEveryByteOfEverySegment) {
  const std::string first = HeadOf(1, 1) + RecordOf(1, "a"), second = RecordOf(2, "bb");
  Write(Path(1), first);
  Write(Path(2), HeadOf(2, 2) + second);
  auto reader = Open();
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->bytes_total(), first.size() + sizeof(SegmentHead) + second.size());
  EXPECT_EQ(reader->bytes_read(), 0u);
  ASSERT_TRUE(reader->Next()->has_value());
  EXPECT_EQ(reader->bytes_read(), first.size());
  EXPECT_EQ(reader->Where(), fmt::format("{}, byte {}", Path(1), sizeof(SegmentHead)));
  ASSERT_TRUE(reader->Next()->has_value());
  EXPECT_EQ(reader->bytes_read(), reader->bytes_total());
  EXPECT_EQ(reader->Where(), fmt::format("{}, byte {}", Path(2), sizeof(SegmentHead)));
  EXPECT_FALSE(reader->Next()->has_value());
  EXPECT_FALSE(reader->Next()->has_value()) << "the end stays the end";
}

// Names that are like a segment's, and logs of executors whose number begins alike.
TEST_F(RecordLogReaderTest, OnlySegmentsOfTheExecutorAreRead) {
  Write(Path(1), HeadOf(1, 1) + RecordOf(1, "mine"));
  for (const char* other :
       {"log-2-1x", "log-2-x", "log-2-", "log-2-2.tmp", "log-20-2", "log-1-1"}) {
    Write(folder_ / other, "not a segment");
  }
  const ReadBack back = ReadAll();
  ASSERT_TRUE(back.status.ok()) << back.status;
  EXPECT_THAT(back.texts, ElementsAre("mine"));
  EXPECT_EQ(Read(folder_ / "log-20-2"), "not a segment");
}

// The segment's number is a number: 10 comes behind 9.
TEST_F(RecordLogReaderTest, SegmentsAreInTheOrderOfTheirNumbers) {
  for (uint64_t s = 8; s <= 11; ++s) {
    Write(Path(s), HeadOf(s, s) + RecordOf(s, std::to_string(s)));
  }
  Write(Path(7), "of before the checkpoint");
  const ReadBack back = ReadAll(8);
  ASSERT_TRUE(back.status.ok()) << back.status;
  EXPECT_THAT(back.texts, ElementsAre("8", "9", "10", "11"));
  EXPECT_EQ(Read(Path(7)), "of before the checkpoint");
}

TEST_F(RecordLogReaderTest, AMissingSegmentIsNamedBeforeAnyRecordIsRead) {
  EXPECT_THAT(ToText(Open(4).status()), HasSubstr(Path(4) + " is missing")) << "an empty folder";
  Write(Path(4), HeadOf(4, 1) + RecordOf(1, "a"));
  Write(Path(6), HeadOf(6, 2) + RecordOf(2, "b"));
  EXPECT_THAT(ToText(Open(4).status()), HasSubstr(Path(5) + " is missing"));
  EXPECT_EQ(Open(4).status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(ToText(Open(3).status()), HasSubstr(Path(3) + " is missing"));
  EXPECT_TRUE(Open(6).ok());
}

TEST_F(RecordLogReaderTest, ASegmentThatBelongsElsewhereIsDamage) {
  const std::string record = RecordOf(2, "b");
  const auto with = [&](const std::function<void(SegmentHead&)>& change) {
    return HeadOf(2, 2, change) + record;
  };
  EXPECT_TRUE(StatusWith(with(nullptr)).ok());
  ExpectDamage(with([](SegmentHead& h) { h.executor = 20; }), 0, "the file has another one's head");
  ExpectDamage(with([](SegmentHead& h) { h.segment = 3; }), 0, "the file has another one's head");
  ExpectDamage(with([](SegmentHead& h) { h.version = 1; }), 0, "it is of version 1");
  ExpectDamage(with([](SegmentHead& h) { h.magic += 1; }), 0, "the file's head is not as it was");
  ExpectDamage(with([](SegmentHead& h) { h.generation = 4; }), 0,
               "it is of generation 4 of the job");
  ExpectDamage(with([](SegmentHead& h) { h.first_record = 3; }), 0,
               "it begins with record 3, the one before ended with 1");
}

TEST_F(RecordLogReaderTest, ARecordThatIsNotTheNextOneIsDamage) {
  const std::string head = HeadOf(2, 2), good = RecordOf(2, "b");
  const uint64_t second = head.size() + good.size();
  ExpectDamage(head + good + RecordOf(4, "d"), second, "it is record 4 where 3 belongs");
  ExpectDamage(head + good + good, second, "it is record 2 where 3 belongs");
  ExpectDamage(head + RecordOf(1, "a"), head.size(), "it is record 1 where 2 belongs");
}

TEST_F(RecordLogReaderTest, SizesThatNoRecordHasAreDamage) {
  const std::string head = HeadOf(2, 2);
  // They are refused before the memory for them is asked for.
  for (const size_t part : {0, 1, 2}) {
    const auto too_long = [&](RecordHead& h) { h.bytes[part] = (uint64_t{1} << 30) + 1; };
    ExpectDamage(head + RecordOf(2, "b", too_long), head.size(),
                 "the record has a part of more than 1 GiB");
  }
}

TEST_F(RecordLogReaderTest, ARecordWithoutAByteIsARecord) {
  Write(Path(1), HeadOf(1, 1) + RecordOf(1, "") + RecordOf(2, "") + RecordOf(3, "c"));
  const ReadBack back = ReadAll();
  ASSERT_TRUE(back.status.ok()) << back.status;
  EXPECT_THAT(back.texts, ElementsAre("", "", "c"));
}

// Only the last segment may be torn: behind the others records were acknowledged.
TEST_F(RecordLogReaderTest, ATailOfZeroesIsTornInTheLastSegmentAndDamageInOthers) {
  const std::string first = HeadOf(1, 1) + RecordOf(1, "a");
  const std::string second = HeadOf(2, 2) + RecordOf(2, "b");
  for (const size_t zeroes : {1, 7, 8, 63, 64, 4096}) {
    Write(Path(1), first);
    Write(Path(2), second + std::string(zeroes, '\0'));
    const ReadBack back = ReadAll(1, true);
    ASSERT_TRUE(back.status.ok()) << zeroes << ": " << back.status;
    EXPECT_THAT(back.texts, ElementsAre("a", "b"));
    EXPECT_EQ(back.end.torn_bytes, zeroes);
    EXPECT_EQ(Read(Path(2)), second) << "what is torn is cut off";

    Write(Path(1), first + std::string(zeroes, '\0'));
    const ReadBack damaged = ReadAll();
    EXPECT_EQ(damaged.status.code(), StatusCode::kDataLoss) << zeroes;
    EXPECT_THAT(ToText(damaged.status),
                HasSubstr(fmt::format("{}, byte {}: the file ends within a record", Path(1),
                                      first.size())));
    EXPECT_EQ(Read(Path(1)).size(), first.size() + zeroes) << "nothing is cut off";
  }
}

// Bytes behind the last record that are not zero were written there by somebody.
TEST_F(RecordLogReaderTest, ATailThatIsNotZeroIsDamageOnceAHeadFits) {
  const std::string second = HeadOf(2, 2) + RecordOf(2, "b");
  for (const size_t more : {1, 63}) {
    EXPECT_TRUE(StatusWith(second).ok());
    Write(Path(2), second + std::string(more, 'x'));
    EXPECT_TRUE(ReadAll().status.ok()) << "too short for a record: it was cut off within its head";
  }
  ExpectDamage(second + std::string(64, 'x'), second.size(),
               "the record's head is not as it was written");
}

// A segment that had only just begun when the process ended.
TEST_F(RecordLogReaderTest, ALastSegmentWithoutAWholeHeadIsRemovedAndItsNumberUsedAgain) {
  const std::string head = HeadOf(2, 2);
  for (size_t size = 0; size < head.size(); ++size) {
    Write(Path(1), HeadOf(1, 1) + RecordOf(1, "a"));
    Write(Path(2), head.substr(0, size));
    const ReadBack back = ReadAll();
    ASSERT_TRUE(back.status.ok()) << size << ": " << back.status;
    EXPECT_EQ(back.end.next_segment, 2u) << size;
    EXPECT_EQ(back.end.next_record, 2u) << size;
    EXPECT_EQ(back.end.torn_bytes, size);
    EXPECT_FALSE(Exists(2)) << size;
  }
  Write(Path(2), std::string(head.size(), '\0'));
  EXPECT_EQ(ReadAll().end.torn_bytes, head.size()) << "a head of zeroes never reached the disk";
}

TEST_F(RecordLogReaderTest, TheOnlySegmentMayBeEmpty) {
  Write(Path(3), "");
  const ReadBack back = ReadAll(3);
  ASSERT_TRUE(back.status.ok()) << back.status;
  EXPECT_EQ(back.end.next_segment, 3u);
  EXPECT_EQ(back.end.next_record, 1u);
  EXPECT_TRUE(back.end.segments.empty());
  EXPECT_FALSE(Exists(3));
}

// What was begun by a return to a checkpoint that did not complete goes, with all behind it.
TEST_F(RecordLogReaderTest, SegmentsOfALaterGenerationEndTheLogAndAreRemoved) {
  Write(Path(1), HeadOf(1, 1) + RecordOf(1, "a"));
  for (const uint64_t s : {2, 3}) {
    Write(Path(s), HeadOf(s, 1, [](SegmentHead& h) { h.generation = 6; }) + RecordOf(1, "x"));
  }
  const ReadBack back = ReadAll();
  ASSERT_TRUE(back.status.ok()) << back.status;
  EXPECT_THAT(back.texts, ElementsAre("a"));
  EXPECT_EQ(back.end.next_segment, 2u);
  EXPECT_EQ(back.end.next_record, 2u);
  EXPECT_TRUE(Exists(1));
  EXPECT_FALSE(Exists(2));
  EXPECT_FALSE(Exists(3));
}

TEST_F(RecordLogReaderTest, OnlyTheSegmentsBeforeAreRemoved) {
  for (uint64_t s = 8; s <= 11; ++s) Write(Path(s), "");
  Write(Path(8, 20), "");
  RemoveSegments(folder_.path(), kExecutor, 10);
  EXPECT_FALSE(Exists(8));
  EXPECT_FALSE(Exists(9));
  EXPECT_TRUE(Exists(10));
  EXPECT_TRUE(Exists(11));
  EXPECT_TRUE(std::filesystem::exists(Path(8, 20))) << "another executor's";
  Write(folder_ / "catalog", "");
  RemoveAllSegments(folder_.path());
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    left.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(left, ElementsAre(EndsWith("catalog")));
}

}  // namespace
}  // namespace dt::server
