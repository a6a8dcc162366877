// Measures rows on their way to disk and back, against plain RocksDB.
#include <algorithm>
#include <filesystem>
#include <semaphore>
#include <unistd.h>

#include "cli/bench/bench.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/control/read_process_stats.h"
#include "common/storage/rocksdb_bare.h"
#include "common/storage/rocksdb_rows.h"
#include "server/storage/disk_tier.h"

namespace dt::cli {
namespace {

constexpr uint32_t kDim = 64;
constexpr int kPairs = 10;
constexpr uint64_t kRowsPerRun = 600'000;
constexpr uint64_t kRows = kRowsPerRun * (kPairs + 1);
constexpr size_t kBatch = 4096;
constexpr size_t kBatchesPerRun = 5;
constexpr uint64_t kRunBytes = 8 << 20;  // The size that a server with 256 MiB uses.
constexpr size_t kRunsUnderWay = 2;
constexpr uint64_t kCacheBytes = 64 << 20;

Key KeyOf(uint64_t row) { return MixBits(row * 0x9e3779b97f4a7c15ull + 1); }

server::TableSpec Spec() {
  server::TableSpec spec;
  spec.name = "bench";
  spec.id = TableIdOf(spec.name);
  spec.dim = kDim;
  spec.optimizer.kind = OptimizerKind::kSgd;
  return spec;
}

class Folder {
 public:
  Folder()
      : path_((std::filesystem::temp_directory_path() / fmt::format("dovetail-bench-{}", getpid()))
                  .string()) {}
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  const std::string path_;
};

void Must(const Status& status) { DT_CHECK_MSG(status.ok(), "{}", ToText(status)); }

// Sorts evicted rows into runs, which the disk's thread writes, a few runs behind.
class ToDisk : public server::RowSink {
 public:
  explicit ToDisk(std::string folder)
      : disk_({std::move(folder), {.cache_bytes = kCacheBytes}, [] {}}) {}
  std::span<std::byte> Add(server::EmbeddingTable& table, Key key) override {
    if (run_.bytes() >= kRunBytes) {
      Write();
      WaitFor(kRunsUnderWay);
    }
    return run_.Add(table.RowKeyOf(key), table.record_bytes());
  }
  void Left(server::EmbeddingTable&, Key) override { ++left_; }
  // Writes everything and waits for running merges; none begins before the next run.
  void Flush() {
    Write();
    WaitFor(0);
    disk_.db()->HoldMerges();
  }
  uint64_t left() const { return left_; }

 private:
  void Write() {
    if (run_.rows() == 0) return;
    const bool taken =
        disk_.TryWrite(std::make_shared<const server::RowRun>(std::exchange(run_, {})));
    DT_CHECK(taken);
    ++under_way_;
  }
  void WaitFor(size_t runs_left) {
    while (under_way_ > runs_left) {
      if (disk_.Take(milliseconds(100)).has_value()) --under_way_;
      Must(disk_.write_problem());
    }
  }

  server::RowRun run_;
  size_t under_way_ = 0;
  uint64_t left_ = 0;
  server::DiskThreads disk_;
};

std::vector<std::string> RowKeys(uint64_t begin, uint64_t count) {
  std::vector<std::string> keys;
  for (uint64_t row = begin; row < begin + count; ++row) {
    keys.emplace_back(RowKey(ShardId(0), Spec().id, KeyOf(row)).text());
  }
  return keys;
}

// First row of a run of MeasurePairs; the warm-up is run 0.
uint64_t FirstRowOf(int run) { return static_cast<uint64_t>(run) * kRowsPerRun; }

// Evicts the rows of a table, in one run of the bench after the other. Each run waits for its own
// merges; otherwise they would continue during the reference's time.
class Leaving {
 public:
  explicit Leaving(const std::string& folder) : rows_(Spec()), table_(rows_), sink_(folder) {
    const std::vector<float> gradients(kBatch * kDim, 0.5f);
    for (uint64_t at = 0; at < kRows; at += kBatch) {
      std::vector<Key> keys;
      for (uint64_t row = at; row < std::min(kRows, at + kBatch); ++row) keys.push_back(KeyOf(row));
      table_.Push(keys, {gradients.data(), keys.size() * kDim}, {.step = 1});
    }
    table_.Evict(table_.index_buckets(), 0, sink_);  // Makes all rows cold.
  }
  void Run() {
    const uint64_t until = sink_.left() + kRowsPerRun;
    while (sink_.left() < until && table_.rows() > 0) table_.Evict(512, 0, sink_);
    sink_.Flush();
  }
  std::string record() const { return std::string(table_.record_bytes(), 'x'); }

