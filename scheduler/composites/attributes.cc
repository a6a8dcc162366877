#include "scheduler/composites/attributes.h"

#include <algorithm>
#include <map>

#include "common/base/text.h"
#include "common/config/reader/config_node.h"
#include "scheduler/composites/infer_node.h"

namespace dt::scheduler {
namespace {

constexpr double kAnyMin = -1e300, kAnyMax = 1e300;
constexpr std::string_view kActivations[] = {"none", "relu",  "sigmoid", "tanh",
                                             "gelu", "prelu", "dice"};

using Rules = std::vector<AttrRule>;

Rules Joined(Rules rules, const Rules& more) {
  rules.insert(rules.end(), more.begin(), more.end());
  return rules;
}

AttrRule Whole(std::string_view name, double min, double max) {
  return {name, AttrType::kInt, false, min, max};
}
AttrRule Real(std::string_view name, double min, double max) {
  return {name, AttrType::kFloat, false, min, max};
}
AttrRule Flag(std::string_view name) { return {name, AttrType::kBool}; }
AttrRule Choice(std::string_view name, std::vector<std::string_view> choices) {
  return {name, AttrType::kText, false, kAnyMin, kAnyMax, std::move(choices)};
}
AttrRule Needed(AttrRule rule) {
  rule.required = true;
  return rule;
}

AttrRule Activation() {
  return Choice("activation", {std::begin(kActivations), std::end(kActivations)});
}

// Attributes of the composites in attention.cc, and of cin.
void AddAttention(const Rules& init, std::map<std::string_view, Rules>& rules) {
  const Rules layer = Joined(
      {Whole("layers", 1, 64), Whole("heads", 1, 1024), Flag("masked"), Real("dropout", 0, 0.999)},
      init);
  const AttrRule units = Needed({"units", AttrType::kInts, false, 1, 1 << 20});
  rules["attention"] =
      Joined({Whole("units", 1, 1 << 20), Flag("residual"), Flag("scale"), Activation()}, layer);
  rules["transformer"] =
      Joined({Whole("hidden", 1, 1 << 20), Choice("norm", {"pre", "post"})}, layer);
  rules["layer_norm"] = {Real("epsilon", 0, 1)};
  rules["cin"] = Joined({units, Flag("split_half"), Activation()}, init);
}

// Attributes of composites. Those of operators are in their OpSpec.
std::map<std::string_view, Rules> MakeRules() {
  const AttrRule table = Needed({"table", AttrType::kText});
  const Rules init = {
      Choice("init", {"zeros", "constant", "normal", "uniform", "xavier_normal", "xavier_uniform"}),
      Real("init_value", kAnyMin, kAnyMax)};
  const Rules norm = {Real("momentum", 0, 1), Real("epsilon", 0, 1)};
  const Rules layer =
      Joined({Activation(), Flag("bias"), Flag("batch_norm"), Real("batch_norm_momentum", 0, 1),
              Real("batch_norm_epsilon", 0, 1), Real("dropout", 0, 0.999)},
             init);
  const AttrRule layers = Needed(Whole("layers", 1, 64));
  const AttrRule units = Needed({"units", AttrType::kInts, false, 1, 1 << 20});
  std::map<std::string_view, Rules> rules = {
      {"lookup", {table, Flag("weighted")}},
      {"embedding", Joined({Whole("rows", 1, 4294967295.0),
                            Needed(Whole("dim", 1, 1 << 20)),
                            Flag("weighted"),
                            {"manual_split", AttrType::kInts, false, 1, 4294967295.0}},
                           init)},
      {"bag", {table, Flag("weighted"), Choice("combiner", {"sum", "mean", "sqrtn"})}},
      {"linear", Joined({{"table", AttrType::kText}, Flag("weighted"), Flag("bias")}, init)},
      {"dense", Joined({Needed(Whole("units", 1, 1 << 20))}, layer)},
      {"mlp", Joined({units}, layer)},
      {"mmoe",
       Joined({units, Needed(Whole("experts", 1, 1024)), Needed(Whole("tasks", 1, 1024))}, layer)},
      {"moe", Joined({units, Needed(Whole("experts", 1, 1024)), Whole("k", 1, 1024), Flag("bias"),
                      Choice("activation", {"none", "relu", "sigmoid", "tanh", "gelu"})},
                     init)},
      {"cross", Joined({layers}, init)},
      {"cross_v2", Joined({layers, Whole("rank", 1, 1 << 20)}, init)},
      {"batch_norm", norm},
      {"dice", norm},
      {"sequence", {table, Flag("weighted"), Whole("max_len", 1, 65536)}},
      {"din_attention",
       Joined({{"units", AttrType::kInts, false, 1, 1 << 20}, Activation(), Flag("softmax")},
              init)},
      {"split", {Whole("axis", -8, 8), Needed({"sizes", AttrType::kInts, false, 1, 1 << 30})}},
      {"concat", {Whole("axis", -8, 8)}},
      {"parameter", Joined({Needed({"shape", AttrType::kInts, false, 1, 1 << 30})}, init)},
  };
  AddAttention(init, rules);
  return rules;
}

std::string_view Expected(AttrType type) {
  switch (type) {
    case AttrType::kBool:
      return "true or false";
    case AttrType::kInt:
      return "a whole number";
    case AttrType::kFloat:
      return "a number";
    case AttrType::kText:
      return "a word";
    case AttrType::kInts:
      return "a list of whole numbers";
  }
  return "";
}

template <class T>
std::vector<int64_t> AsList(const T& value) {
  if constexpr (std::is_same_v<T, int64_t>) return {value};
  if constexpr (std::is_same_v<T, std::vector<int64_t>>) return value;
  return {};
}

// False if the value has another type than the rule asks for.
bool Convert(const AttrRule& rule, AttrValue& value) {
  if (rule.type == AttrType::kFloat && std::holds_alternative<int64_t>(value)) {
    value = static_cast<double>(std::get<int64_t>(value));
  }
  if (rule.type == AttrType::kInts) {
    value = std::visit([](const auto& v) { return AsList(v); }, value);
    return !std::get<std::vector<int64_t>>(value).empty();
  }
  switch (rule.type) {
    case AttrType::kBool:
      return std::holds_alternative<bool>(value);
    case AttrType::kInt:
      return std::holds_alternative<int64_t>(value);
    case AttrType::kFloat:
      return std::holds_alternative<double>(value);
    default:
      return std::holds_alternative<std::string>(value);
  }
}

std::string RangeProblem(const AttrRule& rule, double number) {
  if (number >= rule.min && number <= rule.max) return "";
  if (number < rule.min && rule.max >= 1 << 20)
    return fmt::format("found {}, expected {} or more", number, rule.min);
  return fmt::format("found {}, expected {} to {}", number, rule.min, rule.max);
}

std::string ValueProblem(const AttrRule& rule, const AttrValue& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) {
    return RangeProblem(rule, static_cast<double>(*whole));
  }
  if (const auto* real = std::get_if<double>(&value)) return RangeProblem(rule, *real);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    for (const int64_t item : *list) {
      std::string problem = RangeProblem(rule, static_cast<double>(item));
      if (!problem.empty()) return problem;
    }
  }
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr || rule.choices.empty()) return "";
  if (std::find(rule.choices.begin(), rule.choices.end(), *text) != rule.choices.end()) return "";
  const std::vector<std::string> words(rule.choices.begin(), rule.choices.end());
  return fmt::format("found \"{}\", expected one of {}{}", *text, JoinText(words, ", "),
                     DidYouMean(*text, words));
}

