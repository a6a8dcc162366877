#include "common/config/reader/map_reader.h"

#include <algorithm>
#include <filesystem>

#include "common/base/check.h"
#include "common/base/remote_path.h"
#include "common/base/text.h"
#include "common/config/reader/values.h"

namespace dt {
namespace {

bool IsOneOf(std::string_view text, std::string_view values) {
  const std::vector<std::string> all = Alternatives(values);
  return std::find(all.begin(), all.end(), text) != all.end();
}

// Compares values, not texts: a number can be written in several ways.
bool SameValue(KeyType type, std::string_view a, std::string_view b) {
  if (a == b) return true;
  if (type == KeyType::kUint) return ParseUint(a).has_value() && ParseUint(a) == ParseUint(b);
  if (type == KeyType::kSize) return ParseSize(a).has_value() && ParseSize(a) == ParseSize(b);
  if (type == KeyType::kBool) return ParseBool(a).has_value() && ParseBool(a) == ParseBool(b);
  return false;
}

bool InRange(const KeySpec& key, double value) { return value >= key.min && value <= key.max; }

bool IsNumberOf(const KeySpec& key, std::string_view text) {
  switch (key.type) {
    case KeyType::kUint: {
      const auto value = ParseUint(text);
      return value.has_value() && InRange(key, static_cast<double>(*value));
    }
    case KeyType::kFloat:
    case KeyType::kFloats: {
      const auto value = ParseFloat(text);
      return value.has_value() && InRange(key, *value);
    }
    case KeyType::kDuration: {
      const auto value = ParseDuration(text);
      return value.has_value() && InRange(key, std::chrono::duration<double>(*value).count());
    }
    case KeyType::kSize:
      return ParseSize(text).has_value();
    case KeyType::kBool:
      return ParseBool(text).has_value();
    default:
      return false;
  }
}

bool AllScalars(const ConfigNode& list) {
  return std::all_of(list.items.begin(), list.items.end(),
                     [](const ConfigNode& item) { return item.is_scalar(); });
}

bool AllMaps(const ConfigNode& node) {
  return std::all_of(node.items.begin(), node.items.end(),
                     [](const ConfigNode& item) { return item.is_map(); });
}

}  // namespace

std::string BesideFile(const std::string& path, const SourceMark& mark) {
  const std::filesystem::path written(path);
  if (mark.line == 0 || written.is_absolute() || path.empty() || IsRemotePath(path)) return path;
  return (std::filesystem::path(mark.file).parent_path() / written).lexically_normal().string();
}

MapReader::MapReader(const ConfigNode* node, std::string_view section, std::string path,
                     SourceMark mark, Problems& problems)
    : node_(node),
      section_(section),
      path_(std::move(path)),
      mark_(std::move(mark)),
      problems_(problems) {
  if (node_ == nullptr) return;
  if (!node_->is_map()) {
    node_ = nullptr;
    return;
  }
  CheckKeys();
}

void MapReader::CheckKeys() {
  const std::span<const KeySpec> keys = KeysOf(section_);
  const std::vector<std::string> names = NamesOf(keys);
  const bool open = keys.back().name == "*";
  for (size_t i = 0; i < node_->keys.size(); ++i) {
    const std::string& name = node_->keys[i];
    const auto known = std::find(names.begin(), names.end(), name);
    if (known != names.end()) {
      if (!CheckValue(KeyOf(section_, name), node_->items[i])) wrong_.push_back(name);
    } else if (!open) {
      const std::string near = DidYouMean(name, names);
      problems_.Add(
          node_->key_marks[i], PathOf(name),
          "unknown key" + (near.empty() ? "; known here: " + JoinText(names, ", ") : near));
    }
  }
  for (const KeySpec& key : keys) {
    if (key.fallback != kRequired || node_->Find(key.name) != nullptr) continue;
    problems_.Add(mark_, PathOf(key.name), fmt::format("missing, expected {}", Expected(key)));
  }
}

bool MapReader::CheckValue(const KeySpec& key, const ConfigNode& value) {
  const bool empty_default = value.is_null() && key.fallback != kRequired;
  if (empty_default) return true;
  if (!IsWellFormed(key, value)) {
    if (ReportItems(key, value)) return false;
    const bool choice = key.type == KeyType::kChoice && value.is_scalar();
    const std::string near = choice ? DidYouMean(value.text, Alternatives(key.values)) : "";
    problems_.Add(value.mark, PathOf(key.name),
                  fmt::format("found {}, expected {}{}", Describe(value), Expected(key), near));
    return false;
  }
  if (!IsAvailable(key, value)) {
    problems_.AddNotYet(value.mark, PathOf(key.name),
                        fmt::format("found {}, which is not available yet; available: {}",
                                    Describe(value), JoinText(Alternatives(key.available), ", ")));
    return false;
  }
  return true;
}

bool MapReader::ReportItems(const KeySpec& key, const ConfigNode& value) const {
  const bool items = (key.type == KeyType::kMapOf && value.is_map()) ||
                     (key.type == KeyType::kListOf && value.is_list());
  if (!items) return false;
  for (size_t i = 0; i < value.items.size(); ++i) {
    const ConfigNode& item = value.items[i];
    if (item.is_map()) continue;
    problems_.Add(item.mark, JoinPath(PathOf(key.name), value.NameOfItem(i)),
                  fmt::format("found {}, expected a map with {}", Describe(item),
                              JoinText(NamesOf(KeysOf(key.values)), ", ")));
  }
  return true;
}

bool MapReader::IsWellFormed(const KeySpec& key, const ConfigNode& value) const {
  switch (key.type) {
    case KeyType::kFree:
      return true;
    case KeyType::kMap:
      return value.is_map();
    case KeyType::kMapOf:
      return value.is_map() && AllMaps(value);
    case KeyType::kListOf:
      return value.is_list() && AllMaps(value);
    case KeyType::kTexts:
    case KeyType::kPaths:
      return value.is_scalar() || (value.is_list() && AllScalars(value));
    case KeyType::kFloats:
      return value.is_list() && std::ranges::all_of(value.items, [&](const ConfigNode& item) {
               return item.is_scalar() && IsNumberOf(key, item.text);
             });
    case KeyType::kText:
    case KeyType::kPath:
      return value.is_scalar();
    case KeyType::kChoice:
      return value.is_scalar() && IsOneOf(value.text, key.values);
    default:
      return value.is_scalar() && (IsOneOf(value.text, key.values) || IsNumberOf(key, value.text));
  }
}

bool MapReader::IsAvailable(const KeySpec& key, const ConfigNode& value) const {
  if (key.available.empty()) return true;
  if (!value.is_scalar()) return false;
  const std::vector<std::string> available = Alternatives(key.available);
  return std::any_of(available.begin(), available.end(), [&](const std::string& word) {
    return SameValue(key.type, value.text, word);
  });
}

const ConfigNode* MapReader::Find(std::string_view name) const {
  const KeySpec& key = KeyOf(section_, name);  // An unknown key is our own bug.
  if (node_ == nullptr) return nullptr;
  if (std::find(wrong_.begin(), wrong_.end(), name) != wrong_.end()) return nullptr;
  const ConfigNode* value = node_->Find(key.name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

bool MapReader::IsWord(std::string_view name) const {
  const ConfigNode* value = Find(name);
  return value != nullptr && value->is_scalar() &&
         IsOneOf(value->text, KeyOf(section_, name).values);
}

void MapReader::Read(std::string_view name, bool& out) const {
  if (const ConfigNode* value = Find(name)) out = ParseBool(value->text).value_or(out);
}

void MapReader::Read(std::string_view name, uint32_t& out) const {
  uint64_t wide = out;
  Read(name, wide);
  out = static_cast<uint32_t>(wide);
}

void MapReader::Read(std::string_view name, uint64_t& out) const {
  const ConfigNode* value = Find(name);
  if (value == nullptr || IsWord(name)) return;
  const bool size = KeyOf(section_, name).type == KeyType::kSize;
  out = (size ? ParseSize(value->text) : ParseUint(value->text)).value_or(out);
}

void MapReader::Read(std::string_view name, float& out) const {
  if (const ConfigNode* value = Find(name)) {
    out = static_cast<float>(ParseFloat(value->text).value_or(static_cast<double>(out)));
  }
}

void MapReader::Read(std::string_view name, std::string& out) const {
  if (const ConfigNode* value = Find(name)) out = value->text;
}

void MapReader::Read(std::string_view name, char& out) const {
  const ConfigNode* value = Find(name);
  if (value == nullptr) return;
  const std::string text = value->text == "\\t" || value->text == "tab" ? "\t" : value->text;
  if (text.size() != 1 || text[0] == '"' || text[0] == '\n') {
    Report(name, fmt::format("found {}, expected one character", Describe(*value)));
    return;
  }
  out = text[0];
}

void MapReader::Read(std::string_view name, Duration& out) const {
  if (const ConfigNode* value = Find(name)) out = ParseDuration(value->text).value_or(out);
}

int MapReader::ChoiceIndex(std::string_view name) const {
  const ConfigNode* value = Find(name);
  if (value == nullptr) return -1;
  const std::vector<std::string> all = Alternatives(KeyOf(section_, name).values);
  return static_cast<int>(std::find(all.begin(), all.end(), value->text) - all.begin());
}

std::vector<std::string> MapReader::Texts(std::string_view name) const {
  const ConfigNode* value = Find(name);
  if (value == nullptr) return {};
  if (value->is_scalar()) return {value->text};
  std::vector<std::string> texts;
  for (const ConfigNode& item : value->items) texts.push_back(item.text);
  return texts;
}

std::vector<float> MapReader::Floats(std::string_view name) const {
  std::vector<float> numbers;
  for (const std::string& text : Texts(name)) {
    numbers.push_back(static_cast<float>(ParseFloat(text).value_or(0)));
  }
  return numbers;
}

std::vector<std::string> MapReader::Paths(std::string_view name) const {
  const ConfigNode* value = Find(name);
  if (value == nullptr) return {};
  if (value->is_scalar()) return {BesideFile(value->text, value->mark)};
  std::vector<std::string> paths;
  for (const ConfigNode& item : value->items) paths.push_back(BesideFile(item.text, item.mark));
  return paths;
}

MapReader MapReader::Sub(std::string_view name) const {
  const KeySpec& key = KeyOf(section_, name);
  return {Find(name), key.values, PathOf(name), MarkOf(name), problems_};
}

std::vector<MapReader::Named> MapReader::Items(std::string_view name) const {
  std::vector<Named> out;
  const ConfigNode* value = Find(name);
  if (value == nullptr) return out;
  const KeySpec& key = KeyOf(section_, name);
  for (size_t i = 0; i < value->items.size(); ++i) {
    const ConfigNode& item = value->items[i];
    const std::string called = value->NameOfItem(i);
    const SourceMark& mark = value->is_map() ? value->key_marks[i] : item.mark;
    const std::string path = JoinPath(PathOf(name), called);
    out.push_back({called, MapReader(&item, key.values, path, mark, problems_)});
  }
  return out;
}

const SourceMark& MapReader::MarkOf(std::string_view name) const {
  if (node_ == nullptr) return mark_;
  for (size_t i = 0; i < node_->keys.size(); ++i) {
    if (node_->keys[i] == name) return node_->key_marks[i];
  }
  return mark_;
}

void MapReader::Report(std::string_view name, std::string_view text) const {
  problems_.Add(MarkOf(name), PathOf(name), text);
}

}  // namespace dt
