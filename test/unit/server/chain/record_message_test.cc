#include "server/chain/record_message.h"

#include <functional>

#include <gtest/gtest.h>

#include "test/support/push_maker.h"
#include "test/support/shard_sets.h"

namespace dt::server {
namespace {

constexpr uint32_t kMessageShards = 4;

std::vector<TableSpec> MessageTables() {
  TableSpec half = test::SimpleTable("b", 1);
  half.wire = FloatFormat::kFp16;  // Its gradients need padding.
  return {test::SimpleTable("a", 3), half};
}
const std::vector<TableSpec> kMessageTables = MessageTables();

struct Made {
  ShardId shard;
  RecordBytes bytes;
};

// What some shards record of a step of two slices, and of its end.
std::vector<Made> SomeRecords() {
  struct : RecordSink {
    void OnRecord(ShardId shard, const Record& record) override {
      made.push_back({shard, Encode(shard, record)});
    }
    std::vector<Made> made;
  } sink;
  ShardSet set(test::SetOf(kMessageTables, 2, kMessageShards, test::AllShards(kMessageShards)));
  set.RecordTo(&sink);
  for (SliceIndex slice = 0; slice < 2; ++slice) {
    test::RowMap rows;
    for (Key key = 0; key < 9; ++key) rows[{0, key}] = {1.0f + static_cast<float>(slice), 2, 3};
    for (Key key = slice; key < 6; ++key) rows[{1, key}] = {static_cast<float>(key)};
    const test::Grouping grouping(kMessageTables, kMessageShards, test::AllShards(kMessageShards),
                                  rows);
    PushRequest push = grouping.Push(0, test::kFirstStamp, 0);
    push.gradients = test::EncodedRows(kMessageTables, grouping.out_groups, grouping.floats);
    push.slice = slice;
    push.slices = 2;
    EXPECT_TRUE(set.Push(std::move(push)).ok());
  }
  set.Advance(1);
  return std::move(sink.made);
}

RecordsRequest MessageOf(const std::vector<Made>& records) {
  RecordMessageWriter writer;
  uint64_t since = 1;
  for (const Made& each : records) writer.Add(MapVersion(since++), each.bytes);
  return writer.Take(FramePool::Private());
}

bool Equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::ranges::equal(a, b);
}

TEST(RecordMessage, RecordsSurviveIt) {
  const std::vector<Made> records = SomeRecords();
  ASSERT_EQ(records.size(), 3 * kMessageShards);
  const Result<std::vector<LinkRecord>> read =
      RecordsIn(MessageOf(records), kMessageTables, kMessageShards);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    const LinkRecord& out = (*read)[i];
    EXPECT_EQ(out.since, MapVersion(i + 1));
    EXPECT_EQ(out.record.shard, records[i].shard);
    const RecordBytes again = Encode(out.record.shard, out.record.record);
    EXPECT_EQ(again.head, records[i].bytes.head);
    EXPECT_TRUE(Equal(again.keys, records[i].bytes.keys));
    EXPECT_TRUE(Equal(again.gradients, records[i].bytes.gradients));
  }
}

TEST(RecordMessage, TheWriterIsEmptyAfterwards) {
  const std::vector<Made> records = SomeRecords();
  RecordMessageWriter writer;
  EXPECT_TRUE(writer.empty());
  writer.Add(MapVersion(1), records[0].bytes);
  EXPECT_FALSE(writer.empty());
  EXPECT_EQ(writer.Take(FramePool::Private()).parts.size(), 1u);
  EXPECT_TRUE(writer.empty());
  const RecordsRequest none = writer.Take(FramePool::Private());
  EXPECT_TRUE(RecordsIn(none, kMessageTables, kMessageShards)->empty());
}

TEST(RecordMessage, IsFullByItsBytesOrByItsRecords) {
  const std::vector<Made> records = SomeRecords();
  RecordMessageWriter many;
  for (size_t i = 0; i < RecordMessageWriter::kRecordsMax; ++i) {
    EXPECT_FALSE(many.full());
    many.Add(MapVersion(1), records[0].bytes);
  }
  EXPECT_TRUE(many.full());
  many.Take(FramePool::Private());
  EXPECT_FALSE(many.full());
  const std::vector<std::byte> large(RecordMessageWriter::kBytesMax);
  const RecordBytes one{.head = "", .keys = {}, .gradients = large, .owner = nullptr};
  RecordMessageWriter long_one;
  long_one.Add(MapVersion(1), one);
  EXPECT_TRUE(long_one.full());
}

TEST(RecordMessage, SizesThatDoNotFitItsBytesAreRefused) {
  struct Lie {
    std::string name;
    std::function<void(RecordsRequest&)> tell;
  };
  const auto shorter = [](Frame& frame) {
    frame = Frame::CopyOf(frame.bytes().first(frame.size() - 8));
  };
  const auto longer = [](Frame& frame) {
    Frame more = Frame::Of(frame.size() + 8);
    std::ranges::fill(more.bytes(), std::byte{0});
    std::ranges::copy(frame.bytes(), more.bytes().begin());
    frame = more;
  };
  std::vector<Lie> lies = {
      {"a record less", [](RecordsRequest& m) { m.parts.pop_back(); }},
      {"a record more", [](RecordsRequest& m) { m.parts.push_back(m.parts.back()); }},
      {"an empty record more", [](RecordsRequest& m) { m.parts.emplace_back(); }},
      {"no heads", [](RecordsRequest& m) { m.heads = {}; }},
      {"no keys", [](RecordsRequest& m) { m.keys = {}; }},
      {"no gradients", [](RecordsRequest& m) { m.gradients = {}; }},
      {"heads of 4 GiB", [](RecordsRequest& m) { m.parts[0].head_bytes = ~0u; }},
      {"keys of 4 GiB", [](RecordsRequest& m) { m.parts[0].key_bytes = ~0u; }},
      {"gradients of 4 GiB", [](RecordsRequest& m) { m.parts[0].gradient_bytes = ~0u; }},
      {"no head", [](RecordsRequest& m) { m.parts[0].head_bytes = 0; }},
      {"a head that is cut", [](RecordsRequest& m) { m.parts[0].head_bytes -= 8; }},
      {"a key to another record", [](RecordsRequest& m) { m.parts[0].key_bytes += 8; }},
      {"half a key", [](RecordsRequest& m) { m.parts[0].key_bytes -= 4; }},
  };
  for (Frame RecordsRequest::*frame :
       {&RecordsRequest::heads, &RecordsRequest::keys, &RecordsRequest::gradients}) {
    lies.push_back({"shorter", [=](RecordsRequest& m) { shorter(m.*frame); }});
    lies.push_back({"longer", [=](RecordsRequest& m) { longer(m.*frame); }});
  }
  const std::vector<Made> records = SomeRecords();
  for (const Lie& lie : lies) {
    RecordsRequest message = MessageOf(records);
    lie.tell(message);
    const auto read = RecordsIn(message, kMessageTables, kMessageShards);
    EXPECT_EQ(read.status().code(), StatusCode::kOutOfRange) << lie.name << read.status();
  }
}

TEST(RecordMessage, RecordsOfAnotherJobAreRefused) {
  const RecordsRequest message = MessageOf(SomeRecords());
  const std::span<const TableSpec> tables(kMessageTables);
  EXPECT_FALSE(RecordsIn(message, tables.first(1), kMessageShards).ok());
  EXPECT_FALSE(RecordsIn(message, tables, kMessageShards / 2).ok());
}

}  // namespace
}  // namespace dt::server
