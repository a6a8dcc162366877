#include "worker/data/cache_file.h"

#include <gtest/gtest.h>

#include "test/unit/worker/data/data_files.h"
#include "worker/data/block.h"

namespace dt::worker {
namespace {

CacheMeta SomeMeta() {
  CacheMeta meta;
  meta.options = "options\n";
  meta.sources = "a 1 2\nb 3 4\n";
  meta.columns = {Column("label", ColumnType::kFloat, ColumnRole::kLabel),
                  Column("ids", ColumnType::kIds)};
  meta.columns[1].length = 0;
  meta.columns[1].max_len = 50;
  meta.columns[1].fill = 0.5f;
  meta.columns[1].weighted = true;
  meta.columns[1].from = "seen", meta.columns[1].weights = "shares";
  meta.columns[1].hash = 1 << 20;
  meta.columns[0].clip = {-1, 2.5f}, meta.columns[0].edges = {7};
  meta.columns[0].standardise = true;
  meta.columns[0].mean = 3, meta.columns[0].deviation = 0.25f;
  meta.columns[0].quantiles = 9;
  meta.rows = 7;
  meta.heap_words = 9;
  meta.rows_skipped = 2;
  meta.first_skipped = "x:1: bad";
  meta.chunk_hashes = {1, 2, 3};
  meta.fingerprint = 42;
  return meta;
}

TEST(CacheMeta, ComesBackAsItWas) {
  const CacheMeta meta = SomeMeta();
  const Result<CacheMeta> back = DecodeMeta(EncodeMeta(meta));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(EncodeMeta(*back), EncodeMeta(meta));
  EXPECT_EQ(back->columns, meta.columns);
  EXPECT_EQ(back->chunk_hashes, meta.chunk_hashes);
  EXPECT_EQ(back->first_skipped, meta.first_skipped);
}

TEST(CacheMeta, EveryCutIsRefused) {
  const std::string bytes = EncodeMeta(SomeMeta());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeMeta(std::string_view(bytes).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeMeta(bytes + "x").ok());
}

TEST(CacheMeta, HostileSizesAllocateNothing) {
  const std::string bytes = EncodeMeta(SomeMeta());
  for (size_t at = 0; at + 8 <= bytes.size(); ++at) {
    std::string hostile = bytes;
    hostile.replace(at, 8, "\xff\xff\xff\xff\xff\xff\xff\xff");
    if (const Result<CacheMeta> meta = DecodeMeta(hostile); meta.ok()) {
      EXPECT_LE(RowLayout(meta->columns).record_bytes(), 1u << 30);
    }
  }
}

// A file with correct hashes whose rows point outside it. Only its author could make one, but
// Gather must not follow the pointers.
TEST(CacheFile, PlacesOutsideTheHeapAreRefused) {
  const TempDir dir;
  TaskPool pool(1);
  CacheMeta meta;
  meta.columns = {Column("ids", ColumnType::kIds)};
  meta.columns[0].length = 0;
  const RowLayout layout(meta.columns);
  for (const uint64_t place : {uint64_t{0}, uint64_t{1}, uint64_t{2}, ~uint64_t{0}}) {
    Block block;
    block.Clear(layout, 1);
    block.Start();
    const Key keys[] = {5, 6};
    ASSERT_TRUE(block.PutKeys(0, keys, {}));
    block.Keep();
    block.MoveHeap(place);
    const auto writer = CacheWriter::Create(dir.path("x"));
    ASSERT_TRUE(writer.ok()) << writer.status();
    meta.rows = 1;
    ASSERT_TRUE((*writer)->Append(block.records(), block.heap()).ok());
    ASSERT_TRUE((*writer)->Finish(meta, pool).ok());
    EXPECT_EQ(CacheFile::Open(dir.path("x"), pool).ok(), place == 0) << place;
  }
}

TEST(CacheFile, AnUnfinishedWriterLeavesNothing) {
  const TempDir dir;
  {
    const auto writer = CacheWriter::Create(dir.path("deep/er/x"));
    ASSERT_TRUE(writer.ok()) << writer.status();
    EXPECT_TRUE(std::filesystem::exists(dir.path("deep/er/x")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path("deep/er")));
}

}  // namespace
}  // namespace dt::worker
