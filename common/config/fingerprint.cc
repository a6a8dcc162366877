// The fingerprints compare processes and checkpoints: they hash the keys of the job file on which
// some processes must agree, each as a line "key: value". KeySpec::scope says who must agree; this
// file says how a key's value is written. A compared key without a text here does not compile.
#include <algorithm>
#include <optional>
#include <span>

#include "common/base/hash.h"
#include "common/base/text.h"
#include "common/config/fact.h"
#include "common/config/load_job.h"
#include "common/config/read_sections.h"
#include "common/config/reader/config_node.h"
#include "common/config/reader/keys_model.h"
#include "common/config/reader/keys_run.h"
#include "common/specs/loss_type.h"

namespace dt {
namespace {

// ---------------------------------------------------------------- keys and their texts

// The keys of a schedule are read into one of two structs, depending on its type.
std::optional<std::string> ScheduleType(const JobConfig& job) {
  if (job.optimizer.plateau.has_value()) return "plateau";
  return ValueText(job.optimizer.schedule.curve);
}
template <auto kOfPlateau, auto kOfSchedule>
std::optional<std::string> ByScheduleType(const JobConfig& job) {
  if (job.optimizer.plateau.has_value()) return Member<kOfPlateau>(*job.optimizer.plateau);
  return Member<kOfSchedule>(job.optimizer.schedule);
}

// Only in_batch_softmax has items.
template <auto kMember>
std::optional<std::string> OfItems(const LossConfig& loss) {
  return loss.type == "in_batch_softmax" ? Member<kMember>(loss) : std::nullopt;
}

template <auto kMember>
std::optional<std::string> OfFocal(const LossConfig& loss) {
  return loss.type == "focal" ? Member<kMember>(loss) : std::nullopt;
}
std::optional<std::string> Negatives(const LossConfig& loss) {
  return HasNegatives(loss.type) ? std::optional(loss.negatives) : std::nullopt;
}

template <Placed kOf>
std::optional<std::string> Pattern(const PlaceRule& rule) {
  return rule.of == kOf ? Member<&PlaceRule::match>(rule) : std::nullopt;
}

constexpr Fact<FileNames> kFileFacts[] = {
    {"data", "train", Member<&FileNames::train>},
    {"data", "valid", Member<&FileNames::valid>},
    {"data", "test", Member<&FileNames::test>},
};

std::optional<std::string> Edges(const ColumnSpec& column) {
  return column.quantiles > 0 ? std::nullopt : IfSet<&ColumnSpec::edges>(column);
}

constexpr Fact<ColumnSpec> kColumnFacts[] = {
    {"column", "type", Member<&ColumnSpec::type>},
    {"column", "role", Member<&ColumnSpec::role>},
    {"column", "separator", Member<&ColumnSpec::separator>},
    {"column", "length", Member<&ColumnSpec::length>},
    {"column", "max_len", Member<&ColumnSpec::max_len>},
    {"column", "fill", Member<&ColumnSpec::fill>},
    {"column", "weighted", Member<&ColumnSpec::weighted>},
    {"column", "transform", Member<&ColumnSpec::transform>},
    {"column", "of", Member<&ColumnSpec::of>},
    {"column", "from", IfSet<&ColumnSpec::from>},
    {"column", "weights", IfSet<&ColumnSpec::weights>},
    {"column", "hash", IfSet<&ColumnSpec::hash>},
    {"column", "clip", IfSet<&ColumnSpec::clip>},
    {"column", "standardise", IfSet<&ColumnSpec::standardise>},
    {"column", "edges", Edges},
    {"column", "quantiles", IfSet<&ColumnSpec::quantiles>},
};

// Two sections name an optimizer; PutOptimizer adds the optimizer's numbers.
constexpr Fact<OptimizerSpec> kOptimizerFacts[] = {
    {"table.optimizer", "name", Member<&OptimizerSpec::kind>},
    {"optimizer", "name", Member<&OptimizerSpec::kind>},
};

template <auto kMember>
constexpr auto kRule = Member<&TableConfig::optimizer, kMember>;
constexpr Fact<TableConfig> kTableFacts[] = {
    {"table", "dim", Member<&TableConfig::dim>},
    {"table", "dtype", Member<&TableConfig::dtype>},
    {"table", "init", Member<&TableConfig::init>},
    {"table", "eval_default", Member<&TableConfig::eval_default>},
    {"table", "l2", kRule<&OptimizerSpec::l2>},
    {"table", "l2_scope", kRule<&OptimizerSpec::l2_scope>},
    {"table", "clip_row_norm", kRule<&OptimizerSpec::clip_row_norm>},
    {"table", "device", Member<&TableConfig::device>},
    {"table", "wire", Member<&TableConfig::wire>},
    {"table", "rows", Member<&TableConfig::keys_end>},
    {"table", "freeze", Member<&TableConfig::life, &RowLifeConfig::freeze>},
    {"table.admission", "pushes", Member<&TableConfig::life, &RowLifeConfig::admission_pushes>},
    {"table.admission", "sketch", Member<&TableConfig::life, &RowLifeConfig::sketch_bytes>},
    {"table.expiry", "steps", Member<&TableConfig::life, &RowLifeConfig::expiry_steps>},
    {"table.expiry", "hours", Member<&TableConfig::life, &RowLifeConfig::expiry_time>},
};

constexpr Fact<TableConfig> kInheritFacts[] = {
    {"table.optimizer", "schedule",
     [](const TableConfig& table) -> std::optional<std::string> {
       return table.scheduled ? "inherit" : "none";
     }},
    // `touched` is not told, as by programs that had no scopes: their checkpoints stay valid.
    {"table.optimizer", "scope",
     [](const TableConfig& table) -> std::optional<std::string> {
       if (table.optimizer.scope == UpdateScope::kTouched) return std::nullopt;
       return std::string(NameOf(table.optimizer.scope));
     }},
};

constexpr Fact<NodeConfig> kNodeFacts[] = {
    {"node", "op", Member<&NodeConfig::op>},
    {"node", "inputs", Member<&NodeConfig::inputs>},
    {"node", "device", Member<&NodeConfig::device>},
    {"node", "strategy", IfAny<&NodeConfig::strategy>},
    {"node", "fusion", Member<&NodeConfig::fusion>},
};

constexpr Fact<LossConfig> kLossFacts[] = {
    {"loss", "name", Member<&LossConfig::name>},
    {"loss", "type", Member<&LossConfig::type>},
    {"loss", "input", Member<&LossConfig::input>},
    {"loss", "label", Member<&LossConfig::label>},
    {"loss", "weight", Member<&LossConfig::weight>},
    {"loss", "pos_weight", IfSet<&LossConfig::pos_weight>},
    {"loss", "gamma", OfFocal<&LossConfig::gamma>},
    {"loss", "alpha", OfFocal<&LossConfig::alpha>},
    {"loss", "negatives", Negatives},
    {"loss", "group", Member<&LossConfig::group>},
    {"loss", "top_k", Member<&LossConfig::top_k>},
    {"loss", "item", OfItems<&LossConfig::item>},
    {"loss", "item_id", OfItems<&LossConfig::item_id>},
    {"loss", "log_q", OfItems<&LossConfig::log_q>},
    {"loss", "temperature", OfItems<&LossConfig::temperature>},
};

constexpr Fact<PlaceRule> kPlaceFacts[] = {
    {"parallel.place", "match", Pattern<Placed::kOperators>},
    {"parallel.place", "table", Pattern<Placed::kTables>},
    {"parallel.place", "weights", Pattern<Placed::kWeights>},
    {"parallel.place", "device", Member<&PlaceRule::device>},
};

constexpr Fact<CutRule> kCutFacts[] = {
    {"parallel.cut", "match", Member<&CutRule::match>},
    {"parallel.cut", "strategy", Member<&CutRule::strategy>},
    {"parallel.cut", "out", IfAny<&CutRule::out>},
};

template <auto... kMember>
constexpr auto kData = Member<&JobConfig::data, kMember...>;
template <auto... kMember>
constexpr auto kDense = Member<&JobConfig::optimizer, kMember...>;
template <auto kMember>
constexpr auto kDenseRule = kDense<&DenseOptimizerConfig::spec, kMember>;
template <auto kMember>
constexpr auto kTrain = Member<&JobConfig::train, kMember>;
template <auto kMember>
constexpr auto kCluster = Member<&JobConfig::cluster, kMember>;
template <auto kMember>
std::optional<std::string> EarlyStop(const JobConfig& job) {
  return MemberIfAny<&TrainConfig::early_stop, kMember>(job.train);
}
template <auto kMember>
std::optional<std::string> Plateau(const JobConfig& job) {
  return MemberIfAny<&DenseOptimizerConfig::plateau, kMember>(job.optimizer);
}
std::optional<std::string> Command(const JobConfig& job) {
  return job.data.stream ? job.data.stream->command : job.data.command;
}
template <auto kMember>
std::optional<std::string> OfTopic(const JobConfig& job) {
  const std::optional<StreamConfig>& stream = job.data.stream;
  return stream && stream->command.empty() ? Member<kMember>(*stream) : std::nullopt;
}
std::optional<std::string> Partitions(const JobConfig& job) {
  const std::optional<StreamConfig>& stream = job.data.stream;
  return stream ? IfSet<&StreamConfig::partitions>(*stream) : std::nullopt;
}
template <auto kMember>
constexpr auto kSchedule = kDense<&DenseOptimizerConfig::schedule, kMember>;

constexpr Fact<JobConfig> kJobFacts[] = {
    {"", "job", Member<&JobConfig::job>},
    {"", "seed", Member<&JobConfig::seed>},
    {"train", "batch_size", kTrain<&TrainConfig::batch_size>},
    {"train", "slices", kTrain<&TrainConfig::slices>},
    {"optimizer", "l2", kDenseRule<&OptimizerSpec::l2>},
    {"optimizer", "clip_norm", kDense<&DenseOptimizerConfig::clip_norm>},
    {"optimizer", "device", kDense<&DenseOptimizerConfig::device>},
    {"optimizer.schedule", "type", ScheduleType},
    {"optimizer.schedule", "metric", Plateau<&PlateauConfig::metric>},
    {"optimizer.schedule", "patience", Plateau<&PlateauConfig::patience>},
    {"optimizer.schedule", "factor", ByScheduleType<&PlateauConfig::factor, &RateSchedule::factor>},
    {"optimizer.schedule", "min_scale",
     ByScheduleType<&PlateauConfig::min_scale, &RateSchedule::min_scale>},
    {"optimizer.schedule", "every", kSchedule<&RateSchedule::every>},
    {"optimizer.schedule", "steps", kSchedule<&RateSchedule::steps>},
    {"optimizer.schedule", "warmup", kSchedule<&RateSchedule::warmup>},
    {"data", "format", kData<&DataConfig::format>},
    {"data", "command", Command},
    {"data", "partitions", Partitions},
    {"data.kafka", "topic", OfTopic<&StreamConfig::topic>},
    {"data.kafka", "from", OfTopic<&StreamConfig::from_end>},
    {"data", "delimiter", kData<&DataConfig::delimiter>},
    {"data", "on_error", kData<&DataConfig::on_error>},
    {"data.shuffle", "window", kData<&DataConfig::shuffle_window>},
    {"data.shuffle", "by", kData<&DataConfig::by_slices>},
    {"data", "read", kData<&DataConfig::read_part>},
    {"train", "epochs", kTrain<&TrainConfig::epochs>},
    {"train", "max_steps", kTrain<&TrainConfig::max_steps>},
    {"train", "staleness", kTrain<&TrainConfig::staleness>},
    {"train", "cached_rows", kTrain<&TrainConfig::cached_rows>},
    {"train", "evaluate_every", kTrain<&TrainConfig::evaluate_every>},
    {"train", "math", kTrain<&TrainConfig::math>},
    {"train.early_stop", "metric", EarlyStop<&EarlyStopConfig::metric>},
    {"train.early_stop", "patience", EarlyStop<&EarlyStopConfig::patience>},
    {"parallel", "data", Member<&JobConfig::parallel, &ParallelConfig::data>},
    {"parallel", "all_to_all", Member<&JobConfig::parallel, &ParallelConfig::all_to_all>},
    {"parallel", "wire", Member<&JobConfig::parallel, &ParallelConfig::wire>},
    {"parallel.optimizer", "shard",
     Member<&JobConfig::parallel, &ParallelConfig::optimizer, &ShardConfig::on>},
    {"parallel.optimizer", "group",
     Member<&JobConfig::parallel, &ParallelConfig::optimizer, &ShardConfig::group>},
    {"parallel.optimizer", "threshold",
     Member<&JobConfig::parallel, &ParallelConfig::optimizer, &ShardConfig::threshold_bytes>},
    {"parallel", "fallback", Member<&JobConfig::parallel, &ParallelConfig::fall_back_to_cpu>},
    {"cluster", "replicas", kCluster<&ClusterConfig::replicas>},
    {"cluster", "shards", kCluster<&ClusterConfig::shards>},
    {"cluster", "lease", kCluster<&ClusterConfig::lease>},
    {"cluster", "scheduler_outage", kCluster<&ClusterConfig::scheduler_outage>},
    {"cluster", "wait_for_server", kCluster<&ClusterConfig::wait_for_server>},
    {"checkpoint", "every", Member<&JobConfig::checkpoint, &CheckpointConfig::every_steps>},
    {"checkpoint", "durability", Member<&JobConfig::checkpoint, &CheckpointConfig::durability>},
};

// ---------------------------------------------------------------- none is forgotten

template <class Of>
consteval size_t TimesTold(const KeySpec& key, std::span<const Fact<Of>> facts) {
  size_t times = 0;
  for (const Fact<Of>& fact : facts) times += fact.section == key.section && fact.key == key.name;
  return times;
}

// Every compared key must have exactly one text, and the other keys none. Returns the position of
// the first key that breaks this rule, or the number of keys if there is none.
consteval size_t FirstMistake(std::span<const KeySpec> keys) {
  for (size_t i = 0; i < keys.size(); ++i) {
    const KeySpec& key = keys[i];
    // PutOptimizer and PutModel write these.
    if (key.name == "*" || key.name == kEachOptimizerNumber) continue;
    const size_t times =
        TimesTold<JobConfig>(key, kJobFacts) + TimesTold<FileNames>(key, kFileFacts) +
        TimesTold<ColumnSpec>(key, kColumnFacts) + TimesTold<TableConfig>(key, kTableFacts) +
        TimesTold<TableConfig>(key, kInheritFacts) +
        TimesTold<OptimizerSpec>(key, kOptimizerFacts) + TimesTold<NodeConfig>(key, kNodeFacts) +
        TimesTold<LossConfig>(key, kLossFacts) + TimesTold<PlaceRule>(key, kPlaceFacts) +
        TimesTold<CutRule>(key, kCutFacts);
    if (times != (key.is_compared() ? 1 : 0)) return i;
  }
  return keys.size();
}
static_assert(FirstMistake(keys::kModelKeys) == std::size(keys::kModelKeys));
static_assert(FirstMistake(keys::kRunKeys) == std::size(keys::kRunKeys));

// ---------------------------------------------------------------- the two texts

// Collects the lines that a resumed training must match (resume), and those that only the processes
// of one run must share (run).
class FactLines {
 public:
  void Put(const KeySpec& key, std::string_view path, std::string_view text) {
    (key.scope == KeyScope::kRun ? run_ : resume_) += fmt::format("{}: {}\n", path, text);
  }
  // Adds a line that belongs to no key: names of tables, nodes and losses.
  void PutResumed(std::string_view path, std::string_view text) {
    resume_ += fmt::format("{}: {}\n", path, text);
  }
  // Adds the facts of `section` and of the sections inside it. `path` is the position of the
  // section in the job file, such as "model.tables.user" for "table".
  template <class Of>
  void PutAll(std::span<const Fact<Of>> facts, std::string_view section, std::string_view path,
              const Of& of) {
    for (const Fact<Of>& fact : facts) {
      if (!fact.section.starts_with(section)) continue;
      const std::optional<std::string> text = fact.text(of);
      if (!text.has_value()) continue;
      std::string_view inner = fact.section.substr(section.size());
      if (!section.empty() && !inner.empty()) inner.remove_prefix(1);
      Put(KeyOf(fact.section, fact.key), JoinPath(JoinPath(path, inner), fact.key), *text);
    }
  }
  const std::string& resume() const { return resume_; }
  const std::string& run() const { return run_; }

