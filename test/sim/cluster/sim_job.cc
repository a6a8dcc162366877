#include "test/sim/cluster/sim_job.h"

#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/philox.h"
#include "common/config/load_job.h"
#include "common/device/devices.h"
#include "common/runtime/task_pool.h"
#include "common/storage/files.h"
#include "scheduler/service/plan_of.h"
#include "worker/data/dataset.h"

namespace dt::sim {
namespace {

// All gradients of a row are larger, so that clipping makes them this.
constexpr float kSmallestGradient = 1.0f / 65536;

// A sample: its own key, a user's and an item's.
std::string Rows(uint64_t seed, uint32_t rows, uint32_t first_key, int label = 0) {
  std::string text;
  for (uint32_t row = 0; row < rows; ++row) {
    const PhiloxBlock draws = Philox(seed, row, 0);
    text += fmt::format("{} {}:1 {}:1 {}:1\n", label, draws[0] % 13, 100 + draws[1] % 29,
                        first_key + row);
  }
  return text;
}

constexpr uint32_t kPartitions = 4;

std::string TextOfMessage(uint32_t partition, uint64_t offset) {
  const PhiloxBlock draws = Philox(13, offset, partition);
  return fmt::format("0,{},{},{}", draws[0] % 13, 100 + draws[1] % 29,
                     kFirstSampleKey + partition + kPartitions * offset);
}

std::string_view DataOf(Mode mode) {
  if (!HasStream(mode)) {
    return "{format: libsvm, train: [train.libsvm], valid: [valid.libsvm], shuffle: {window: 50}}";
  }
  return R"(
  format: kafka
  kafka: {brokers: "none:1", topic: simulated}
  columns:
    - {name: label, role: label}
    - {name: user, type: id}
    - {name: item, type: id}
    - {name: sample, type: id})";
}

// When the job ends, and what it is evaluated on.
std::string_view EndOf(Mode mode) {
  if (HasStream(mode)) return ", until: forever, evaluate_every: 6";
  return HasManySteps(mode) ? ", epochs: 1" : ", epochs: 2";
}

std::string_view StalenessOf(Mode mode) {
  if (IsSynchronous(mode)) return "0";
  const bool unbounded = mode == Mode::kUnbounded || mode == Mode::kUnboundedManyWorkers;
  return unbounded ? "unbounded" : "2";
}

uint32_t ReplicasOf(Mode mode) {
  if (!HasChains(mode)) return 1;
  return HasLog(mode) ? 2 : 3;
}

double RateOf(Mode mode) {
  if (HasManySteps(mode)) return 1e-5;
  return mode >= Mode::kBoundedManyWorkers ? 1e-3 : 0.01;  // Four updates a step.
}

std::string YamlOf(Mode mode) {
  return fmt::format(
      R"(job: sim
seed: 5
data: {data}
model:
  tables:
    deep:
      {{dim: 4, device: {deep}, l2: 0.01,
        optimizer: {{name: adam, lr: {rate}, scope: {scope}}}}}
    counts:
      {{dim: 1, device: ps, init: zeros, clip_row_norm: {clip},
        optimizer: {{name: sgd, lr: {count_rate}}}}}
  graph:
    - {{name: e, op: lookup, table: deep, inputs: [{features}]}}
    - {{name: first, op: linear, table: counts, inputs: [{features}]}}
    - {{name: hidden, op: mlp, inputs: [e], units: [8], batch_norm: true, dropout: 0.2}}
    - {{name: second, op: dense, inputs: [hidden], units: 1}}
    - {{name: logit, op: sum, inputs: [first, second]}}
  loss: [{{type: binary_cross_entropy, input: logit, label: label}}]
optimizer: {{name: adam, lr: {rate}, clip_norm: 1}}
train:
  {{batch_size: {batch}, slices: {slices}, staleness: {staleness}{end}{early_stop}}}
cluster:
  {{servers: {servers}, replicas: {replicas}, workers: {workers}, shards: 8,
    server: {{executors: 2}}, move_rate: {move_rate}}}
checkpoint: {{every: {every}, keep: 2, durability: {durability}}}
parallel: {{overlap: {overlap}}}
)",
      fmt::arg("data", DataOf(mode)), fmt::arg("end", EndOf(mode)),
      fmt::arg("features", HasStream(mode) ? "user, item, sample" : "features"),
      fmt::arg("deep", mode == Mode::kTablesOnWorkers ? "cpu" : "ps"),
      // The bits of synchronous jobs are compared with those of tables on workers.
      fmt::arg("scope", IsSynchronous(mode) ? "touched" : "dense"),
      // So slow over many updates that all gradients stay large enough to be counted.
      fmt::arg("rate", RateOf(mode)), fmt::arg("count_rate", kCount / kSmallestGradient),
      fmt::arg("clip", kSmallestGradient), fmt::arg("batch", BatchOf(mode)),
      fmt::arg("slices", IsSynchronous(mode) ? "4" : "auto"),
      fmt::arg("staleness", StalenessOf(mode)),
      fmt::arg("early_stop",
               RestoresTheBest(mode) ? ", early_stop: {metric: valid.logloss, patience: 2}" : ""),
      fmt::arg("workers", WorkersOf(mode)), fmt::arg("servers", HasChains(mode) ? 3 : 2),
      fmt::arg("replicas", ReplicasOf(mode)),
      // Some shards are being copied when the best model is restored.
      fmt::arg("move_rate", RestoresTheBest(mode) ? "20KiB" : "0"),
      fmt::arg("every", HasManySteps(mode) ? 1000 : 5),
      fmt::arg("durability", HasLog(mode) ? "log" : "checkpoint"),
      // The reader's own thread would ask for parts or messages in real time.
      fmt::arg("overlap", StalenessOf(mode) != "unbounded" && !HasStream(mode)));
}

