#include "common/storage/rocksdb_store.h"

#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "test/support/scratch_folder.h"

namespace dt {
namespace {

using test::ScratchFolder;

std::unique_ptr<RocksStore> OpenAt(const std::string& folder) {
  RocksOptions options;
  options.folder = folder;
  auto store = RocksStore::Open(options);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

std::map<std::string, std::string> ContentOf(const RocksStore& store, std::string_view prefix) {
  std::map<std::string, std::string> out;
  EXPECT_TRUE(store
                  .ForEach(prefix,
                           [&](std::string_view key, std::string_view value) {
                             out.emplace(key, value);
                             return OkStatus();
                           })
                  .ok());
  return out;
}

TEST(RocksStore, KeepsWhatIsWrittenOverReopening) {
  const ScratchFolder temp;
  const std::string zero("a\0b", 3);
  {
    auto store = OpenAt(temp / "deep/er");
    ASSERT_TRUE(store->Put(zero, "1").ok());
    ASSERT_TRUE(store->Put("gone", "x").ok());
    ASSERT_TRUE(store->Delete("gone").ok());
  }
  auto store = OpenAt(temp / "deep/er");
  EXPECT_EQ(*store->Get(zero), "1");
  EXPECT_EQ(store->Get("gone").status().code(), StatusCode::kNotFound);
}

TEST(RocksStore, BatchesAreAppliedInOrder) {
  const ScratchFolder temp;
  auto store = OpenAt(temp / "s");
  RocksBatch batch;
  batch.Put("k", "1");
  batch.Delete("k");
  batch.Put("k", "2");
  batch.Put("l", "3");
  ASSERT_TRUE(store->WriteDurably(batch).ok());
  EXPECT_EQ(ContentOf(*store, ""), (std::map<std::string, std::string>{{"k", "2"}, {"l", "3"}}));
}

TEST(RocksStore, VisitsExactlyThePrefixAndStopsAtAnError) {
  const ScratchFolder temp;
  auto store = OpenAt(temp / "s");
  for (const char* key : {"a", "b", "b/1", "b/2", "b0", "c", "\xff\xff"}) {
    ASSERT_TRUE(store->Put(key, "v").ok());
  }
  EXPECT_EQ(ContentOf(*store, "b/").size(), 2u);
  EXPECT_EQ(ContentOf(*store, "").size(), 7u);
  EXPECT_EQ(ContentOf(*store, "\xff").size(), 1u);
  int visits = 0;
  const Status status = store->ForEach("", [&](std::string_view, std::string_view) {
    return ++visits == 2 ? Busy("enough") : OkStatus();
  });
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(visits, 2);
}

TEST(RocksStore, SecondOpenerIsToldSo) {
  const ScratchFolder temp;
  auto store = OpenAt(temp / "s");
  RocksOptions options;
  options.folder = temp / "s";
  const auto second = RocksStore::Open(options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(ToText(second.status()).find("another process"), std::string::npos) << second.status();
}

TEST(RocksStore, FolderThatCannotBeMadeIsNamed) {
  const ScratchFolder temp;
  std::ofstream(temp / "file") << "x";
  RocksOptions options;
  options.folder = temp / "file/below";
  const auto store = RocksStore::Open(options);
  ASSERT_FALSE(store.ok());
  EXPECT_NE(ToText(store.status()).find(options.folder), std::string::npos) << store.status();
}

TEST(RocksStore, DamageIsDataLossAndNamesTheFile) {
  const ScratchFolder temp;
  {
    auto store = OpenAt(temp / "s");
    ASSERT_TRUE(store->Put("k", "v").ok());
  }
  std::ofstream(temp / "s/CURRENT") << "garbage\n";
  RocksOptions options;
  options.folder = temp / "s";
  const auto store = RocksStore::Open(options);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().code(), StatusCode::kDataLoss) << store.status();
  EXPECT_NE(ToText(store.status()).find(temp.path()), std::string::npos);
}

}  // namespace
}  // namespace dt
