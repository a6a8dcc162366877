// Goal: processes of one run that were started with different job files are refused, and so is a
// checkpoint of another job; keys that need not agree have no effect on either. Method: every key
// of the key table is changed in a job file, and the changes of the two fingerprints are compared
// with the key's entry in the table.
#include <set>

#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "common/config/reader/key_table.h"
#include "test/unit/common/config/temp_job.h"

namespace dt {
namespace {

constexpr std::string_view kJob = R"(job: ads
data:
  format: csv
  train: [train.csv]
  valid: [valid.csv]
  columns:
    - {name: click, role: label}
    - {name: bought, role: label}
    - {name: item, type: string}
    - {name: other, type: id}
    - {name: list, type: ids}
    - {name: crossed, type: id, transform: crossed, of: [item, other]}
    - {name: price}
model:
  tables:
    t: {dim: 16}
  graph:
    - {name: e, op: lookup, table: t, inputs: [item]}
    - {name: wide, op: linear, inputs: [price], units: 1}
    - {name: deep, op: mlp, inputs: [e, price, wide], units: [4, 4]}
  loss: [{type: binary_cross_entropy, input: deep, label: click}]
)";

struct KeyCase {
  std::string_view key;
  std::string_view flag;                      // A flag that changes the value of the key.
  std::vector<std::string_view> before = {};  // Flags without which the key has no meaning.
};
using Flags = std::vector<std::string_view>;
const Flags kPipe = {"data.train=~", "data.format=pipe", "data.command=a"};
const Flags kEndless = {"data.train=~", "data.format=pipe", "data.command=a",
                        "train.until=forever"};
const Flags kKafka = {"data.train=~", "data.format=kafka", "data.kafka={brokers: a, topic: b}"};
const Flags kPairs = {"model.loss.0={type: in_batch_softmax, input: deep, item: e}"};
const Flags kFocal = {"model.loss.0.type=focal"};
const Flags kNegatives = {"model.loss.0={type: bpr, input: deep, negatives: deep}"};
const Flags kCut = {"parallel.cut=[{match: deep, strategy: [[1, 1]]}]"};
const Flags kPlace = {"parallel.place=[{match: deep, device: cpu}]"};
const Flags kPlaceTable = {"parallel.place=[{table: t, device: cpu}]"};
const Flags kPlaceWeights = {"parallel.place=[{weights: deep, device: cpu}]"};

const KeyCase kCases[] = {
    {"job", "job=b"},
    {"seed", "seed=8"},
    {"data.format", "data.format=libffm", {"data.columns.crossed={name: crossed}"}},
    {"data.train", "data.train=[other.csv]"},
    {"data.valid", "data.valid=[other.csv]"},
    {"data.test", "data.test=[other.csv]"},
    {"data.command", "data.command=b", kPipe},
    {"data.partitions", "data.partitions=3", kEndless},
    {"data.kafka.brokers", "data.kafka.brokers=c", kKafka},
    {"data.kafka.topic", "data.kafka.topic=c", kKafka},
    {"data.kafka.from", "data.kafka.from=end", kKafka},
    {"data.kafka.wait", "data.kafka.wait=3s", kKafka},
    {"data.kafka.patience", "data.kafka.patience=3s", kKafka},
    {"data.kafka.settings", "data.kafka.settings=[a=b]", kKafka},
    {"train.until", "train.until=forever", kKafka},
    {"checkpoint.interval", "checkpoint.interval=9s"},
    {"data.delimiter", "data.delimiter=;"},
    {"data.on_error", "data.on_error=skip"},
    {"data.cache_dir", "data.cache_dir=/elsewhere"},
    {"data.shuffle.window", "data.shuffle.window=9"},
    {"data.shuffle.by", "data.shuffle.by=slices"},
    {"data.read", "data.read=part", {"data.shuffle.by=slices"}},
    {"data.columns.other.type", "data.columns.other.type=string"},
    {"data.columns.bought.role", "data.columns.bought.role=weight"},
    {"data.columns.list.separator", "data.columns.list.separator=;"},
    {"data.columns.list.length", "data.columns.list.length=3"},
    {"data.columns.list.max_len", "data.columns.list.max_len=3"},
    {"data.columns.price.fill", "data.columns.price.fill=1"},
    {"data.columns.list.weighted", "data.columns.list.weighted=true"},
    {"data.columns.price.transform", "data.columns.price.transform=log"},
    {"data.columns.crossed.of", "data.columns.crossed.of=[other, item]"},
    {"data.columns.price.from", "data.columns.price.from=cost"},
    {"data.columns.list.weights", "data.columns.list.weights=b", {"data.columns.list.weights=a"}},
    {"data.columns.other.hash", "data.columns.other.hash=9"},
    {"data.columns.price.clip", "data.columns.price.clip=[0, 1]"},
    {"data.columns.price.standardise", "data.columns.price.standardise=true"},
    {"data.columns.other.edges", "data.columns.other.edges=[1]"},
    {"data.columns.other.quantiles", "data.columns.other.quantiles=5"},
    {"model.tables.t.dim", "model.tables.t.dim=8"},
    {"model.tables.t.init", "model.tables.t.init={uniform: 0.5}"},
    {"model.tables.t.l2", "model.tables.t.l2=0.5"},
    {"model.tables.t.l2_scope", "model.tables.t.l2_scope=touched"},
    {"model.tables.t.optimizer.scope", "model.tables.t.optimizer.scope=dense"},
    {"model.tables.t.clip_row_norm", "model.tables.t.clip_row_norm=1"},
    {"model.tables.t.device", "model.tables.t.device=cpu"},
    {"model.tables.t.dtype", "model.tables.t.dtype=bf16"},
    {"model.tables.t.wire", "model.tables.t.wire=int8"},
    {"model.tables.t.memory", "model.tables.t.memory=all"},
    {"model.tables.t.eval_default", "model.tables.t.eval_default=zeros"},
    {"model.tables.t.rows", "model.tables.t.rows=99"},
    {"model.tables.t.expected_rows", "model.tables.t.expected_rows=99"},
    {"model.tables.t.freeze", "model.tables.t.freeze=true"},
    {"model.tables.t.admission.pushes", "model.tables.t.admission={pushes: 3}"},
    {"model.tables.t.admission.sketch",
     "model.tables.t.admission.sketch=1MiB",
     {"model.tables.t.admission={pushes: 3}"}},
    {"model.tables.t.expiry.steps", "model.tables.t.expiry={steps: 3}"},
    {"model.tables.t.expiry.hours", "model.tables.t.expiry={hours: 3}"},
    {"model.tables.t.optimizer.name", "model.tables.t.optimizer={name: sgd}"},
    {"model.tables.t.optimizer.schedule", "model.tables.t.optimizer={schedule: none}"},
    {"model.graph.wide.op", "model.graph.wide.op=mlp"},
    {"model.graph.deep.inputs", "model.graph.deep.inputs=[price, e, wide]"},
    {"model.graph.deep.device", "model.graph.deep.device=gpu"},
    {"model.graph.deep.strategy", "model.graph.deep.strategy=[[1, 1], [1, 1]]"},
    {"model.graph.deep.fusion", "model.graph.deep.fusion=3"},
    {"model.graph.deep.units", "model.graph.deep.units=[4, 5]"},
    {"model.loss.0.type", "model.loss.0.type=mse"},
    {"model.loss.0.input",
     "model.loss.0.input=deep",
     {"model.loss=[{type: mse, input: e, label: click}, {name: b, type: mse, input: deep, "
      "label: bought}]"}},
    {"model.loss.0.label", "model.loss.0.label=bought"},
    {"model.loss.0.name", "model.loss.0.name=other"},
    {"model.loss.0.weight", "model.loss.0.weight=2"},
    {"model.loss.0.pos_weight", "model.loss.0.pos_weight=2"},
    {"model.loss.0.gamma", "model.loss.0.gamma=3", kFocal},
    {"model.loss.0.alpha", "model.loss.0.alpha=0.5", kFocal},
    {"model.loss.0.negatives", "model.loss.0.negatives=wide", kNegatives},
    {"model.loss.0.group", "model.loss.0.group=item"},
    {"model.loss.0.top_k", "model.loss.0.top_k=5", {"model.loss.0.group=item"}},
    {"model.loss.0.item", "model.loss.0.item=wide", kPairs},
    {"model.loss.0.item_id", "model.loss.0.item_id=item", kPairs},
    {"model.loss.0.log_q", "model.loss.0.log_q=price", kPairs},
    {"model.loss.0.temperature", "model.loss.0.temperature=2", kPairs},
    {"optimizer.name", "optimizer.name=sgd"},
    {"optimizer.scope", "optimizer.scope=dense", {"model.tables.t.optimizer.scope=touched"}},
    {"optimizer.l2", "optimizer.l2=0.5"},
    {"optimizer.clip_norm", "optimizer.clip_norm=0.5"},
    {"optimizer.device", "optimizer.device=cpu"},
    {"optimizer.schedule.type", "optimizer.schedule={type: cosine}"},
    {"optimizer.schedule.metric",
     "optimizer.schedule.metric=valid.logloss",
     {"optimizer.schedule={type: plateau}"}},
    {"optimizer.schedule.factor",
     "optimizer.schedule.factor=0.2",
     {"optimizer.schedule={type: step, every: 9}"}},
    {"optimizer.schedule.factor",
     "optimizer.schedule.factor=0.2",
     {"optimizer.schedule={type: plateau}"}},
    {"optimizer.schedule.patience",
     "optimizer.schedule.patience=2",
     {"optimizer.schedule={type: plateau}"}},
    {"optimizer.schedule.every",
     "optimizer.schedule.every=8",
     {"optimizer.schedule={type: step, every: 9}"}},
    {"optimizer.schedule.steps",
     "optimizer.schedule.steps=8",
     {"optimizer.schedule={type: cosine, steps: 9}"}},
    {"optimizer.schedule.warmup",
     "optimizer.schedule.warmup=8",
     {"optimizer.schedule={type: cosine}"}},
    {"optimizer.schedule.min_scale",
     "optimizer.schedule.min_scale=0.5",
     {"optimizer.schedule={type: cosine}"}},
    {"init.from", "init.from=other"},
    {"init.optimizer", "init.optimizer=fresh", {"init.from=other"}},
    {"init.only", "init.only=t", {"init.from=other"}},
    {"init.arrays", "init.arrays=a.npz"},
    {"train.batch_size", "train.batch_size=64"},
    {"train.slices", "train.slices=4"},
    {"train.epochs", "train.epochs=11"},
    {"train.max_steps", "train.max_steps=9"},
    {"train.staleness", "train.staleness=3", {"train.staleness=2"}},
    {"train.cached_rows", "train.cached_rows=9", {"train.staleness=2"}},
    {"train.evaluate_every", "train.evaluate_every=9"},
    {"train.math", "train.math=bf16"},
    {"train.early_stop.metric", "train.early_stop.metric=valid.logloss", {"train.early_stop={}"}},
    {"train.early_stop.patience", "train.early_stop.patience=9", {"train.early_stop={}"}},
    {"parallel.fallback", "parallel.fallback=cpu"},
    {"parallel.data", "parallel.data=1", {"cluster.workers=2"}},
    {"parallel.all_to_all", "parallel.all_to_all=false"},
    {"parallel.fusion", "parallel.fusion=4MiB"},
    {"parallel.wire", "parallel.wire=bf16"},
    {"parallel.optimizer.shard", "parallel.optimizer.shard=true"},
    {"parallel.optimizer.group", "parallel.optimizer.group=2"},
    {"parallel.optimizer.threshold", "parallel.optimizer.threshold=1KiB"},
    {"parallel.cut.0.match", "parallel.cut.0.match=wide", kCut},
    {"parallel.cut.0.strategy", "parallel.cut.0.strategy=[[2, 1]]", kCut},
    {"parallel.cut.0.out", "parallel.cut.0.out=[[1, 1]]", kCut},
    {"parallel.place.0.match", "parallel.place.0.match=wide", kPlace},
    {"parallel.place.0.device", "parallel.place.0.device=gpu", kPlace},
    {"parallel.place.0.table", "parallel.place.0.table=\"?\"", kPlaceTable},
    {"parallel.place.0.weights", "parallel.place.0.weights=wide", kPlaceWeights},
    {"parallel.profile", "parallel.profile=p.json"},
    {"parallel.data_stats", "parallel.data_stats=/stats.json"},
    {"data.stats", "data.stats=s.json"},
    {"parallel.overlap", "parallel.overlap=false"},
    {"cluster.servers", "cluster.servers=3"},
    {"cluster.workers", "cluster.workers=3"},
    {"cluster.replicas", "cluster.replicas=2", {"cluster.servers=2"}},
    {"cluster.move_rate", "cluster.move_rate=9MiB"},
    {"cluster.shards", "cluster.shards=8"},
    {"cluster.scheduler", "cluster.scheduler=tcp://10.0.0.1:7000"},
    {"cluster.devices", "cluster.devices=cpu"},
    {"cluster.lease", "cluster.lease=9s"},
    {"cluster.restarts", "cluster.restarts=9"},
    {"cluster.scheduler_outage", "cluster.scheduler_outage=9s"},
    {"cluster.wait_for_server", "cluster.wait_for_server=9s"},
    {"cluster.start_timeout", "cluster.start_timeout=9s"},
    {"cluster.emulated.memory", "cluster.emulated.memory=9MiB"},
    {"cluster.emulated.flops", "cluster.emulated.flops=9"},
    {"cluster.emulated.memory_bandwidth", "cluster.emulated.memory_bandwidth=9"},
    {"cluster.emulated.link_bandwidth", "cluster.emulated.link_bandwidth=9"},
    {"cluster.worker.memory", "cluster.worker.memory=9MiB"},
    {"cluster.server.memory", "cluster.server.memory=9MiB"},
    {"cluster.server.dir", "cluster.server.dir=/elsewhere"},
    {"cluster.server.executors", "cluster.server.executors=9"},
    {"checkpoint.dir", "checkpoint.dir=/elsewhere"},
    {"checkpoint.every", "checkpoint.every=9"},
    {"checkpoint.keep", "checkpoint.keep=9"},
    {"checkpoint.durability", "checkpoint.durability=log"},
    {"checkpoint.log.max_bytes", "checkpoint.log.max_bytes=9MiB"},
    {"checkpoint.log.sync", "checkpoint.log.sync=true"},
    {"observe.http", "observe.http=off"},
    {"observe.trace", "observe.trace=1-2"},
    {"observe.log", "observe.log=json"},
    {"observe.tensorboard", "observe.tensorboard=off"},
    {"security.insecure", "security.insecure=true"},
    {"security.curve.key", "security.curve.key=k"},
    {"security.curve.own", "security.curve.own=k"},
    {"security.curve.allow", "security.curve.allow=[k]"},
};

JobConfig With(std::span<const std::string_view> flags, std::string_view flag = "") {
  LoadOptions options{
      .overrides = {flags.begin(), flags.end()}, .auto_slices = 2, .constants = false};
  if (!flag.empty()) options.overrides.emplace_back(flag);
  return Loaded(kJob, options);
}

void Expect(std::string_view key, const JobConfig& a, const JobConfig& b) {
  const KeySpec* const spec = KeyAt(key);
  ASSERT_NE(spec, nullptr) << key;
  const bool resumed = spec->scope == KeyScope::kModel || spec->scope == KeyScope::kTraining;
  EXPECT_EQ(a.resume_fingerprint != b.resume_fingerprint, resumed) << key;
  EXPECT_EQ(a.fingerprint != b.fingerprint, spec->is_compared()) << key;
}

TEST(Fingerprints, EachKeyIsComparedByThoseWhomTheTableNames) {
  for (const KeyCase& c : kCases) Expect(c.key, With(c.before), With(c.before, c.flag));
}

TEST(Fingerprints, EachNumberOfAnOptimizerIsCompared) {
  const Flags adamw = {"optimizer.name=adamw", "model.tables.t.optimizer={name: adamw}"};
  for (const std::string_view section : {"optimizer", "model.tables.t.optimizer"}) {
    for (const OptimizerNumber& number : kOptimizerNumbers) {
      const std::string key = fmt::format("{}.{}", section, number.name);
      // The table has an explicit value, so that it does not inherit the changed one.
      Flags before = adamw;
      const std::string own = fmt::format("model.tables.t.optimizer.{}=0.25", number.name);
      if (section == "optimizer") before.push_back(own);
      Expect(key, With(before), With(before, key + "=0.125"));
    }
  }
}

TEST(Fingerprints, EveryKeyWasTried) {
  std::set<const KeySpec*> tried;
  for (const KeyCase& c : kCases) tried.insert(KeyAt(c.key));
  for (const OptimizerNumber& number : kOptimizerNumbers) {
    tried.insert(&KeyOf("optimizer", number.name));
    tried.insert(&KeyOf("table.optimizer", number.name));
  }
  for (const KeySpec& key : AllKeys()) {
    if (key.scope == KeyScope::kInside || key.is_fixed()) continue;
    EXPECT_TRUE(tried.contains(&key)) << key.section << "." << key.name;
  }
}

TEST(Fingerprints, EqualFilesHaveEqualOnes) {
  EXPECT_EQ(With({}).fingerprint, With({}).fingerprint);
  const Flags directory = {"data.train=[d/train.csv]"};
  EXPECT_EQ(With(directory).fingerprint, With({}).fingerprint)
      << "directories differ between machines";
}

TEST(Fingerprints, AResumedTrainingMayNotBecomeAsynchronous) {
  const Flags stale = {"train.staleness=2", "train.slices=1"}, not_stale = {"train.slices=1"};
  EXPECT_NE(With(stale).resume_fingerprint, With(not_stale).resume_fingerprint);
}

// Checkpoints store these lines, so a change of them makes old checkpoints look like another job's.
TEST(Fingerprints, TheResumeTextCallsKeysAsTheJobFileDoes) {
  const JobConfig job = Loaded(kGoodJob, {.overrides = {}, .auto_slices = 2});
  EXPECT_EQ(job.resume_fingerprint, HashString(job.resume_text));
  EXPECT_EQ(job.resume_text, R"(job: ads
seed: 7
train.batch_size: 4096
train.slices: 2
optimizer.name: adam
model.tables.item: table
model.tables.item.dim: 16
model.tables.item.dtype: fp32
model.tables.item.init: {normal: 0.0001}
model.tables.item.eval_default: initial
model.tables.item.l2: 0.05
model.tables.item.l2_scope: gap
model.tables.item.clip_row_norm: 0
model.tables.item.optimizer.name: adagrad
model.tables.item.optimizer.lr: 0.02
model.tables.item.optimizer.momentum: 0.9
model.tables.item.optimizer.beta1: 0.9
model.tables.item.optimizer.beta2: 0.999
model.tables.item.optimizer.epsilon: 1e-08
model.tables.item.optimizer.initial_accumulator: 0
model.tables.item.optimizer.ftrl_l1: 0
model.tables.item.optimizer.ftrl_l2: 0
model.tables.item.optimizer.ftrl_beta: 1
model.tables.item.optimizer.weight_decay: 0
model.tables.item.optimizer.schedule: inherit
model.graph.e: node
model.graph.e.op: lookup
model.graph.e.inputs: [item]
model.graph.e.table: item
model.graph.deep: node
model.graph.deep.op: mlp
model.graph.deep.inputs: [e, price]
model.graph.deep.dropout: 0.2
model.graph.deep.units: [400, 400]
model.loss.0: loss
model.loss.0.name: click
model.loss.0.type: binary_cross_entropy
model.loss.0.input: deep
model.loss.0.label: click
model.loss.0.weight: 1
train.staleness: 0
)");
}

}  // namespace
}  // namespace dt
