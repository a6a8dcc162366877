// Goal: a cache is used only while it is valid; its content does not depend on the number of
// threads.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/full_disk.h"
#include "test/unit/worker/data/data_files.h"

namespace dt::worker {
namespace {

std::string RaggedText(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) {
    text += std::to_string(i % 2);
    for (int j = 0; j < i % 5; ++j)
      text += " " + std::to_string(i * 31 + j) + ":0." + std::to_string(j);
    text += "\n";
  }
  return text;
}

struct Opened {
  bool from_cache;
  uint64_t fingerprint;
  Batch rows;
};

Opened MustOpen(const DataConfig& config, uint32_t threads = 2, Split split = Split::kTrain) {
  TaskPool pool(threads);
  const auto data = Dataset::Open(config, split, pool);
  EXPECT_TRUE(data.ok()) << data.status();
  if (!data.ok()) return {};
  return {(*data)->open_stats().from_cache, (*data)->fingerprint(), AllOf(**data)};
}

void ExpectEqual(const Batch& a, const Batch& b) {
  ASSERT_EQ(a.samples, b.samples);
  ASSERT_EQ(a.columns.size(), b.columns.size());
  for (size_t c = 0; c < a.columns.size(); ++c) {
    EXPECT_EQ(a.columns[c].floats, b.columns[c].floats);
    EXPECT_EQ(a.columns[c].keys, b.columns[c].keys);
    EXPECT_EQ(a.columns[c].offsets, b.columns[c].offsets);
    EXPECT_EQ(a.columns[c].weights, b.columns[c].weights);
  }
}

std::string CacheFileIn(const TempDir& dir) {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path("cache"))) {
    if (entry.path().extension() == ".dtcache") found = entry.path().string();
  }
  return found;
}

TEST(Cache, IsUsedUntilASourceChanges) {
  const TempDir dir;
  const DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, "1 1:1\n0 2:1\n");
  const Opened first = MustOpen(config);
  EXPECT_FALSE(first.from_cache);
  const Opened second = MustOpen(config);
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(second.fingerprint, first.fingerprint);
  ExpectEqual(second.rows, first.rows);

  // The file has the same size and a later time.
  dir.Write("train.txt", "1 1:1\n0 3:1\n");
  const timespec times[2] = {{0, UTIME_NOW}, {2000000000, 5}};
  ASSERT_EQ(utimensat(AT_FDCWD, config.train[0].c_str(), times, 0), 0);
  const Opened third = MustOpen(config);
  EXPECT_FALSE(third.from_cache);
  EXPECT_NE(third.fingerprint, first.fingerprint);
  EXPECT_THAT(third.rows.columns[1].keys, testing::ElementsAre(1, 3));
}

TEST(Cache, OptionsHaveCachesOfTheirOwn) {
  const TempDir dir;
  DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, "1 1:1\n0 2:1\n");
  MustOpen(config);
  config.on_error = OnError::kSkip;
  EXPECT_FALSE(MustOpen(config).from_cache);
  EXPECT_TRUE(MustOpen(config).from_cache);
  config.on_error = OnError::kStop;
  EXPECT_TRUE(MustOpen(config).from_cache);
}

TEST(Cache, EveryDamagedByteIsFoundAndTheCacheRebuilt) {
  const TempDir dir;
  const DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, RaggedText(40));
  const Opened whole = MustOpen(config);
  const std::string path = CacheFileIn(dir);
  const uint64_t size = std::filesystem::file_size(path);
  // Damages the fields of the header, then the bytes after its padding.
  for (uint64_t at = 0; at < size; at = at < 43 ? at + 5 : std::max<uint64_t>(4096, at + 61)) {
    {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      const char old = static_cast<char>(file.get());
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(old ^ 0x10));
    }
    const Opened again = MustOpen(config, 1);
    ASSERT_FALSE(again.from_cache) << "byte " << at << " of " << size;
    ASSERT_EQ(again.fingerprint, whole.fingerprint);
  }
  for (const uint64_t cut : {uint64_t{0}, uint64_t{10}, uint64_t{4096}, size - 1}) {
    std::filesystem::resize_file(path, cut);
    ASSERT_FALSE(MustOpen(config, 1).from_cache) << cut;
  }
  EXPECT_TRUE(MustOpen(config).from_cache);
}

TEST(Cache, ContentDoesNotDependOnThreads) {
  const TempDir dir;
  DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, RaggedText(300000));
  config.cache_dir = dir.path("one");
  const Opened one = MustOpen(config, 1);
  config.cache_dir = dir.path("many");
  const Opened many = MustOpen(config, 4);
  EXPECT_EQ(one.fingerprint, many.fingerprint);
  EXPECT_EQ(one.rows.samples, 300000u);
  ExpectEqual(one.rows, many.rows);
}