 private:
  server::TableRows rows_;
  server::EmbeddingTable table_;
  ToDisk sink_;
};

BenchCase BenchEvict(const Folder& folder, BareRocks& bare) {
  Leaving leaving(folder / "evict");
  BenchCase evict{.name = "store.evict_vs_writebatch",
                  .what = "cold rows of 64 floats to disk",
                  .unit = "M rows/s",
                  .reference = "RocksDB WriteBatch of 4,096 rows, without log, flushed"};
  const std::string value = leaving.record();
  MeasurePairs(
      evict, kRowsPerRun / 1e6, kPairs, [&](int) { leaving.Run(); },
      [&](int run) {
        const uint64_t begin = FirstRowOf(run);
        for (uint64_t at = 0; at < kRowsPerRun; at += kBatch) {
          bare.Write(RowKeys(begin + at, std::min(kBatch, kRowsPerRun - at)), value);
        }
        bare.Flush();
      });
  return evict;
}

// A lower bound for BenchEvict: the time of RocksDB alone to write and merge the same sorted runs.
BenchCase BenchEvictFloor(const Folder& folder) {
  Leaving leaving(folder / "evict2");
  BenchCase evict{
      .name = "store.evict_vs_sorted_files",
      .what = "cold rows of 64 floats to disk",
      .unit = "M rows/s",
      .reference = "sorted before the clock starts: RocksDB writes, adds and merges files"};
  const std::string value = leaving.record();
  const uint64_t rows_per_file = kRunBytes / (value.size() + 40);
  Result<std::unique_ptr<RowsDb>> db =
      RowsDb::Create(folder / "sorted", {.cache_bytes = kCacheBytes});
  Must(db.status());
  std::vector<std::vector<std::string>> files[kPairs + 1];
  for (int run = 0; run <= kPairs; ++run) {
    for (uint64_t at = 0; at < kRowsPerRun; at += rows_per_file) {
      files[run].push_back(
          RowKeys(FirstRowOf(run) + at, std::min(rows_per_file, kRowsPerRun - at)));
      std::ranges::sort(files[run].back());
    }
  }
  MeasurePairs(
      evict, kRowsPerRun / 1e6, kPairs, [&](int) { leaving.Run(); },
      [&](int run) {
        (*db)->ReleaseMerges();
        for (const std::vector<std::string>& keys : files[run]) {
          std::unique_ptr<RowsDb::File> file = (*db)->NewFile(kRunBytes);
          for (const std::string& key : keys) Must(file->Add(key, value));
          Must((*db)->Ingest(std::move(file)));
        }
        (*db)->HoldMerges();
      });
  return evict;
}

server::ShardSetOptions OneShard() {
  server::ShardSetOptions options;
  options.tables = {Spec()};
  options.self = ProcessId(1);
  options.view.map = MakeShardMap(MapVersion(1), 1, {{options.self, {""}}});
  return options;
}

// A server's shards with rows on disk, and an executor's loop.
class Tier {
 public:
  explicit Tier(const std::string& folder)
      : shards_(OneShard()), tier_({folder, 128 << 20, [this] { woken_.release(); }}, shards_) {
    server::EmbeddingTable& table = shards_.shards()[0].table(0);
    const std::vector<float> gradients(kBatch * kDim, 0.5f);
    for (uint64_t at = 0; at < kRows; at += kBatch) {
      std::vector<Key> keys;
      for (uint64_t row = at; row < std::min(kRows, at + kBatch); ++row) keys.push_back(KeyOf(row));
      const server::EmbeddingTable::KeyRun run{&table, keys};
      Until([&] { return tier_.EnsureWritable({&run, 1}); });
      table.Push(keys, {gradients.data(), keys.size() * kDim}, {.step = 1});
      tier_.Work();
    }
  }
  // Fetches rows from disk.
  void Fetch(std::span<const Key> keys) {
    const server::EmbeddingTable::KeyRun run{&shards_.shards()[0].table(0), keys};
    Until([&] { return tier_.EnsureInMemory({&run, 1}); });
  }

 private:
  void Until(const std::function<bool()>& done) {
    while (!done()) {
      static_cast<void>(woken_.try_acquire_for(milliseconds(1)));
      tier_.Work();
      Must(tier_.failure());
    }
  }
  std::counting_semaphore<> woken_{0};
  server::ShardSet shards_;
  server::DiskTier tier_;
};

BenchCase BenchFetch(const Folder& folder, BareRocks& bare) {
  Tier tier(folder / "tier");
  BenchCase fetch{.name = "store.fetch_vs_multiget",
                  .what = "rows of 64 floats from disk, 4,096 at once",
                  .unit = "M rows/s",
                  .reference = "RocksDB MultiGet of 4,096 sorted keys"};
  const auto row_of = [](int run, uint64_t i) {
    return MixBits(static_cast<uint64_t>(run + 1) << 32 | i) % kRows;
  };
  double reference_seconds = 0;  // CPU time.
  MeasurePairs(
      fetch, kBatch * kBatchesPerRun / 1e6, kPairs,
      [&](int run) {
        for (uint64_t b = 0; b < kBatchesPerRun; ++b) {
          std::vector<Key> keys;
          for (uint64_t i = 0; i < kBatch; ++i) keys.push_back(KeyOf(row_of(run, b * kBatch + i)));
          tier.Fetch(keys);
        }
      },
      [&](int run) {
        const double begun = ReadProcessStats(nullptr).cpu_seconds;
        for (uint64_t b = 0; b < kBatchesPerRun; ++b) {
          std::vector<std::string> keys;
          for (uint64_t i = 0; i < kBatch; ++i) {
            keys.push_back(RowKeys(row_of(run, b * kBatch + i), 1)[0]);
          }
          std::ranges::sort(keys);
          DT_CHECK(bare.MultiGet(keys) == keys.size());
        }
        reference_seconds += ReadProcessStats(nullptr).cpu_seconds - begun;
      });
  fetch.details = {{"reference_rows_per_cpu_second",
                    kBatch * kBatchesPerRun * (kPairs + 1) / std::max(reference_seconds, 1e-9)}};
  return fetch;
}

}  // namespace

std::vector<BenchCase> BenchDisk() {
  const Folder folder;
  std::filesystem::create_directories(folder / "");
  const std::unique_ptr<BareRocks> bare = MakeBareRocks(folder / "bare");
  std::vector<BenchCase> cases;
  cases.push_back(BenchEvict(folder, *bare));
  cases.push_back(BenchEvictFloor(folder));
  cases.push_back(BenchFetch(folder, *bare));
  return cases;
}

}  // namespace dt::cli
