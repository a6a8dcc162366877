#include "test/support/tiny_job.h"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "common/base/philox.h"

namespace dt::test {
namespace {

// Samples of six fields of 5, 10, … 160 ids; the label depends on the sum of hidden weights of the
// ids.
std::string Rows(uint64_t seed, uint32_t rows) {
  std::string text;
  for (uint32_t row = 0; row < rows; ++row) {
    const PhiloxBlock a = Philox(seed, row, 0), b = Philox(seed, row, 1);
    const uint32_t draws[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    float score = 0;
    std::string ids;
    for (uint32_t field = 0; field < 6; ++field) {
      const uint32_t id = 1000 * field + draws[field] % (5u << field);
      score += ToUniform(Philox(7, id, 0)[0]) - 0.5f;
      ids += fmt::format(" {}:1", id);
    }
    const bool click = ToUniform(b[2]) < 1.0f / (1.0f + std::exp(-3.0f * score));
    text += fmt::format("{}{}\n", click ? 1 : 0, ids);
  }
  return text;
}

nlohmann::json ResultOf(const TempFolder& folder, const std::string& result_file) {
  return nlohmann::json::parse(folder.Read(result_file), nullptr, false);
}

}  // namespace

std::string WriteTinyJob(const TempFolder& folder, const TinyJobOptions& o) {
  folder.Write("train.libsvm", Rows(11, o.rows));
  folder.Write("valid.libsvm", Rows(12, o.rows / 4));
  const std::string yaml = fmt::format(
      R"(job: {}
seed: 5
data: {{format: libsvm, train: [train.libsvm], valid: [valid.libsvm], shuffle: {{window: 1000}}}}
model:
  tables:
    deep: {{dim: 8, optimizer: {{name: adam, lr: 0.01}}, l2: 0.01}}
    wide: {{dim: 1, optimizer: {{name: adagrad, lr: 0.05}}}}
  graph:
    - {{name: e, op: lookup, table: deep, inputs: [features]}}
    - {{name: first, op: linear, table: wide, inputs: [features]}}
    - {{name: second, op: fm, inputs: [e]}}
    - {{name: hidden, op: mlp, inputs: [e], units: [16, 8], batch_norm: true, dropout: 0.2}}
    - {{name: third, op: dense, inputs: [hidden], units: 1}}
    - {{name: logit, op: sum, inputs: [first, second, third]}}
  loss: {}
optimizer: {{name: adam, lr: 0.01, clip_norm: 1}}
train: {{batch_size: {}, slices: {}, epochs: {}, staleness: {}}}
cluster: {{servers: {}, workers: {}, shards: 16, server: {{executors: {}}}}}
{}
)",
      o.job, o.loss, o.batch_size, o.slices, o.epochs, o.staleness, o.servers, o.workers,
      o.executors, o.more);
  return folder.Write(o.job + ".yaml", yaml);
}

std::vector<std::string> CheckpointsOf(const TempFolder& folder, const std::string& job) {
  const std::string all = "runs/" + job + "/checkpoints";
  std::vector<std::string> complete;
  std::error_code none;
  for (const auto& dir : std::filesystem::directory_iterator(folder.path() + "/" + all, none)) {
    const std::string name = dir.path().filename().string();
    if (name.starts_with("step-")) complete.push_back(all + "/" + name);
  }
  std::ranges::sort(complete);
  return complete;
}

uint64_t StepOf(const std::string& checkpoint) {
  return std::stoull(checkpoint.substr(checkpoint.rfind('-') + 1));
}

std::string ChecksumOf(const TempFolder& folder, const std::string& result_file) {
  const nlohmann::json result = ResultOf(folder, result_file);
  return result.is_object() && result.contains("checksum") ? result["checksum"].dump() : "";
}

std::string TextAt(const TempFolder& folder, const std::string& result_file,
                   const std::string& pointer) {
  const nlohmann::json result = ResultOf(folder, result_file);
  const nlohmann::json::json_pointer at(pointer);
  return result.contains(at) && result[at].is_string() ? result[at].get<std::string>() : "";
}

double NumberAt(const TempFolder& folder, const std::string& result_file,
                const std::string& pointer) {
  const nlohmann::json result = ResultOf(folder, result_file);
  const nlohmann::json::json_pointer at(pointer);
  return result.contains(at) && result[at].is_number() ? result[at].get<double>() : -1.0;
}

}  // namespace dt::test
