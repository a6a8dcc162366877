// Job files of one test, in a directory of their own.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/config/load_job.h"

namespace dt {

// A complete job file. Tests make a mistake by replacing a part of it, and messages name its lines.
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

  // Returns the path of the file.
  std::string Write(std::string_view name, std::string_view text) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Returns `text` with its only occurrence of `from` replaced; the test fails unless there is
// exactly one.
std::string Replaced(std::string_view text, std::string_view from, std::string_view to);

// The problems found when `text` is loaded as job.yaml, without the directory; "" if it loads.
std::string ProblemsOf(std::string_view text, const LoadOptions& options = {});
// The problems of kGoodJob after a replacement.
std::string ProblemsAfter(std::string_view from, std::string_view to);
// REQUIRES: the text loads without problems.
JobConfig Loaded(std::string_view text, const LoadOptions& options = {});

}  // namespace dt