std::vector<ColumnSpec> ColumnsOf(const DataConfig& config) {
  if (config.stream.has_value()) return config.columns;
  TaskPool pool(1);
  const auto data = worker::Dataset::Open(config, worker::Split::kTrain, pool);
  DT_CHECK_MSG(data.ok(), "{}", ToText(data.status()));
  return (*data)->columns();
}

void Write(const std::string& path, const std::string& text) {
  const Status written = WriteWholeFile(path, text);
  DT_CHECK_MSG(written.ok(), "{}", ToText(written));
}

}  // namespace

std::string_view NameOf(Mode mode) {
  constexpr std::string_view kNames[] = {"synchronous",
                                         "log",
                                         "bounded",
                                         "unbounded",
                                         "bounded, log",
                                         "many steps",
                                         "bounded, many steps",
                                         "chains",
                                         "bounded, chains",
                                         "restored, chains",
                                         "bounded, restored, chains",
                                         "log, chains",
                                         "bounded, log, chains",
                                         "many workers",
                                         "tables on workers",
                                         "bounded, many workers",
                                         "unbounded, many workers",
                                         "many workers, many steps",
                                         "stream",
                                         "bounded, stream"};
  return kNames[static_cast<int>(mode)];
}

SimJob::SimJob(Mode mode) : mode_(mode) {
  Write(folder_ / "train.libsvm", Rows(11, SamplesOf(mode), kFirstSampleKey));
  // The less a model has learned of labels that are 0, the better it is for those that are 1.
  Write(folder_ / "valid.libsvm",
        Rows(12, 32, kFirstSampleKey + SamplesOf(mode), RestoresTheBest(mode) ? 1 : 0));
  Write(folder_ / "job.yaml", YamlOf(mode));
  Result<JobConfig> job = LoadJob(folder_ / "job.yaml", {});
  DT_CHECK_MSG(job.ok(), "{}", ToText(job.status()));
  job_ = *std::move(job);
  job_.data.cache_dir = folder_ / "cache";
  job_.cluster.lease = seconds(3);
  job_.cluster.scheduler_outage = seconds(HasManySteps(mode) ? 60 : 10);
  job_.cluster.wait_for_server = job_.cluster.start_timeout = seconds(30);
  auto made = scheduler::PlanOf(job_, {.columns = ColumnsOf(job_.data),
                                       .slices = std::max(1u, job_.train.slices),
                                       .servers = job_.cluster.servers,
                                       .workers = job_.cluster.workers});
  DT_CHECK_MSG(made.ok(), "{}", ToText(made.status()));
  plan_ = *std::move(made);
}

JobConfig SimJob::In(const std::string& folder) const {
  JobConfig job = job_;
  job.run_dir = folder + "/run";
  job.checkpoint.dir = job.run_dir + "/checkpoints";
  job.cluster.server.dir = job.run_dir;
  return job;
}

std::unique_ptr<SimTopic> SimJob::Topic(const World& world) const {
  if (!job_.data.stream.has_value()) return nullptr;
  return std::make_unique<SimTopic>(world,
                                    SimTopic::Options{.partitions = kPartitions,
                                                      .messages = SamplesOf(mode_) / kPartitions,
                                                      .growing = seconds(16),
                                                      .text = TextOfMessage});
}

std::map<Key, long> CountsOf(const server::ShardSet& shards) {
  std::map<Key, long> counts;
  for (const server::Shard& shard : shards.shards()) {
    if (!shards.IsMember(shard.id())) continue;
    for (uint32_t t = 0; t < shard.tables(); ++t) {
      const server::EmbeddingTable& table = shard.table(t);
      if (table.spec().id != TableIdOf("counts")) continue;
      std::vector<std::byte> record(table.record_bytes());
      for (const server::KeyRow& row : table.SortedRows()) {
        table.CopyRecord(row, record);
        float value = 0;
        std::memcpy(&value, record.data(), sizeof(value));
        const long count = std::lround(-value / kCount);
        DT_CHECK_MSG(std::abs(value + kCount * static_cast<float>(count)) < kCount / 100, "{}",
                     value);
        counts[row.key] = count;
      }
    }
  }
  return counts;
}

}  // namespace dt::sim