std::string OneProblem(std::span<const AttrRule> rules, const std::string& op,
                       const std::string& name, AttrValue& value) {
  const auto rule =
      std::find_if(rules.begin(), rules.end(), [&](const AttrRule& r) { return r.name == name; });
  if (rule == rules.end()) {
    std::vector<std::string> names;
    for (const AttrRule& r : rules) names.emplace_back(r.name);
    const std::string near = DidYouMean(name, names);
    return fmt::format("is no attribute of {}{}", op,
                       near.empty() && !names.empty() ? "; it has " + JoinText(names, ", ") : near);
  }
  if (!Convert(*rule, value)) return fmt::format("expected {}", Expected(rule->type));
  return ValueProblem(*rule, value);
}

}  // namespace

std::vector<AttrRule> AttrRules(std::string_view op) {
  static const std::map<std::string_view, Rules> rules = MakeRules();
  if (const auto found = rules.find(op); found != rules.end()) return found->second;
  Rules own;
  if (const OpSpec* spec = FindOp(op); spec != nullptr) {
    for (const AttrSpec& attr : spec->attrs) own.push_back({attr.name, attr.type, attr.required});
  }
  return own;
}

std::span<const std::string_view> Activations() { return kActivations; }

Attrs CheckedAttrs(const NodeConfig& node, std::vector<Status>& problems) {
  const Rules rules = AttrRules(node.op);
  const auto add = [&](std::string_view key, const Status& problem) {
    const std::string path = JoinPath("model.graph." + node.name, key);
    problems.push_back(AtMark(Prefixed(problem, path), node.mark));
  };
  Attrs attrs = node.attrs;
  // Stage 0 is the only one that exists; pipelines are not available yet.
  if (const auto stage = attrs.find("stage"); stage != attrs.end()) {
    if (stage->second != AttrValue(int64_t{0})) {
      add("stage", NotYet("pipelines are not available yet"));
    }
    attrs.erase(stage);
  }
  for (auto& [name, value] : attrs) {
    const std::string problem = OneProblem(rules, node.op, name, value);
    if (!problem.empty()) add(name, Invalid("{}", problem));
  }
  for (const AttrRule& rule : rules) {
    if (!rule.required || attrs.contains(std::string(rule.name))) continue;
    add(rule.name, Invalid("missing, {} needs {}", node.op, Expected(rule.type)));
  }
  return attrs;
}

}  // namespace dt::scheduler
