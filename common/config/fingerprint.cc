#include "common/base/hash.h"
#include "common/config/load_job.h"
#include "common/config/read_sections.h"

namespace dt {
namespace {

// One "key value" line per fact. Floats are written so that equal text means equal bits.
class Canon {
 public:
  template <class T>
  void Put(std::string_view key, const T& value) {
    text_ += fmt::format("{} {}\n", key, value);
  }
  void Put(std::string_view key, float value) { text_ += fmt::format("{} {:.9g}\n", key, value); }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string RuleText(const OptimizerSpec& o) {
  return fmt::format(
      "{} lr={:.9g} momentum={:.9g} beta1={:.9g} beta2={:.9g} epsilon={:.9g} "
      "initial_accumulator={:.9g} ftrl_l1={:.9g} ftrl_l2={:.9g} ftrl_beta={:.9g} "
      "weight_decay={:.9g} l2={:.9g} l2_scope={} clip_row_norm={:.9g}",
      NameOf(o.kind), o.lr, o.momentum, o.beta1, o.beta2, o.epsilon, o.initial_accumulator,
      o.ftrl_l1, o.ftrl_l2, o.ftrl_beta, o.weight_decay, o.l2,
      o.l2_scope == L2Scope::kGap ? "gap" : "touched", o.clip_row_norm);
}

struct AttrText {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return fmt::format("{:.17g}", v); }
  std::string operator()(const std::string& v) const { return fmt::format("\"{}\"", v); }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    std::string text = "[";
    for (const T& item : list) text += (*this)(item) + ",";
    return text + "]";
  }
};

void PutModel(const ModelConfig& model, Canon& canon) {
  for (const TableConfig& t : model.tables) {
    canon.Put(
        fmt::format("model.tables.{}", t.name),
        fmt::format("dim={} dtype={} init={}:{:.9g} scheduled={} eval_default={} optimizer={}",
                    t.dim, static_cast<int>(t.dtype), static_cast<int>(t.init.kind), t.init.value,
                    t.scheduled, static_cast<int>(t.eval_default), RuleText(t.optimizer)));
  }
  for (const NodeConfig& n : model.nodes) {
    std::string text = fmt::format("op={} inputs={}", n.op, AttrText()(n.inputs));
    for (const auto& [key, value] : n.attrs) {
      text += fmt::format(" {}={}", key, std::visit(AttrText(), value));
    }
    canon.Put(fmt::format("model.graph.{}", n.name), text);
  }
  for (const LossConfig& l : model.losses) {
    canon.Put(
        fmt::format("model.loss.{}", l.name),
        fmt::format("type={} input={} label={} weight={:.9g}", l.type, l.input, l.label, l.weight));
    if (l.type != "in_batch_softmax") continue;
    canon.Put(fmt::format("model.loss.{}.items", l.name),
              fmt::format("item={} item_id={} log_q={} temperature={:.9g}", l.item, l.item_id,
                          l.log_q, l.temperature));
  }
}

// Not part of what a checkpoint must match: a trained job may be frozen for fine-tuning, or begin
// to forget.
void PutLife(const ModelConfig& model, Canon& canon) {
  for (const TableConfig& t : model.tables) {
    canon.Put(fmt::format("model.tables.{}.life", t.name),
              fmt::format("pushes={} sketch={} steps={} time={} freeze={}", t.life.admission_pushes,
                          t.life.sketch_bytes, t.life.expiry_steps, t.life.expiry_time.count(),
                          t.life.freeze));
  }
}

void PutData(const DataConfig& data, const FileNames& names, Canon& canon) {
  canon.Put("data.format", NameOf(data.format));
  canon.Put("data.train", names.train);
  canon.Put("data.valid", names.valid);
  canon.Put("data.test", names.test);
  canon.Put("data.command", data.command);
  canon.Put("data.delimiter", static_cast<int>(data.delimiter));
  canon.Put("data.shuffle.window", data.shuffle_window);
  canon.Put("data.on_error", static_cast<int>(data.on_error));
  for (const ColumnSpec& c : data.columns) {
    canon.Put(fmt::format("data.columns.{}", c.name),
              fmt::format("type={} role={} separator={} length={} max_len={} fill={:.9g} "
                          "weighted={} transform={}",
                          static_cast<int>(c.type), static_cast<int>(c.role), c.separator, c.length,
                          c.max_len, c.fill, c.weighted, c.transform));
    for (const std::string& of : c.of) canon.Put(fmt::format("data.columns.{}.of", c.name), of);
  }
}

void PutRun(const JobConfig& job, Canon& canon) {
  const DenseOptimizerConfig& o = job.optimizer;
  canon.Put("optimizer", RuleText(o.spec));
  canon.Put("optimizer.clip_norm", o.clip_norm);
  canon.Put("optimizer.device", static_cast<int>(o.device));
  canon.Put("parallel.fallback", job.parallel.fall_back_to_cpu);
  for (const PlaceRule& rule : job.parallel.place) {
    if (rule.of == Placed::kTables) continue;  // Their device says it.
    canon.Put(rule.of == Placed::kWeights ? "parallel.place.weights" : "parallel.place",
              fmt::format("{} {}", rule.match, static_cast<int>(rule.device)));
  }
  for (const NodeConfig& node : job.model.nodes) {
    if (node.device == Device::kAuto) continue;
    canon.Put(fmt::format("model.graph.{}.device", node.name), static_cast<int>(node.device));
  }
  if (o.plateau.has_value()) {
    canon.Put("optimizer.schedule",
              fmt::format("plateau metric={} factor={:.9g} patience={} min_scale={:.9g}",
                          o.plateau->metric, o.plateau->factor, o.plateau->patience,
                          o.plateau->min_scale));
  }
  const RateSchedule& s = o.schedule;
  canon.Put(
      "optimizer.schedule.steps",
      fmt::format("warmup={} curve={} steps={} every={} factor={:.9g} min_scale={:.9g}", s.warmup,
                  static_cast<int>(s.curve), s.steps, s.every, s.factor, s.min_scale));
  canon.Put("train.epochs", job.train.epochs);
  canon.Put("train.max_steps", job.train.max_steps);
  canon.Put("train.staleness", job.train.staleness);
  canon.Put("train.cached_rows", job.train.cached_rows);
  canon.Put("train.evaluate_every", job.train.evaluate_every);
  canon.Put("train.math", job.train.math);
  if (job.train.early_stop.has_value()) {
    canon.Put("train.early_stop", fmt::format("metric={} patience={}", job.train.early_stop->metric,
                                              job.train.early_stop->patience));
  }
  for (const TableConfig& t : job.model.tables) {
    canon.Put(fmt::format("model.tables.{}.wire", t.name), static_cast<int>(t.wire));
    if (t.on_worker()) {
      canon.Put(fmt::format("model.tables.{}.device", t.name), static_cast<int>(t.device));
    }
    if (t.keys_end != 0) canon.Put(fmt::format("model.tables.{}.rows", t.name), t.keys_end);
  }
  const ClusterConfig& c = job.cluster;
  canon.Put("cluster.servers", c.servers);
  canon.Put("cluster.workers", c.workers);
  canon.Put("cluster.shards", c.shards);
  canon.Put("cluster.lease", c.lease.count());
  canon.Put("cluster.scheduler_outage", c.scheduler_outage.count());
  canon.Put("cluster.wait_for_server", c.wait_for_server.count());
  canon.Put("checkpoint.every", job.checkpoint.every_steps);
  canon.Put("checkpoint.durability", static_cast<uint32_t>(job.checkpoint.durability));
}

}  // namespace

void FillFingerprints(const FileNames& names, JobConfig& job) {
  Canon canon;
  canon.Put("job", job.job);
  canon.Put("seed", job.seed);
  canon.Put("train.batch_size", job.train.batch_size);
  canon.Put("train.slices", job.train.slices);
  canon.Put("optimizer.name", NameOf(job.optimizer.spec.kind));
  PutModel(job.model, canon);
  if (job.train.asynchronous()) canon.Put("train.staleness", "above 0");
  job.resume_text = canon.Take();
  job.resume_fingerprint = HashString(job.resume_text);

  Canon rest;
  PutLife(job.model, rest);
  PutData(job.data, names, rest);
  PutRun(job, rest);
  job.fingerprint = HashString(job.resume_text + rest.Take());
}

}  // namespace dt
