#include "cli/key_hint.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/base/text.h"
#include "common/config/reader/config_node.h"
#include "common/config/reader/key_table.h"

namespace dt::cli {
namespace {

// Sections of the job file whose keys users may mistake for flags.
constexpr std::array<std::string_view, 7> kSections = {
    "", "train", "data", "optimizer", "cluster", "checkpoint", "observe"};

// Null if there is no key of this name.
const KeySpec* FindKey(std::string_view name) {
  for (const KeySpec& key : AllKeys()) {
    const bool may_be_meant = std::ranges::find(kSections, key.section) != kSections.end();
    if (key.name == name && may_be_meant) return &key;
  }
  return nullptr;
}

}  // namespace

std::string KeyHint(std::span<char* const> arguments, std::string_view why) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string flag = arguments[i];
    if (!flag.starts_with("--") || why.find(flag) == std::string_view::npos) continue;
    const size_t equals = std::min(flag.find('='), flag.size());
    std::string name = flag.substr(2, equals - 2);
    std::ranges::replace(name, '-', '_');
    const KeySpec* const key = FindKey(name);
    if (key == nullptr) continue;
    std::string_view value = "VALUE";
    if (equals < flag.size()) {
      value = std::string_view(flag).substr(equals + 1);
    } else if (i + 1 < arguments.size() && !std::string_view(arguments[i + 1]).starts_with("--")) {
      value = arguments[i + 1];
    }
    return fmt::format("Keys of the job are set with --set {}={}\n",
                       JoinPath(key->section, key->name), value);
  }
  return "";
}

}  // namespace dt::cli
