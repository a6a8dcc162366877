#include "common/config/reader/key_table.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/config/reader/keys_model.h"
#include "common/config/reader/keys_run.h"
#include "common/specs/optimizer.h"

namespace dt {
namespace {

using enum KeyType;

std::string RangeText(const KeySpec& key) {
  const bool from = key.min > -kAnyNumber;
  const bool to = key.max < kAnyWhole && key.max != kAnyCount;
  if (from && to) return fmt::format(" ({} to {})", key.min, key.max);
  if (from && key.min != 0) return fmt::format(" ({} or more)", key.min);
  if (from && key.type == kFloat) return " (0 or more)";
  return "";
}

// The default of a number as text. The texts are never freed, because keys point to them.
std::string_view DefaultText(const OptimizerNumber& number) {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> all;
    for (const OptimizerNumber& n : kOptimizerNumbers) {
      all.push_back(fmt::format("{}", OptimizerSpec().*n.value));
    }
    return all;
  }();
  return texts[static_cast<size_t>(&number - kOptimizerNumbers)];
}

// A section whose `row` has no default inherits the numbers.
void AppendNumbers(const KeySpec& row, std::vector<KeySpec>& all) {
  for (const OptimizerNumber& number : kOptimizerNumbers) {
    KeySpec& key = all.emplace_back(row);
    key.name = number.name;
    key.min = number.min;
    key.max = std::min(number.max, kAnyNumber);
    if (!row.fallback.empty()) key.fallback = DefaultText(number);
    key.meaning = number.meaning;
  }
}

void AppendKeys(std::span<const KeySpec> rows, std::vector<KeySpec>& all) {
  for (const KeySpec& row : rows) {
    if (row.name == kEachOptimizerNumber) {
      AppendNumbers(row, all);
    } else {
      all.push_back(row);
    }
  }
}

const KeySpec* FindKey(std::span<const KeySpec> section, std::string_view name) {
  const auto found = std::ranges::find(section, name, &KeySpec::name);
  return found == section.end() ? nullptr : &*found;
}

const KeySpec* KeyBelow(std::string_view section, std::string_view path);

// Names that users choose may contain dots, so each dot is tried as the end of the name.
const KeySpec* KeyInItem(std::string_view section, std::string_view path) {
  for (size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1)) {
    if (const KeySpec* key = KeyBelow(section, path.substr(dot + 1))) return key;
  }
  return nullptr;
}

const KeySpec* KeyBelow(std::string_view section, std::string_view path) {
  const std::span<const KeySpec> keys = KeysOf(section);
  const size_t dot = std::min(path.find('.'), path.size());
  const KeySpec* const key = FindKey(keys, path.substr(0, dot));
  if (dot == path.size()) return key != nullptr ? key : FindKey(keys, "*");
  if (key == nullptr) return nullptr;
  const std::string_view rest = path.substr(dot + 1);
  if (key->type == kMap) return KeyBelow(key->values, rest);
  const bool items = key->type == kMapOf || key->type == kListOf;
  return items ? KeyInItem(key->values, rest) : nullptr;
}

}  // namespace

const std::vector<KeySpec>& AllKeys() {
  static const std::vector<KeySpec> keys = [] {
    std::vector<KeySpec> all;
    AppendKeys(keys::kModelKeys, all);
    AppendKeys(keys::kRunKeys, all);
    return all;
  }();
  return keys;
}

std::span<const KeySpec> KeysOf(std::string_view section) {
  const auto in_section = [section](const KeySpec& key) { return key.section == section; };
  const auto begin = std::find_if(AllKeys().begin(), AllKeys().end(), in_section);
  const auto end = std::find_if_not(begin, AllKeys().end(), in_section);
  DT_CHECK_MSG(begin != end, "no section {}", section);
  return {begin, end};
}

const KeySpec& KeyOf(std::string_view section, std::string_view name) {
  const KeySpec* const key = FindKey(KeysOf(section), name);
  DT_CHECK_MSG(key != nullptr, "no key {}.{}", section, name);
  return *key;
}

const KeySpec* KeyAt(std::string_view path) { return KeyBelow("", path); }

bool IsPath(std::string_view path_of_key) {
  return std::ranges::any_of(AllKeys(), [path_of_key](const KeySpec& key) {
    if (key.type != kPath && key.type != kPaths) return false;
    const std::string name = fmt::format("{}.{}", key.section, key.name);
    return path_of_key == name || path_of_key.starts_with(name + ".");
  });
}

std::vector<std::string> NamesOf(std::span<const KeySpec> keys) {
  std::vector<std::string> names;
  for (const KeySpec& key : keys) {
    if (key.name != "*") names.emplace_back(key.name);
  }
  return names;
}

std::vector<std::string> Alternatives(std::string_view values) {
  std::vector<std::string> out;
  if (values.empty()) return out;
  for (const std::string_view value : SplitText(values, '|')) out.emplace_back(value);
  return out;
}

std::string Expected(const KeySpec& key) {
  const std::string words =
      key.values.empty() ? "" : fmt::format(", or {}", JoinText(Alternatives(key.values), ", "));
  switch (key.type) {
    case kBool:
      return "true or false";
    case kUint:
      return fmt::format("a whole number{}{}", RangeText(key), words);
    case kFloat:
      return fmt::format("a number{}", RangeText(key));
    case kFloats:
      return "a list of numbers";
    case kText:
    case kPath:
      return "a text";
    case kTexts:
    case kPaths:
      return "a text or a list of texts";
    case kChoice:
      return fmt::format("one of {}", JoinText(Alternatives(key.values), ", "));
    case kDuration:
      return fmt::format("a time with its unit, such as 3s or 500ms ({} s to {} s)", key.min,
                         key.max);
    case kSize:
      return fmt::format("a size such as 512MiB or 8GiB{}", words);
    case kMap:
      return fmt::format("a map with {}", JoinText(NamesOf(KeysOf(key.values)), ", "));
    case kMapOf:
      return "a map of names to maps";
    case kListOf:
      return "a list of maps";
    case kFree:
      return "a value";
  }
  DT_UNREACHABLE();
}

}  // namespace dt