 private:
  std::string resume_, run_;
};

void PutOptimizer(std::string_view section, std::string_view path, const OptimizerSpec& spec,
                  FactLines& lines) {
  lines.PutAll<OptimizerSpec>(kOptimizerFacts, section, path, spec);
  for (const OptimizerNumber& number : kOptimizerNumbers) {
    lines.Put(KeyOf(section, number.name), JoinPath(path, number.name),
              ValueText(spec.*number.value));
  }
}

void PutTable(const TableConfig& table, FactLines& lines) {
  const std::string path = "model.tables." + table.name;
  const std::string optimizer = JoinPath(path, "optimizer");
  lines.PutResumed(path, "table");
  lines.PutAll<TableConfig>(kTableFacts, "table", path, table);
  PutOptimizer("table.optimizer", optimizer, table.optimizer, lines);
  lines.PutAll<TableConfig>(kInheritFacts, "table.optimizer", optimizer, table);
}

void PutNode(const NodeConfig& node, FactLines& lines) {
  const std::string path = "model.graph." + node.name;
  lines.PutResumed(path, "node");
  lines.PutAll<NodeConfig>(kNodeFacts, "node", path, node);
  for (const auto& [key, value] : node.attrs) {
    lines.Put(KeyOf("node", "*"), JoinPath(path, key), std::visit(AttrText(), value));
  }
}

void PutModel(const ModelConfig& model, FactLines& lines) {
  for (const TableConfig& table : model.tables) PutTable(table, lines);
  for (const NodeConfig& node : model.nodes) PutNode(node, lines);
  for (size_t i = 0; i < model.losses.size(); ++i) {
    const std::string path = fmt::format("model.loss.{}", i);
    lines.PutResumed(path, "loss");
    lines.PutAll<LossConfig>(kLossFacts, "loss", path, model.losses[i]);
  }
}

}  // namespace

void FillFingerprints(const FileNames& names, JobConfig& job) {
  FactLines lines;
  lines.PutAll<JobConfig>(kJobFacts, "", "", job);
  PutOptimizer("optimizer", "optimizer", job.optimizer.spec, lines);
  PutModel(job.model, lines);
  // One bound above 0 may change into another. Only 0 is different: it decides where dense
  // parameters and their state are stored.
  lines.PutResumed("train.staleness", job.train.asynchronous() ? "above 0" : "0");
  lines.PutAll<FileNames>(kFileFacts, "", "", names);
  for (const ColumnSpec& column : job.data.columns) {
    const std::string path = "data.columns." + column.name;
    lines.PutAll<ColumnSpec>(kColumnFacts, "column", path, column);
    if (column.needs_constants()) {
      lines.PutResumed(JoinPath(path, "constants"), ConstantsText(column));
    }
  }
  for (const PlaceRule& rule : job.parallel.place) {
    lines.PutAll<PlaceRule>(kPlaceFacts, "parallel.place", rule.path, rule);
  }
  for (const CutRule& rule : job.parallel.cut) {
    lines.PutAll<CutRule>(kCutFacts, "parallel.cut", rule.path, rule);
  }
  job.resume_text = lines.resume();
  job.resume_fingerprint = HashString(job.resume_text);
  job.fingerprint = HashString(job.resume_text + lines.run());
}

}  // namespace dt
