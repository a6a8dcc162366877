#include "test/e2e/views/counted_job.h"

#include <cmath>
#include <cstring>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

constexpr uint32_t kSamples = 6000;
constexpr uint64_t kFirstSampleKey = 1000;
constexpr double kCount = 1.0 / (1 << 20), kGradient = 1.0 / (1 << 30);

// How often each key was counted.
std::map<uint64_t, long> CountsIn(const TempFolder& folder, const std::string& checkpoint) {
  const ProgramEnd exported = RunProgram(
      folder.path(),
      {"export", checkpoint, "--format", "safetensors", "--table", "counts", "--out", "counts.st"});
  EXPECT_EQ(exported.exit_code, 0) << exported.output;
  const std::string bytes = folder.Read("counts.st");
  uint64_t head = 0;
  std::memcpy(&head, bytes.data(), sizeof(head));
  const auto header = nlohmann::json::parse(bytes.substr(sizeof(head), head));
  const auto at = [&](const char* what) {
    const auto offset = header[what]["data_offsets"][0].get<uint64_t>();
    return bytes.data() + sizeof(head) + head + offset;
  };
  std::map<uint64_t, long> counts;
  const auto rows = header["table.counts.keys"]["shape"][0].get<size_t>();
  for (size_t row = 0; row < rows; ++row) {
    uint64_t key = 0;
    float value = 0;
    std::memcpy(&key, at("table.counts.keys") + row * sizeof(key), sizeof(key));
    std::memcpy(&value, at("table.counts.values") + row * sizeof(value), sizeof(value));
    counts[key] = std::lround(-double{value} / kCount);
  }
  return counts;
}

}  // namespace

std::string WriteCountedJob(const TempFolder& folder, const CountedJobOptions& options) {
  std::string rows;
  for (uint32_t row = 0; row < kSamples; ++row) {
    rows +=
        fmt::format("0 {}:1 {}:1 {}:1\n", row * 7 % 13, 100 + row * 11 % 29, kFirstSampleKey + row);
  }
  folder.Write("train.libsvm", rows);
  return folder.Write(
      "counting.yaml",
      fmt::format(R"(job: counting
data: {{format: libsvm, train: [train.libsvm]}}
model:
  tables:
    deep: {{dim: 4, optimizer: {{name: adam, lr: 0.000001}}}}
    counts: {{dim: 1, init: zeros, clip_row_norm: {}, optimizer: {{name: sgd, lr: {}}}}}
  graph:
    - {{name: e, op: lookup, table: deep, inputs: [features]}}
    - {{name: first, op: linear, table: counts, inputs: [features]}}
    - {{name: second, op: mlp, inputs: [e], units: [8, 1]}}
    - {{name: logit, op: sum, inputs: [first, second]}}
  loss: [{{type: binary_cross_entropy, input: logit, label: label}}]
optimizer: {{name: adam, lr: 0.000001}}
train: {{batch_size: 60, slices: {}, epochs: {}, staleness: {}}}
cluster: {}
checkpoint: {}
)",
                  kGradient, kCount / kGradient, options.staleness == "0" ? "6" : "auto",
                  options.epochs, options.staleness, options.cluster, options.checkpoint));
}

void ExpectCounts(const TempFolder& folder, const std::string& run, int epochs,
                  const std::string& text) {
  const std::vector<std::string> saved = CheckpointsOf(folder, run);
  ASSERT_FALSE(saved.empty()) << text;
  const std::map<uint64_t, long> counts = CountsIn(folder, saved.back());
  for (uint64_t key = kFirstSampleKey; key < kFirstSampleKey + kSamples; ++key) {
    const auto found = counts.find(key);
    ASSERT_EQ(found == counts.end() ? 0 : found->second, epochs) << key << ": " << text;
  }
}

}  // namespace dt::test
