#include "common/profile/device_profile.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "common/base/text.h"
#include "common/config/reader/values.h"
#include "common/config/reader/yaml_parse.h"

namespace dt {
namespace {

// A number of one part: its key, its variable, and whether it may be 0.
struct Figure {
  std::string_view key;
  double* value;
  bool may_be_zero;
};

struct Part {
  std::string_view key;
  std::string* source;
  std::string* name;  // Null: the part has no name.
  std::vector<Figure> figures;
};

Part PartOf(std::string_view key, ComputeRates& rates) {
  return {key,
          &rates.source,
          &rates.name,
          {{"fp32_flops", &rates.flops[0], false},
           {"tf32_flops", &rates.flops[1], false},
           {"bf16_flops", &rates.flops[2], false},
           {"memory_bytes_per_second", &rates.memory_bytes, false},
           {"launch_seconds", &rates.launch_seconds, true}}};
}

Part PartOf(std::string_view key, CopyRates& rates) {
  return {key,
          &rates.source,
          nullptr,
          {{"latency_seconds", &rates.latency_seconds, true},
           {"bytes_per_second", &rates.bytes, false}}};
}

Part PartOf(std::string_view key, ServerRates& rates) {
  return {key,
          &rates.source,
          nullptr,
          {{"latency_seconds", &rates.latency_seconds, true},
           {"row_seconds", &rates.row_seconds, true},
           {"bytes_per_second", &rates.bytes, false}}};
}

std::vector<Part> PartsOf(DeviceProfile& profile) {
  return {PartOf("cpu", profile.cpu), PartOf("accelerator", profile.accelerator),
          PartOf("to_accelerator", profile.to_accelerator),
          PartOf("from_accelerator", profile.from_accelerator), PartOf("server", profile.server)};
}

class Reader {
 public:
  explicit Reader(Problems& problems) : problems_(problems) {}

  void ReadProfile(const ConfigNode& root, DeviceProfile& profile) {
    if (!root.is_map()) {
      problems_.Add(root.mark, "",
                    fmt::format("found {}, expected a device profile, as dovetail bench devices "
                                "--out writes it",
                                Describe(root)));
      return;
    }
    const std::vector<Part> parts = PartsOf(profile);
    std::vector<std::string> names;
    for (const Part& part : parts) {
      names.emplace_back(part.key);
      if (const ConfigNode* node = root.Find(part.key)) ReadPart(*node, part);
    }
    RefuseOthers(root, "", names);
  }

 private:
  void ReadPart(const ConfigNode& node, const Part& part) {
    if (!node.is_map()) {
      problems_.Add(node.mark, part.key, fmt::format("found {}, expected a map", Describe(node)));
      return;
    }
    std::vector<std::string> names = {"source"};
    ReadText(node, part.key, "source", *part.source);
    if (part.name != nullptr) {
      names.emplace_back("name");
      ReadText(node, part.key, "name", *part.name);
    }
    for (const Figure& figure : part.figures) {
      names.emplace_back(figure.key);
      ReadFigure(node, part.key, figure);
    }
    RefuseOthers(node, part.key, names);
  }

  void ReadText(const ConfigNode& map, std::string_view path, std::string_view key,
                std::string& out) {
    const ConfigNode* node = map.Find(key);
    if (node == nullptr) return;
    if (node->is_scalar()) {
      out = node->text;
    } else {
      problems_.Add(node->mark, JoinPath(path, key),
                    fmt::format("found {}, expected a text", Describe(*node)));
    }
  }

  void ReadFigure(const ConfigNode& map, std::string_view path, const Figure& figure) {
    const ConfigNode* node = map.Find(figure.key);
    if (node == nullptr) return;
    const std::optional<double> value =
        node->is_scalar() && !node->quoted ? ParseFloat(node->text) : std::nullopt;
    if (value.has_value() && (*value > 0 || (figure.may_be_zero && *value == 0))) {
      *figure.value = *value;
      return;
    }
    problems_.Add(node->mark, JoinPath(path, figure.key),
                  fmt::format("found {}, expected a number {}", Describe(*node),
                              figure.may_be_zero ? "from 0 on" : "above 0"));
  }

  void RefuseOthers(const ConfigNode& map, std::string_view path,
                    const std::vector<std::string>& names) {
    for (size_t i = 0; i < map.keys.size(); ++i) {
      if (std::ranges::find(names, map.keys[i]) != names.end()) continue;
      problems_.Add(map.key_marks[i], JoinPath(path, map.keys[i]),
                    fmt::format("is no key of a device profile, expected one of {}{}",
                                JoinText(names, ", "), DidYouMean(map.keys[i], names)));
    }
  }

