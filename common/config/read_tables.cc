// Reads the optimizer section, and the tables with their optimizers.
#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/hash.h"
#include "common/base/text.h"
#include "common/config/load_job.h"
#include "common/config/read_sections.h"
#include "common/config/reader/values.h"

namespace dt {
namespace {

constexpr std::string_view kInits[] = {"zeros", "constant", "normal", "uniform"};

// Reads zeros, {normal: 0.01}, {file: F} or {file: F, normal: 0.01}. False: it is none of these.
bool ReadInit(const ConfigNode& node, TableConfig& table) {
  std::vector<std::pair<std::string, const ConfigNode*>> pairs;
  for (size_t i = 0; node.is_map() && i < node.keys.size(); ++i) {
    if (!node.items[i].is_scalar()) return false;
    pairs.emplace_back(node.keys[i], &node.items[i]);
  }
  const auto file = std::ranges::find(pairs, "file", &decltype(pairs)::value_type::first);
  if (file != pairs.end()) {
    table.init_file = BesideFile(file->second->text, file->second->mark);
    if (file->second->text.empty()) return false;
    pairs.erase(file);
    if (pairs.empty()) return true;
  }
  if (node.is_map() ? pairs.size() != 1 : !node.is_scalar()) return false;
  const std::string name = node.is_map() ? pairs[0].first : node.text;
  const auto known = std::find(std::begin(kInits), std::end(kInits), name);
  const auto value = node.is_map() ? ParseFloat(pairs[0].second->text) : std::nullopt;
  if (known == std::end(kInits) || (name == "zeros") == value.has_value()) return false;
  if (node.is_map() && !value.has_value()) return false;
  table.init.kind = static_cast<InitKind>(known - std::begin(kInits));
  table.init.value = static_cast<float>(value.value_or(0.0));
  return true;
}

void ReadInit(const MapReader& in, TableConfig& table) {
  const ConfigNode* node = in.Find("init");
  if (node == nullptr || ReadInit(*node, table)) return;
  in.problems().Add(node->mark, in.PathOf("init"),
                    fmt::format("found {}, expected zeros, or one of {{constant: x}}, {{normal: "
                                "stddev}}, {{uniform: half width}}, {{file: path}}",
                                Describe(*node)));
}

// The names of the optimizers that read a number: "adam, adamw".
std::string ReadersOf(std::string_view number) {
  std::vector<std::string> names;
  for (const OptimizerInfo& optimizer : kOptimizers) {
    if (Reads(optimizer, number)) names.emplace_back(optimizer.name);
  }
  return JoinText(names, ", ");
}

void ReadNumber(const MapReader& in, const OptimizerNumber& number, OptimizerSpec& spec) {
  float& value = spec.*number.value;
  in.Read(number.name, value);
  if (number.below_max && in.Has(number.name) && value >= number.max) {
    in.Report(number.name, fmt::format("found {}, expected a number below {}", value, number.max));
  }
  if (number.otherwise.empty() || Reads(InfoOf(spec.kind), number.name)) return;
  if (in.Has(number.name) && value != 0) {
    in.Report(number.name,
              fmt::format("is for {} only, the optimizer is {}; use {}", ReadersOf(number.name),
                          NameOf(spec.kind), number.otherwise));
  }
  value = 0;  // Also if it was inherited from an optimizer that reads it.
}

void ReadRule(const MapReader& in, OptimizerSpec& spec) {
  in.Read("name", spec.kind);
  in.Read("scope", spec.scope);
  for (const OptimizerNumber& number : kOptimizerNumbers) ReadNumber(in, number, spec);
}

void ReadLife(const MapReader& in, TableConfig& table) {
  const MapReader admission = in.Sub("admission");
  admission.Read("pushes", table.life.admission_pushes);
  admission.Read("sketch", table.life.sketch_bytes);
  const MapReader expiry = in.Sub("expiry");
  float hours = 0;
  expiry.Read("steps", table.life.expiry_steps);
  expiry.Read("hours", hours);
  // The type is Duration, not whole seconds, because tests use fractions of a second.
  table.life.expiry_time =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::ratio<3600>>(hours));
  if (expiry.Has("hours") && table.life.expiry_time <= Duration::zero()) {
    expiry.Report("hours", fmt::format("found {}, expected a number above 0",
                                       Describe(*expiry.Find("hours"))));
  }
  if (in.Has("expiry") && expiry.Has("steps") == expiry.Has("hours")) {
    in.Report("expiry", "expected {steps: t} or {hours: h}");
  }
  in.Read("freeze", table.life.freeze);
}

// Reports the keys of a schedule that are for other types.
void CheckScheduleKeys(const MapReader& in, std::string_view type) {
  constexpr std::pair<std::string_view, std::string_view> kTypesOf[] = {
      {"metric", "plateau"},
      {"patience", "plateau"},
      {"factor", "plateau|step"},
      {"every", "step"},
      {"steps", "warmup|cosine"},
      {"warmup", "plateau|step|cosine"},
      {"min_scale", "plateau|step|cosine"}};
  for (const auto& [key, of] : kTypesOf) {
    const std::vector<std::string> types = Alternatives(of);
    if (!in.Has(key) || std::ranges::find(types, type) != types.end()) continue;
    in.Report(key, fmt::format("is for type {}, the type is {}", JoinText(types, " or "), type));
  }
}

void ReadSchedule(const MapReader& in, DenseOptimizerConfig& optimizer) {
  const std::string type = in.Has("type") ? in.Find("type")->text : "plateau";
  if (type == "none") return;
  CheckScheduleKeys(in, type);
  RateSchedule& schedule = optimizer.schedule;
  if (type == "plateau") {
    PlateauConfig& plateau = optimizer.plateau.emplace();
    in.Read("metric", plateau.metric);
    in.Read("factor", plateau.factor);
    in.Read("patience", plateau.patience);
    in.Read("min_scale", plateau.min_scale);
  } else {
    in.Read("factor", schedule.factor);
    in.Read("min_scale", schedule.min_scale);
  }
  in.Read(type == "warmup" ? "steps" : "warmup", schedule.warmup);
  if (type == "cosine") schedule.curve = RateCurve::kCosine;
  if (type == "step") schedule.curve = RateCurve::kStep;
  if (type == "cosine") in.Read("steps", schedule.steps);
  if (type == "step") in.Read("every", schedule.every);
  if (type == "step" && schedule.every == 0) {
    in.Report("every", "missing, expected the steps after which the rate falls");
  }
  if (type == "warmup" && schedule.warmup == 0) {
    in.Report("steps", "missing, expected the steps of the warm-up");
  }
  if (schedule.steps > 0 && schedule.steps <= schedule.warmup) {
    in.Report("steps", fmt::format("found {}, expected more than the {} of the warm-up",
                                   schedule.steps, schedule.warmup));
  }
}

// Reports what `scope: dense` is not for.
void CheckDenseScope(const MapReader& in, const MapReader& rule, const TableConfig& table) {
  const OptimizerSpec& spec = table.optimizer;
  if (spec.scope != UpdateScope::kDense) return;
  if (!InfoOf(spec.kind).has_dense_scope) {
    rule.Report("scope", fmt::format("found dense, which {} does not have; use touched, or {}",
                                     NameOf(spec.kind), NameOf(OptimizerKind::kAdam)));
    return;
  }
  // Otherwise dense Adam moves a row faster and faster while it gets no gradient.
  const bool adam = InfoOf(spec.kind).value_states == 2;
  if (adam && spec.beta1 * spec.beta1 >= spec.beta2) {
    rule.Report("scope", fmt::format("found dense, which needs beta1 * beta1 below beta2; they are "
                                     "{} and {}",
                                     spec.beta1, spec.beta2));
  }
  if (in.Has("l2_scope")) {
    in.Report("l2_scope",
              "is for optimizer.scope: touched; with dense, l2 is applied at each step");
  }
  if (table.life.freeze) {
    in.Report("freeze", "is for optimizer.scope: touched; with dense, rows change at each step");
  }
}

// Names the device, and the rule that set it: "with device: gpu by parallel.place …".
std::string WithDevice(const TableConfig& table) {
  std::string device = fmt::format("with device: {}", NameOf(table.device));
  if (table.place_match.empty()) return device;
  return fmt::format("{} by parallel.place \"{}\" at {}", device, table.place_match,
                     MarkText(table.place_mark));
}

// Reports the keys that are not available for tables on workers.
void CheckOnWorker(const MapReader& in, const TableConfig& table) {
  const std::string where = WithDevice(table);
  const auto refuse = [&](std::string_view key, std::string_view found) {
    in.problems().AddNotYet(
        in.MarkOf(key), in.PathOf(key),
        fmt::format("found {}, which is not available yet {}; use device: ps", found, where));
  };
  if (in.Has("admission")) refuse("admission", "admission");
  if (in.Has("expiry")) refuse("expiry", "expiry");
  if (table.optimizer.scope == UpdateScope::kDense) refuse("optimizer", "scope: dense");
  if (table.dtype != FloatFormat::kFp32) refuse("dtype", NameOf(table.dtype));
  if (table.wire != FloatFormat::kFp32) refuse("wire", NameOf(table.wire));
  // Workers number rows with 32 bits.
  constexpr uint64_t kRowsMax = std::numeric_limits<uint32_t>::max();
  for (const auto& [key, rows] :
       {std::pair{"rows", table.keys_end}, std::pair{"expected_rows", table.expected_rows}}) {
    if (rows <= kRowsMax) continue;
    in.Report(key, fmt::format("found {}, expected at most {} {}; use device: ps", rows, kRowsMax,
                               where));
  }
}

}  // namespace

