// Finding the distinct keys of a batch and the row of each occurrence, as a worker does before a
// pull: 26 columns of 2,048 ids each, with a Zipf distribution (1.05) over a million ids per
// column.
#include <algorithm>

#include "cli/bench/bench.h"
#include "cli/bench/zipf.h"
#include "common/base/hash.h"
#include "common/base/philox.h"
#include "worker/lookup/key_numbering.h"

namespace dt::cli {
namespace {

constexpr uint32_t kColumns = 26, kSamples = 2048, kBatches = 20;
constexpr uint32_t kIds = 1'000'000;
constexpr int kPairs = 12;

std::vector<std::vector<Key>> DrawBatches() {
  const Zipf zipf(kIds, 1.05);
  std::vector<std::vector<Key>> batches(kBatches);
  for (uint32_t b = 0; b < kBatches; ++b) {
    for (uint32_t i = 0; i < kColumns * kSamples; ++i) {
      auto uniform = [&, n = uint32_t{0}]() mutable { return 0x1p-32 * Philox(1 + n++, b, i)[0]; };
      batches[b].push_back(MixBits((uint64_t{i / kSamples} << 40) + zipf.Draw(uniform)));
    }
  }
  return batches;
}

}  // namespace

BenchCase BenchDedup() {
  const std::vector<std::vector<Key>> batches = DrawBatches();
  const size_t keys = batches[0].size();
  std::vector<uint32_t> numbers(keys);
  std::vector<Key> distinct;
  worker::KeyNumbering numbering;
  std::vector<std::pair<Key, uint32_t>> sorted(keys);
  BenchCase bench{.name = "store.dedup_vs_sort",
                  .what = "distinct keys of a batch of 53,248",
                  .unit = "M keys/s",
                  .reference = "std::sort of (key, place), unique"};
  MeasurePairs(
      bench, static_cast<double>(keys * kBatches) / 1e6, kPairs,
      [&](int) {
        for (const std::vector<Key>& batch : batches) {
          distinct.clear();
          numbering.Begin(keys);
          numbering.Number(batch, numbers, distinct);
        }
      },
      [&](int) {
        for (const std::vector<Key>& batch : batches) {
          for (uint32_t i = 0; i < keys; ++i) sorted[i] = {batch[i], i};
          std::ranges::sort(sorted);
          distinct.clear();
          for (const auto& [key, place] : sorted) {
            if (distinct.empty() || distinct.back() != key) distinct.push_back(key);
            numbers[place] = static_cast<uint32_t>(distinct.size() - 1);
          }
        }
      });
  return bench;
}

}  // namespace dt::cli