// The shape changes long after the first block, so the rows already written are written again.
TEST(Cache, LateRaggedAndWeightedRowsWidenTheWholeSplit) {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 300000; ++i) text += "1 7:1 8:1\n";
  const DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, text + "0 1:1\n0 5:0.5 6:1\n");
  const Opened opened = MustOpen(config);
  const BatchColumn& ids = opened.rows.columns[1];
  ASSERT_EQ(ids.offsets.size(), 300003u);
  EXPECT_EQ(ids.offsets[300000], 600000u);
  EXPECT_EQ(ids.offsets[300002], 600003u);
  EXPECT_EQ(ids.weights[0], 1);
  EXPECT_EQ(ids.weights[600001], 0.5);
}

TEST(Cache, OtherSplitsHaveTheShapeOfTheTrainingData) {
  const TempDir dir;
  DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, "1 1:1 2:1\n0 2:1\n");
  config.valid = {dir.Write("valid.txt", "1 1:1 2:1\n")};
  config.test = {dir.Write("test.txt", "1 1:1 2:0.5\n")};
  TaskPool pool(2);
  const auto valid = Dataset::Open(config, Split::kValid, pool);
  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_TRUE((*valid)->columns()[1].is_ragged());
  EXPECT_EQ(OpenError(dir, config, Split::kTest),
            "test.txt:1: column \"features\": a value other than 1 found, 1, as in the training "
            "data, expected");
  config.test.clear();
  const auto none = Dataset::Open(config, Split::kTest, pool);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ((*none)->rows(), 0u);
  EXPECT_EQ((*none)->columns(), (*valid)->columns());
  config.train = {dir.path("gone.txt")};
  EXPECT_TRUE(Dataset::Open(config, Split::kValid, pool).ok());
}

TEST(Cache, OpenedBySeveralAtOnceIsBuiltOnce) {
  const TempDir dir;
  const DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, RaggedText(50000));
  std::vector<Opened> opened(4);
  std::vector<std::thread> threads;
  for (Opened& one : opened) threads.emplace_back([&] { one = MustOpen(config, 1); });
  for (std::thread& thread : threads) thread.join();
  int built = 0;
  for (const Opened& one : opened) {
    built += one.from_cache ? 0 : 1;
    EXPECT_EQ(one.fingerprint, opened[0].fingerprint);
  }
  EXPECT_EQ(built, 1);
}

TEST(Cache, DirectoriesThatCannotBeWrittenAreNamed) {
  const TempDir dir;
  DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, "1 1:1\n");
  config.cache_dir = dir.Write("file", "") + "/cache";
  EXPECT_THAT(
      OpenError(dir, config),
      testing::AllOf(testing::StartsWith("file/cache/train-"),
                     testing::HasSubstr(": the data cache cannot be made: Not a directory")));
}

TEST(Cache, DisksThatTakeNoMoreAreNamedWithWhatIsNeeded) {
  const TempDir dir;
  const DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, "1 1:1\n");
  const auto error = [&] {
    const test::FileSizeLimit full(4096);
    return OpenError(dir, config);
  };
  EXPECT_THAT(error(), testing::AllOf(testing::HasSubstr("writing the data cache failed after"),
                                      testing::HasSubstr("File too large"),
                                      testing::HasSubstr("are free in cache")));
}

TEST(Cache, ADraftIsNotWrittenThroughALink) {
  const TempDir dir;
  const DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, "1 1:1\n");
  MustOpen(config);
  const std::string path = CacheFileIn(dir);
  std::filesystem::remove(path);
  std::filesystem::create_symlink(dir.Write("victim", "intact"), path + ".new");
  MustOpen(config);
  EXPECT_EQ(dir.Read("victim"), "intact");
}

TEST(Binary, IsACacheFileUnderAnyName) {
  const TempDir dir;
  DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, RaggedText(30));
  const Opened source = MustOpen(config);
  std::filesystem::copy_file(CacheFileIn(dir), dir.path("data.bin"));
  config.format = DataFormat::kBinary;
  config.train = {dir.path("data.bin")};
  const Opened binary = MustOpen(config);
  EXPECT_EQ(binary.fingerprint, source.fingerprint);
  ExpectEqual(binary.rows, source.rows);
  config.train = {dir.Write("not.bin", std::string(5000, 'x'))};
  EXPECT_EQ(OpenError(dir, config), "not.bin: it does not start as a data cache");
}

}  // namespace
}  // namespace dt::worker
