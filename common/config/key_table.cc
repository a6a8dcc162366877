#include "common/config/key_table.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/base/check.h"
#include "common/base/text.h"

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

}  // namespace

const std::vector<KeySpec>& AllKeys() {
  static const std::vector<KeySpec> keys = [] {
    std::vector<KeySpec> all(DataAndModelKeys().begin(), DataAndModelKeys().end());
    all.insert(all.end(), RunKeys().begin(), RunKeys().end());
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
  for (const KeySpec& key : KeysOf(section)) {
    if (key.name == name) return key;
  }
  CheckFailed(__FILE__, __LINE__, "the key is in the table", fmt::format("{}.{}", section, name));
}

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
