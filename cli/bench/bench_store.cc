// Measures the embedding store on one thread with one shard, against loops that do the same work on
// the same rows without an index, and against std::unordered_map. docs/performance.md explains the
// cases.
#include <array>
#include <cstring>
#include <unordered_map>

#include "cli/bench/bench.h"
#include "common/base/hash.h"
#include "server/table/embedding_table.h"

namespace dt::cli {
namespace {

constexpr int kPairs = 12;
constexpr size_t kBatch = 4096;              // Keys of one request.
constexpr size_t kKeysPerRun = 1 << 20;      // Keys of one measurement.
constexpr size_t kQueryBlocks = 4;           // Successive runs use different keys.
constexpr size_t kReferenceAhead = 32;       // Rows to prefetch; more is not faster.
constexpr double kWork = kKeysPerRun / 1e6;  // M rows

Key KeyOf(uint64_t row) { return MixBits(row + 1); }

struct Setup {
  uint64_t rows = 0;
  uint32_t dim = 64;
  OptimizerKind optimizer = OptimizerKind::kSgd;
  InitKind init = InitKind::kZeros;
};

// A table of `rows` rows, and keys drawn uniformly from them.
class Store {
 public:
  explicit Store(const Setup& setup)
      : setup_(setup),
        rows_(SpecOf(setup)),
        table_(rows_),
        gradients_(kBatch * setup.dim * 2, 0.25f),
        out_(kBatch * setup.dim) {}

  // Creates the next `count` rows by their first pushes.
  void Insert(uint64_t count) {
    std::array<Key, kBatch> keys;
    for (const uint64_t end = inserted_ + count; inserted_ < end;) {
      const size_t n = std::min<uint64_t>(kBatch, end - inserted_);
      for (size_t i = 0; i < n; ++i) keys[i] = KeyOf(inserted_ + i);
      table_.Push({keys.data(), n}, {gradients_.data(), n * setup_.dim}, {.step = step_++});
      inserted_ += n;
    }
  }
  // Draws keys that are distinct within a batch, like those of workers.
  void DrawQueries() {
    const uint64_t stride = inserted_ / kBatch;  // One key from each stretch, in scattered order.
    for (size_t i = 0; i < kQueryBlocks * kKeysPerRun; ++i) {
      const uint64_t row = i * 2654435761 % kBatch * stride + MixBits(i + 77) % stride;
      keys_.push_back(KeyOf(row));
      // Rows are numbered in the order of insertion.
      pointers_.push_back(reinterpret_cast<float*>(rows_.row(static_cast<uint32_t>(row))));
    }
  }

  void Pull(int run) {
    ForBatches(run, [&](size_t at) { table_.Pull({&keys_[at], kBatch}, out_); });
  }
  void Push(int run) {
    ForBatches(run, [&](size_t at) {
      table_.Push({&keys_[at], kBatch}, {gradients_.data(), kBatch * setup_.dim},
                  {.step = step_++});
    });
  }
  // The reference of Pull: copies the same rows by pointer.
  template <size_t kDim>
  void Gather(int run) {
    ForBatches(run, [&](size_t at) {
      for (size_t i = 0; i < kBatch; ++i) {
        PrefetchAhead(at + i, kDim * sizeof(float));
        std::memcpy(&out_[i * kDim], pointers_[at + i], kDim * sizeof(float));
      }
    });
  }
  // The reference of Push: adds a scaled gradient to the same rows by pointer, as kFloats floats.
  template <size_t kFloats>
  void ScatterAdd(int run) {
    ForBatches(run, [&](size_t at) {
      for (size_t i = 0; i < kBatch; ++i) {
        PrefetchAhead(at + i, kFloats * sizeof(float));
        float* const row = pointers_[at + i];
        const float* const gradient = &gradients_[i * kFloats];
        for (size_t d = 0; d < kFloats; ++d) row[d] -= 0.01f * gradient[d];
      }
    });
  }

  const std::vector<Key>& keys() const { return keys_; }
  std::vector<float>& out() { return out_; }
  const server::TableRows& rows() const { return rows_; }
  double IndexAndHeaderBytesPerRow() const {
    return static_cast<double>(table_.index_bytes()) / static_cast<double>(inserted_) +
           sizeof(server::RowHeader);
  }

  template <class Body>
  static void ForBatches(int run, const Body& body) {
    const size_t begin = static_cast<size_t>(run) % kQueryBlocks * kKeysPerRun;
    for (size_t at = begin; at < begin + kKeysPerRun; at += kBatch) body(at);
  }