  Problems& problems_;
};

Result<DeviceProfile> FromTree(const ConfigNode& root, const std::string& file, Problems& problems,
                               DeviceProfile profile) {
  if (problems.empty()) Reader(problems).ReadProfile(root, profile);
  DT_TRY_STATUS(problems.ToStatus(file));
  return profile;
}

// The text in double quotes, such that YAML reads it back.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + "\"";
}

}  // namespace

double ComputeRates::SecondsOf(double flop_count, double bytes, Arithmetic arithmetic) const {
  return std::max(flop_count / flops[static_cast<size_t>(arithmetic)], bytes / memory_bytes);
}

double ServerRates::SecondsOf(double rows, double row_bytes, uint32_t servers) const {
  if (rows == 0) return 0;
  return 2 * latency_seconds + (rows * row_seconds + 2 * row_bytes / bytes) / servers;
}

DeviceProfile DefaultCardProfile(uint32_t threads) {
  DeviceProfile profile = DefaultEmulatedProfile(threads);
  // A recent server card with PCIe 5, at two thirds of its data sheet's rates.
  profile.accelerator.name = "a card";
  profile.accelerator.flops = {4e13, 2.5e14, 5e14};
  profile.accelerator.memory_bytes = 2e12;
  profile.accelerator.launch_seconds = 4e-6;
  profile.to_accelerator = {std::string(kShippedDefault), 1e-5, 4e10};
  profile.from_accelerator = profile.to_accelerator;
  return profile;
}

DeviceProfile DefaultEmulatedProfile(uint32_t threads) {
  const double count = std::max(1u, threads);
  DeviceProfile profile;
  // Half of the peak rate of a recent server core with AVX-512; bf16 is as fast as fp32.
  profile.cpu.name = fmt::format("{} threads", threads);
  profile.cpu.flops = {1e11 * count, 1e11 * count, 1e11 * count};
  profile.cpu.memory_bytes = std::min(1e10 * count, 1e11);
  profile.cpu.launch_seconds = 2e-6;
  profile.accelerator = profile.cpu;
  profile.accelerator.name = kEmulatedName;
  profile.to_accelerator = {std::string(kShippedDefault), 5e-6, profile.cpu.memory_bytes / 2};
  profile.from_accelerator = profile.to_accelerator;
  // A server on the same machine or near it, on a network of 25 Gbit/s.
  profile.server = {std::string(kShippedDefault), 1e-4, 1e-7, 3e9};
  return profile;
}

Result<DeviceProfile> ReadDeviceProfile(const std::string& path, DeviceProfile defaults) {
  Problems problems;
  const ConfigNode root = ParseYamlFile(path, {}, "parallel.profile", problems);
  return FromTree(root, path, problems, std::move(defaults));
}

Result<DeviceProfile> ParseDeviceProfile(const std::string& text, const std::string& file,
                                         DeviceProfile defaults) {
  Problems problems;
  const ConfigNode root = ParseYaml(text, file, 1, problems);
  return FromTree(root, file, problems, std::move(defaults));
}

std::string ToYaml(const DeviceProfile& profile) {
  DeviceProfile copy = profile;
  std::string text = "# Device profile, for parallel.profile: operations, bytes and seconds.\n";
  for (const Part& part : PartsOf(copy)) {
    text += fmt::format("{}:\n  source: {}\n", part.key, Quoted(*part.source));
    if (part.name != nullptr) text += fmt::format("  name: {}\n", Quoted(*part.name));
    for (const Figure& figure : part.figures) {
      text += fmt::format("  {}: {:.4g}\n", figure.key, *figure.value);
    }
  }
  return text;
}

std::string SourceText(const DeviceProfile& profile) {
  DeviceProfile copy = profile;
  std::vector<std::pair<std::string, std::vector<std::string>>> sources;  // Source → parts.
  for (const Part& part : PartsOf(copy)) {
    const auto same = [&](const auto& entry) { return entry.first == *part.source; };
    auto found = std::ranges::find_if(sources, same);
    if (found == sources.end()) found = sources.insert(sources.end(), {*part.source, {}});
    found->second.emplace_back(part.key);
  }
  std::vector<std::string> texts;
  for (const auto& [source, parts] : sources) {
    texts.push_back(fmt::format("{} {}", JoinText(parts, ", "), source));
  }
  return "constants: " + JoinText(texts, "; ");
}

}  // namespace dt