TableConfig ReadTable(const std::string& name, const MapReader& in, const OptimizerSpec& inherited,
                      std::span<const PlaceRule> rules) {
  TableConfig table;
  table.name = name;
  table.id = TableIdOf(name);
  table.mark = in.mark();
  table.optimizer = inherited;
  table.optimizer.l2 = 0;
  table.optimizer.l2_scope = L2Scope::kGap;
  in.Read("dim", table.dim);
  ReadInit(in, table);
  const MapReader rule = in.Sub("optimizer");
  ReadRule(rule, table.optimizer);
  table.scheduled = !(rule.Has("schedule") && rule.Find("schedule")->text == "none");
  in.Read("l2", table.optimizer.l2);
  in.Read("l2_scope", table.optimizer.l2_scope);
  in.Read("clip_row_norm", table.optimizer.clip_row_norm);
  in.Read("eval_default", table.eval_default);
  in.Read("dtype", table.dtype);
  in.Read("wire", table.wire);
  if (const ConfigNode* memory = in.Find("memory")) table.all_in_memory = memory->text == "all";
  ReadLife(in, table);
  in.Read("device", table.device);
  const auto rule_for = std::ranges::find_if(rules, [&](const PlaceRule& r) {
    return r.of == Placed::kTables && MatchesPattern(name, r.match);
  });
  if (table.device == Device::kAuto && rule_for != rules.end()) {
    table.device = rule_for->device;
    table.place_match = rule_for->match;
    table.place_mark = rule_for->mark;
  }
  in.Read("rows", table.keys_end);
  in.Read("expected_rows", table.expected_rows);
  if (in.Has("rows") && in.Has("expected_rows")) {
    in.Report("expected_rows", "is for open tables; rows says how many there are");
  }
  CheckDenseScope(in, rule, table);
  if (table.on_worker()) CheckOnWorker(in, table);
  return table;
}

void ReadOptimizer(const MapReader& in, DenseOptimizerConfig& optimizer) {
  ReadRule(in, optimizer.spec);
  in.Read("l2", optimizer.spec.l2);
  in.Read("clip_norm", optimizer.clip_norm);
  in.Read("device", optimizer.device);
  if (in.Has("schedule")) ReadSchedule(in.Sub("schedule"), optimizer);
}

}  // namespace dt