 private:
  static server::TableSpec SpecOf(const Setup& setup) {
    server::TableSpec spec;
    spec.name = "bench";
    spec.id = TableIdOf(spec.name);
    spec.dim = setup.dim;
    spec.init.kind = setup.init;
    spec.optimizer.kind = setup.optimizer;
    spec.optimizer.l2 = 0;
    return spec;
  }
  void PrefetchAhead(size_t at, size_t bytes) const {
    if (at + kReferenceAhead >= pointers_.size()) return;
    const auto* const row = reinterpret_cast<const std::byte*>(pointers_[at + kReferenceAhead]);
    for (size_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch(row + offset);
  }

  const Setup setup_;
  server::TableRows rows_;
  server::EmbeddingTable table_;
  std::vector<float> gradients_;  // For kBatch records of at most 2 * dim floats.
  std::vector<float> out_;
  uint64_t inserted_ = 0;
  Step step_ = 0;
  std::vector<Key> keys_;
  std::vector<float*> pointers_;
};

// Grows a store to its size: first pushes, compared with filling untouched memory.
BenchCase BenchInsert(Store& store, uint64_t rows, BenchCase& index_bytes) {
  const uint64_t each = rows / (kPairs + 1);
  const size_t dim = store.rows().spec().dim;
  BenchCase insert{.name = "store.insert_vs_fill",
                   .what = "first pushes of rows of 64 floats",
                   .unit = "M rows/s",
                   .reference = "initial values written to untouched memory"};
  double most = 0;
  MeasurePairs(
      insert, static_cast<double>(each) / 1e6, kPairs,
      [&](int) {
        store.Insert(each);
        most = std::max(most, store.IndexAndHeaderBytesPerRow());
      },
      [&](int) {
        auto memory = server::PageMemory::Zeroed(each * dim * sizeof(float));
        auto* const floats = reinterpret_cast<float*>(memory.data());
        for (uint64_t i = 0; i < each; ++i) {
          store.rows().initial().Fill(KeyOf(i), {floats + i * dim, dim});
        }
      });
  index_bytes = {.name = "store.index_bytes",
                 .what = "index and header of a row, at the worst size on the way",
                 .unit = "bytes",
                 .runs = {most}};
  return insert;
}

BenchCase BenchStdMap(Store& store, uint64_t rows) {
  constexpr size_t kDim = 64;
  std::unordered_map<Key, std::array<float, kDim>> map;
  map.reserve(rows);
  for (uint64_t row = 0; row < rows; ++row) map[KeyOf(row)][0] = 1;
  BenchCase pull{.name = "store.pull_vs_std",
                 .what = "pull of rows of 64 floats",
                 .unit = "M rows/s",
                 .reference = "std::unordered_map, find and copy"};
  MeasurePairs(
      pull, kWork, kPairs, [&](int run) { store.Pull(run); },
      [&](int run) {
        Store::ForBatches(run, [&](size_t at) {
          for (size_t i = 0; i < kBatch; ++i) {
            const auto& row = map.find(store.keys()[at + i])->second;
            std::memcpy(&store.out()[i * kDim], row.data(), sizeof(row));
          }
        });
      });
  return pull;
}

void BenchRowsOf64(std::vector<BenchCase>& cases) {
  constexpr uint64_t kRows = 20'000'000 / (kPairs + 1) * (kPairs + 1);
  Store store({.rows = kRows, .init = InitKind::kNormal});
  BenchCase index_bytes;
  const BenchCase insert = BenchInsert(store, kRows, index_bytes);
  store.DrawQueries();
  BenchCase pull{.name = "store.pull_vs_gather",
                 .what = "pull of rows of 64 floats",
                 .unit = "M rows/s",
                 .reference = "gather of the same rows by pointer"};
  MeasurePairs(
      pull, kWork, kPairs, [&](int run) { store.Pull(run); },
      [&](int run) { store.Gather<64>(run); });
  BenchCase push{.name = "store.sgd_vs_scatter",
                 .what = "push (SGD) to rows of 64 floats",
                 .unit = "M rows/s",
                 .reference = "scatter-add to the same rows by pointer"};
  MeasurePairs(
      push, kWork, kPairs, [&](int run) { store.Push(run); },
      [&](int run) { store.ScatterAdd<64>(run); });
  cases.insert(cases.end(), {pull, BenchStdMap(store, kRows), push, insert, index_bytes});
}

BenchCase BenchAdagrad() {
  constexpr uint64_t kRows = 20'000'000;
  Store store({.rows = kRows, .optimizer = OptimizerKind::kAdagrad});
  store.Insert(kRows);
  store.DrawQueries();
  BenchCase push{.name = "store.adagrad_vs_scatter",
                 .what = "push (Adagrad) to rows of 64 floats",
                 .unit = "M rows/s",
                 .reference = "scatter-add to the same 512-byte records by pointer"};
  MeasurePairs(
      push, kWork, kPairs, [&](int run) { store.Push(run); },
      [&](int run) { store.ScatterAdd<128>(run); });
  return push;
}

BenchCase BenchGrowth(const char* name, uint64_t rows) {
  Store store({.rows = rows, .dim = 16});
  store.Insert(rows);
  store.DrawQueries();
  BenchCase pull{.name = name,
                 .what = "pull of rows of 16 floats",
                 .unit = "M rows/s",
                 .reference = "gather of the same rows by pointer"};
  MeasurePairs(
      pull, kWork, kPairs, [&](int run) { store.Pull(run); },
      [&](int run) { store.Gather<16>(run); });
  return pull;
}

}  // namespace

std::vector<BenchCase> BenchStore() {
  std::vector<BenchCase> cases = BenchDisk();
  BenchRowsOf64(cases);
  cases.push_back(BenchDedup());
  cases.push_back(BenchAdagrad());
  cases.push_back(BenchGrowth("store.growth_1e6", 1'000'000));
  cases.push_back(BenchGrowth("store.growth_1e7", 10'000'000));
  cases.push_back(BenchGrowth("store.growth_1e8", 100'000'000));
  return cases;
}

}  // namespace dt::cli
