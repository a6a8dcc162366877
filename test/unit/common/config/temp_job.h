// Job files in a directory of their own, for one test.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/config/load_job.h"

namespace dt {

// A complete job; its lines are numbered by what stands here. A mistake is made by replacing a
// part.
inline constexpr std::string_view kGoodJob = R"(job: ads
seed: 7
data:
  format: csv
  train: [train.csv]
  valid: [valid.csv]
  columns:
    - {name: click, role: label}
    - {name: item, type: string}
    - {name: history, type: ids, separator: "|", max_len: 50}
    - {name: price, fill: 0}
model:
  tables:
    item: {dim: 16, optimizer: {name: adagrad, lr: 0.02}, l2: 0.05}
  graph:
    - {name: e, op: lookup, table: item, inputs: [item]}
    - {name: deep, op: mlp, inputs: [e, price], units: [400, 400], dropout: 0.2}
  loss: [{type: binary_cross_entropy, input: deep, label: click}]
optimizer: {name: adam, lr: 0.001, clip_norm: 10, schedule: {type: plateau, factor: 0.1}}
train: {batch_size: 4096, epochs: 10, early_stop: {patience: 2}}
cluster: {servers: 2, workers: 2}
)";

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  // Gives the file's path.
  std::string Write(std::string_view name, std::string_view text) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// `text` with the one occurrence of `from` replaced; a test fails if there is not exactly one.
std::string Replaced(std::string_view text, std::string_view from, std::string_view to);

// What loading `text` as job.yaml says, its directory left out; "" if it loads.
std::string ProblemsOf(std::string_view text, const LoadOptions& options = {});
// Of kGoodJob with a replacement.
std::string ProblemsAfter(std::string_view from, std::string_view to);
// REQUIRES: it loads.
JobConfig Loaded(std::string_view text, const LoadOptions& options = {});

}  // namespace dt
