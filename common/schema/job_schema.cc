#include "common/schema/job_schema.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/config/reader/key_table.h"
#include "common/config/reader/values.h"
#include "common/specs/optimizer.h"

namespace dt {
namespace {

using nlohmann::json;

std::string SectionName(std::string_view section) {
  return section.empty() ? "job" : std::string(section);
}

json Reference(std::string_view section) { return {{"$ref", "#/$defs/" + SectionName(section)}}; }

json ChoiceSchema(const KeySpec& key) {
  json values = json::array();
  for (const std::string& value : Alternatives(key.values)) values.push_back(value);
  return {{"enum", values}};
}

json NumberSchema(const KeySpec& key) {
  json schema = {{"type", key.type == KeyType::kUint ? "integer" : "number"}};
  if (key.type == KeyType::kUint) {
    schema["minimum"] = static_cast<uint64_t>(key.min);
    schema["maximum"] = static_cast<uint64_t>(key.max);
  } else if (key.min > -kAnyNumber) {
    schema["minimum"] = key.min;
  }
  return schema;
}

json TypeSchema(const KeySpec& key) {
  switch (key.type) {
    case KeyType::kBool:
      return {{"type", "boolean"}};
    case KeyType::kUint:
    case KeyType::kFloat:
      return NumberSchema(key);
    case KeyType::kFloats:
      return {{"type", "array"}, {"items", {{"type", "number"}}}};
    case KeyType::kText:
    case KeyType::kPath:
      return {{"type", "string"}};
    case KeyType::kTexts:
    case KeyType::kPaths:
      return {
          {"anyOf", {{{"type", "string"}}, {{"type", "array"}, {"items", {{"type", "string"}}}}}}};
    case KeyType::kChoice:
      return ChoiceSchema(key);
    case KeyType::kDuration:
      return {{"type", "string"}, {"pattern", "^[0-9.]+ ?(us|ms|s|m|min|h)$"}};
    case KeyType::kSize:
      return {
          {"anyOf",
           {{{"type", "integer"}}, {{"type", "string"}, {"pattern", "^[0-9.]+ ?([KMGT]i?)?B?$"}}}}};
    case KeyType::kMap:
      return Reference(key.values);
    case KeyType::kMapOf:
      return {{"type", "object"}, {"additionalProperties", Reference(key.values)}};
    case KeyType::kListOf:
      return {{"type", "array"}, {"items", Reference(key.values)}};
    case KeyType::kFree:
      return json::object();
  }
  return json::object();
}

bool HasWords(const KeySpec& key) {
  return !key.values.empty() && (key.type == KeyType::kUint || key.type == KeyType::kSize);
}

// Whether the value may also be text: ${NAME:-default} instead of a number.
bool MayExpand(const KeySpec& key) {
  return key.type == KeyType::kUint || key.type == KeyType::kFloat || key.type == KeyType::kBool;
}

json KeySchema(const KeySpec& key) {
  json schema = TypeSchema(key);
  if (HasWords(key) || MayExpand(key)) {
    json forms = json::array({schema});
    if (HasWords(key)) forms.push_back(ChoiceSchema(key));
    if (MayExpand(key)) forms.push_back({{"type", "string"}, {"pattern", "\\$\\{.*\\}"}});
    schema = {{"anyOf", forms}};
  }
  schema["description"] = std::string(key.meaning);
  if (!key.available.empty()) {
    schema["description"] = fmt::format("{} Available now: {}.", key.meaning, key.available);
  }
  if (!key.fallback.empty() && key.fallback != kRequired) schema["default"] = key.fallback;
  return schema;
}

json SectionSchema(std::string_view section) {
  json properties = json::object();
  json required = json::array();
  bool open = false;
  for (const KeySpec& key : KeysOf(section)) {
    if (key.name == "*") {
      open = true;
      continue;
    }
    properties[std::string(key.name)] = KeySchema(key);
    if (key.fallback == kRequired) required.push_back(key.name);
  }
  return {{"type", "object"},
          {"properties", properties},
          {"required", required},
          {"additionalProperties", open}};
}

// A cell of a Markdown table.
std::string Cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string TypeCell(const KeySpec& key) {
  switch (key.type) {
    case KeyType::kMap:
      return fmt::format("map: `{}`", key.values);
    case KeyType::kMapOf:
      return fmt::format("names to maps: `{}`", key.values);
    case KeyType::kListOf:
      return fmt::format("list of maps: `{}`", key.values);
    default:
      return Cell(Expected(key));
  }
}

std::string StateCell(const OptimizerInfo& optimizer) {
  if (optimizer.row_states > 0) return fmt::format("{} a row", optimizer.row_states);
  if (optimizer.value_states > 0) return fmt::format("{} a value", optimizer.value_states);
  return "none";
}

std::string DenseCell(const OptimizerInfo& optimizer) {
  const std::string_view dense = NameOf(ForDense(optimizer));
  if (optimizer.row_states > 0) return fmt::format("refused: use {}", dense);
  return optimizer.instead.has_value() ? fmt::format("as {}", dense) : "the same";
}

}  // namespace

std::string KeysMarkdown(std::string_view section) {
  std::string out = "| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const KeySpec& key : KeysOf(section)) {
    std::string meaning = Cell(key.meaning);
    if (!key.available.empty()) {
      const std::string words = JoinText(Alternatives(key.available), ", ");
      meaning += fmt::format(" *Available now: {}.*", words);
    }
    const std::string name = key.name == "*" ? "any other" : fmt::format("`{}`", key.name);
    const std::string fallback = key.fallback == kRequired ? std::string("required")
                                 : key.fallback.empty()    ? std::string()
                                                           : fmt::format("`{}`", key.fallback);
    out += fmt::format("| {} | {} | {} | {} |\n", name, TypeCell(key), Cell(fallback), meaning);
  }
  return out;
}

std::string OptimizersMarkdown() {
  std::string out =
      "| optimizer | state | numbers it reads | as optimizer of dense parameters |\n"
      "|---|---|---|---|\n";
  for (const OptimizerInfo& optimizer : kOptimizers) {
    out += fmt::format("| `{}` | {} | {} | {} |\n", optimizer.name, StateCell(optimizer),
                       JoinText(Alternatives(optimizer.reads), ", "), DenseCell(optimizer));
  }
  return out;
}

std::string JobSchemaJson() {
  json defs = json::object();
  for (const KeySpec& key : AllKeys()) {
    const std::string name = SectionName(key.section);
    if (!defs.contains(name)) defs[name] = SectionSchema(key.section);
  }
  const json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                       {"title", "Dovetail job file"},
                       {"$ref", "#/$defs/job"},
                       {"$defs", defs}};
  return schema.dump(2) + "\n";
}

}  // namespace dt
