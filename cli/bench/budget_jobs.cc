#include "cli/bench/budget_jobs.h"

#include <fmt/format.h>

#include "cli/bench/zipf.h"
#include "common/base/hash.h"
#include "common/storage/files.h"

namespace dt::cli {
namespace {

constexpr uint64_t kSamples = 1 << 17;
constexpr int kNumbers = 13, kKeys = 26;

// DLRM and DeepFM as test/bench/train_vs_peers.py has them. Wide & Deep normalises batches and
// drops units. The transformer reads the 26 fields as a sequence.
struct Model {
  const char* name;
  const char* text;
};
constexpr Model kModels[] = {
    {"dlrm", R"(
  tables:
    item: {dim: 16, init: {normal: 0.01}}
  graph:
    - {name: e, op: lookup, table: item, inputs: [C*]}
    - {name: bottom, op: mlp, inputs: [I*], units: [512, 256, 16]}
    - {name: pairs, op: dot, inputs: [bottom, e]}
    - {name: logit, op: mlp, inputs: [bottom, pairs], units: [512, 256, 1]}
)"},
    {"deepfm", R"(
  tables:
    wide: {dim: 1, init: {normal: 0.01}}
    item: {dim: 16, init: {normal: 0.01}}
  graph:
    - {name: first, op: linear, table: wide, inputs: [C*]}
    - {name: e, op: lookup, table: item, inputs: [C*]}
    - {name: second, op: fm, inputs: [e]}
    - {name: deep, op: mlp, inputs: [e], units: [400, 400, 400, 1]}
    - {name: logit, op: add, inputs: [first, second, deep]}
)"},
    {"wide_deep", R"(
  tables:
    wide: {dim: 1, init: {normal: 0.01}}
    item: {dim: 16, init: {normal: 0.01}}
  graph:
    - {name: first, op: linear, table: wide, inputs: [C*, I*]}
    - {name: e, op: lookup, table: item, inputs: [C*]}
    - {name: deep, op: mlp, inputs: [e, I*], units: [400, 400, 400], batch_norm: true, dropout: 0.2}
    - {name: second, op: dense, inputs: [deep], units: 1}
    - {name: logit, op: add, inputs: [first, second]}
)"},
    {"transformer", R"(
  tables:
    item: {dim: 32, init: {normal: 0.01}}
  graph:
    - {name: e, op: lookup, table: item, inputs: [C*]}
    - {name: fields, op: transformer, inputs: [e], layers: 2, heads: 4, hidden: 128, dropout: 0.1}
    - {name: logit, op: mlp, inputs: [fields, I*], units: [256, 1]}
)"},
};

std::string JobText(const Model& model, const std::string& folder) {
  return fmt::format(
      "job: budget_{0}\n"
      "seed: 1\n"
      "data: {{format: criteo, train: [{1}/train.tsv], shuffle: {{window: 0}}, cache_dir: {1}}}\n"
      "model:{2}"
      "  loss: [{{type: binary_cross_entropy, input: logit, label: label}}]\n"
      "optimizer: {{name: adagrad, lr: 0.01}}\n"
      "train: {{batch_size: 2048, epochs: 100000}}\n",
      model.name, folder, model.text);
}

// In Criteo's format: a label, numbers, keys.
std::string Samples() {
  const Zipf zipf(1e6, 1.05);
  uint64_t state = 1;
  const auto uniform = [&state] {
    state += 0x9e3779b97f4a7c15ull;
    return static_cast<double>(MixBits(state) >> 11) * 0x1.0p-53;
  };
  std::string text;
  for (uint64_t row = 0; row < kSamples; ++row) {
    text += uniform() < 0.3 ? '1' : '0';
    for (int i = 0; i < kNumbers; ++i) {
      fmt::format_to(std::back_inserter(text), "\t{}", static_cast<int>(uniform() * 100));
    }
    for (uint64_t column = 0; column < kKeys; ++column) {
      fmt::format_to(std::back_inserter(text), "\t{:x}",
                     MixBits((column << 40) + zipf.Draw(uniform)));
    }
    text += '\n';
  }
  return text;
}

}  // namespace

Result<std::vector<std::string>> WriteBudgetJobs(const std::string& folder) {
  DT_TRY_STATUS(WriteWholeFile(folder + "/train.tsv", Samples()));
  std::vector<std::string> jobs;
  for (const Model& model : kModels) {
    jobs.push_back(fmt::format("{}/{}.yaml", folder, model.name));
    DT_TRY_STATUS(WriteWholeFile(jobs.back(), JobText(model, folder)));
  }
  return jobs;
}

}  // namespace dt::cli
