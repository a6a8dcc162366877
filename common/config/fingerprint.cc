#include <algorithm>

#include "common/base/hash.h"
#include "common/base/text.h"
#include "common/config/config_node.h"
#include "common/config/load_job.h"
#include "common/config/read_sections.h"

namespace dt {
namespace {

// One "key: value" line per fact, called as the job file calls it. Floats have the fewest digits
// that tell them from all others: equal text means equal bits.
class Canon {
 public:
  template <class T>
  void Put(std::string_view key, const T& value) {
    text_ += fmt::format("{}: {}\n", key, value);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

// Under the keys of a section, such as "optimizer" or "model.tables.user.optimizer".
void PutRule(std::string_view section, const OptimizerSpec& o, Canon& canon) {
  const auto put = [&](std::string_view key, const auto& value) {
    canon.Put(JoinPath(section, key), value);
  };
  put("name", NameOf(o.kind));
  put("lr", o.lr);
  put("momentum", o.momentum);
  put("beta1", o.beta1);
  put("beta2", o.beta2);
  put("epsilon", o.epsilon);
  put("initial_accumulator", o.initial_accumulator);
  put("ftrl_l1", o.ftrl_l1);
  put("ftrl_l2", o.ftrl_l2);
  put("ftrl_beta", o.ftrl_beta);
  put("weight_decay", o.weight_decay);
}

struct AttrText {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return fmt::format("{}", v); }
  std::string operator()(const std::string& v) const {
    const bool plain =
        std::ranges::all_of(v, [](char c) { return c > ' ' && c != ',' && c != '"'; });
    return plain ? v : fmt::format("\"{}\"", v);
  }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    std::vector<std::string> items;
    for (const T& item : list) items.push_back((*this)(item));
    return "[" + JoinText(items, ", ") + "]";
  }
};

std::string InitText(const InitSpec& init) {
  if (init.kind == InitKind::kZeros) return std::string(NameOf(init.kind));
  return fmt::format("{{{}: {}}}", NameOf(init.kind), init.value);
}

void PutTable(const TableConfig& t, Canon& canon) {
  const std::string table = "model.tables." + t.name;
  const auto put = [&](std::string_view key, const auto& value) {
    canon.Put(JoinPath(table, key), value);
  };
  canon.Put(table, "table");
  put("dim", t.dim);
  put("dtype", NameOf(t.dtype));
  put("init", InitText(t.init));
  put("eval_default", NameOf(t.eval_default));
  put("l2", t.optimizer.l2);
  put("l2_scope", NameOf(t.optimizer.l2_scope));
  put("clip_row_norm", t.optimizer.clip_row_norm);
  PutRule(JoinPath(table, "optimizer"), t.optimizer, canon);
  put("optimizer.schedule", t.scheduled ? "inherit" : "none");
}

void PutNode(const NodeConfig& n, Canon& canon) {
  const std::string node = "model.graph." + n.name;
  canon.Put(node, "node");
  canon.Put(JoinPath(node, "op"), n.op);
  canon.Put(JoinPath(node, "inputs"), AttrText()(n.inputs));
  for (const auto& [key, value] : n.attrs) {
    canon.Put(JoinPath(node, key), std::visit(AttrText(), value));
  }
}

void PutLoss(size_t index, const LossConfig& l, Canon& canon) {
  const std::string loss = fmt::format("model.loss.{}", index);
  const auto put = [&](std::string_view key, const auto& value) {
    canon.Put(JoinPath(loss, key), value);
  };
  canon.Put(loss, "loss");
  put("name", l.name);
  put("type", l.type);
  put("input", l.input);
  put("label", l.label);
  put("weight", l.weight);
  if (l.type != "in_batch_softmax") return;
  put("item", l.item);
  put("item_id", l.item_id);
  put("log_q", l.log_q);
  put("temperature", l.temperature);
}

void PutModel(const ModelConfig& model, Canon& canon) {
  for (const TableConfig& table : model.tables) PutTable(table, canon);
  for (const NodeConfig& node : model.nodes) PutNode(node, canon);
  for (size_t i = 0; i < model.losses.size(); ++i) PutLoss(i, model.losses[i], canon);
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
              fmt::format("type={} role={} separator={} length={} max_len={} fill={} "
                          "weighted={} transform={}",
                          static_cast<int>(c.type), static_cast<int>(c.role), c.separator, c.length,
                          c.max_len, c.fill, c.weighted, c.transform));
    for (const std::string& of : c.of) canon.Put(fmt::format("data.columns.{}.of", c.name), of);
  }
}

void PutRun(const JobConfig& job, Canon& canon) {
  const DenseOptimizerConfig& o = job.optimizer;
  PutRule("optimizer", o.spec, canon);
  canon.Put("optimizer.l2", o.spec.l2);
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
              fmt::format("plateau metric={} factor={} patience={} min_scale={}", o.plateau->metric,
                          o.plateau->factor, o.plateau->patience, o.plateau->min_scale));
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
  canon.Put("train.staleness", job.train.asynchronous() ? "above 0" : "0");
  job.resume_text = canon.Take();
  job.resume_fingerprint = HashString(job.resume_text);

  Canon rest;
  PutLife(job.model, rest);
  PutData(job.data, names, rest);
  PutRun(job, rest);
  job.fingerprint = HashString(job.resume_text + rest.Take());
}

}  // namespace dt
