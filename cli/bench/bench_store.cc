// Pulls and pushes of one table part on one thread, against a copy of as many bytes and against
// std::unordered_map with rows of its own.
#include <cstring>
#include <unordered_map>

#include "cli/bench/bench.h"
#include "common/base/hash.h"
#include "server/table/embedding_table.h"

namespace dt::cli {
namespace {

constexpr uint32_t kDim = 64;
constexpr size_t kRows = 1 << 20;
constexpr size_t kBatch = 4096;
constexpr size_t kBatches = 64;
constexpr double kWork = static_cast<double>(kBatch * kBatches) / 1e6;  // M rows
constexpr int kRepeats = 7;

Key KeyOf(uint64_t row) { return MixBits(row + 1); }

// kBatches lists of distinct keys, the same in every run.
std::vector<std::vector<Key>> Batches() {
  std::vector<std::vector<Key>> batches(kBatches);
  for (size_t b = 0; b < kBatches; ++b) {
    for (size_t i = 0; i < kBatch; ++i) {
      const uint64_t row = (MixBits(b * kBatch + i + 77) % (kRows / kBatch)) * kBatch + i;
      batches[b].push_back(KeyOf(row));
    }
  }
  return batches;
}

server::TableSpec SgdTable() {
  server::TableSpec spec;
  spec.name = "bench";
  spec.id = TableIdOf(spec.name);
  spec.dim = kDim;
  spec.optimizer.kind = OptimizerKind::kSgd;
  spec.optimizer.l2 = 0;
  return spec;
}

}  // namespace

std::vector<BenchCase> BenchStore() {
  const auto batches = Batches();
  server::EmbeddingTable table(SgdTable());
  std::vector<float> gradients(kBatch * kDim, 0.5f), values(kBatch * kDim);
  std::vector<Key> keys(kBatch);
  for (size_t row = 0; row < kRows; row += kBatch) {
    for (size_t i = 0; i < kBatch; ++i) keys[i] = KeyOf(row + i);
    table.Push(keys, gradients, {.step = 0});
  }
  std::vector<float> memory(kRows * kDim, 1.0f);
  std::unordered_map<Key, std::vector<float>> map;
  for (size_t row = 0; row < kRows; ++row) map.emplace(KeyOf(row), std::vector<float>(kDim, 1.0f));

  const auto copy = MeasureRate(kWork, kRepeats, [&] {
    for (size_t b = 0; b < kBatches; ++b) {
      std::memcpy(values.data(), memory.data() + b * kBatch * kDim, values.size() * sizeof(float));
    }
  });
  const auto map_pull = MeasureRate(kWork, kRepeats, [&] {
    for (const auto& batch : batches) {
      for (size_t i = 0; i < kBatch; ++i) {
        std::memcpy(&values[i * kDim], map.at(batch[i]).data(), kDim * sizeof(float));
      }
    }
  });
  const auto pull = MeasureRate(kWork, kRepeats, [&] {
    for (const auto& batch : batches) table.Pull(batch, values);
  });
  Step step = 1;
  const auto push = MeasureRate(kWork, kRepeats, [&] {
    for (const auto& batch : batches) table.Push(batch, gradients, {.step = step++});
  });
  return {{"pull, 1 M rows of 64 floats", "M rows/s", pull, "std::unordered_map", map_pull},
          {"pull, 1 M rows of 64 floats", "M rows/s", pull, "memcpy of a stream", copy},
          {"push (SGD), 1 M rows of 64 floats", "M rows/s", push, "memcpy of a stream", copy}};
}

}  // namespace dt::cli
