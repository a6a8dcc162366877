#include "common/config/reader/config_node.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/base/check.h"
#include "common/base/written_paths.h"
#include "common/config/reader/values.h"

namespace dt {
namespace {

std::optional<AttrValue> ScalarAttr(const ConfigNode& node) {
  if (!node.is_scalar()) return std::nullopt;
  if (node.quoted) return node.text;
  if (const auto value = ParseBool(node.text)) return *value;
  if (const auto value = ParseInt(node.text)) return *value;
  if (const auto value = ParseFloat(node.text)) return *value;
  return node.text;
}

template <class T>
std::optional<AttrValue> ListOf(const std::vector<AttrValue>& values) {
  std::vector<T> out;
  for (const AttrValue& value : values) {
    if (!std::holds_alternative<T>(value)) return std::nullopt;
    out.push_back(std::get<T>(value));
  }
  return out;
}

std::optional<AttrValue> ListAttr(const ConfigNode& node) {
  std::vector<AttrValue> values;
  bool any_double = false;
  for (const ConfigNode& item : node.items) {
    const auto value = ScalarAttr(item);
    if (!value.has_value()) return std::nullopt;
    any_double = any_double || std::holds_alternative<double>(*value);
    values.push_back(*value);
  }
  for (AttrValue& value : values) {
    const auto* whole = std::get_if<int64_t>(&value);
    if (any_double && whole != nullptr) value = static_cast<double>(*whole);
  }
  if (auto list = ListOf<int64_t>(values)) return list;
  if (auto list = ListOf<double>(values)) return list;
  return ListOf<std::string>(values);
}

}  // namespace

const ConfigNode* ConfigNode::Find(std::string_view key) const {
  const auto it = std::find(keys.begin(), keys.end(), key);
  return it == keys.end() ? nullptr : &items[static_cast<size_t>(it - keys.begin())];
}

ConfigNode* ConfigNode::Find(std::string_view key) {
  const auto it = std::find(keys.begin(), keys.end(), key);
  return it == keys.end() ? nullptr : &items[static_cast<size_t>(it - keys.begin())];
}

ConfigNode& ConfigNode::Append(std::string key, SourceMark key_mark, ConfigNode value) {
  DT_CHECK(is_map() && Find(key) == nullptr);
  keys.push_back(std::move(key));
  key_marks.push_back(std::move(key_mark));
  items.push_back(std::move(value));
  return items.back();
}

void ConfigNode::Remove(std::string_view key) {
  const auto it = std::find(keys.begin(), keys.end(), key);
  if (it == keys.end()) return;
  const auto index = it - keys.begin();
  keys.erase(it);
  key_marks.erase(key_marks.begin() + index);
  items.erase(items.begin() + index);
}

const SourceMark& ConfigNode::MarkOf(std::string_view path) const {
  const SourceMark* nearest = &mark;
  const ConfigNode* at = this;
  while (at != nullptr && !path.empty()) {
    const ConfigNode* next = nullptr;
    for (size_t i = 0; i < at->items.size(); ++i) {
      const std::string name = at->NameOfItem(i);
      const bool ends = path == name;
      if (!ends && !path.starts_with(name + ".")) continue;
      next = &at->items[i];
      nearest = at->is_map() ? &at->key_marks[i] : &next->mark;
      path.remove_prefix(std::min(path.size(), name.size() + 1));
      break;
    }
    at = next;
  }
  return *nearest;
}

std::string ConfigNode::NameOfItem(size_t index) const {
  if (is_map()) return keys[index];
  const ConfigNode* name = items[index].Find("name");
  return name != nullptr && name->is_scalar() ? name->text : std::to_string(index);
}

std::string Describe(const ConfigNode& node) {
  switch (node.kind) {
    case ConfigNode::Kind::kNull:
      return "nothing";
    case ConfigNode::Kind::kScalar:
      return fmt::format("\"{}\"", WithWrittenPaths(node.text).substr(0, 80));
    case ConfigNode::Kind::kList:
      return "a list";
    case ConfigNode::Kind::kMap:
      return "a map";
  }
  DT_UNREACHABLE();
}

std::string JoinPath(std::string_view parent, std::string_view key) {
  if (parent.empty()) return std::string(key);
  if (key.empty()) return std::string(parent);
  return fmt::format("{}.{}", parent, key);
}

std::string MarkText(const SourceMark& mark) {
  return mark.line > 0 ? fmt::format("{}:{}", mark.file, mark.line) : mark.file;
}

std::optional<AttrValue> AttrOf(const ConfigNode& node) {
  return node.is_list() ? ListAttr(node) : ScalarAttr(node);
}

}  // namespace dt
