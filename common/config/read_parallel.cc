#include <algorithm>
#include <limits>

#include "common/base/text.h"
#include "common/config/read_sections.h"
#include "common/config/reader/values.h"

namespace dt {

namespace {

// Lists as the text that means the same.
std::string StrategyText(const ConfigNode& node, int depth) {
  if (!node.is_list()) return node.text;
  std::vector<std::string> items;
  for (const ConfigNode& item : node.items) items.push_back(StrategyText(item, depth + 1));
  const std::string text = JoinText(items, ",");
  return depth < 2 ? "(" + text + ")" : "[" + text + "]";
}

}  // namespace

std::optional<Strategy> ReadStrategy(const MapReader& in, std::string_view key) {
  if (!in.Has(key)) return std::nullopt;
  const ConfigNode& node = *in.Find(key);
  if (node.is_scalar() && node.text == "auto") return std::nullopt;
  std::optional<Strategy> strategy = ParseStrategy(StrategyText(node, 0));
  if (!strategy) {
    in.Report(key, fmt::format("found {}, expected for each input the number of parts of each "
                               "dimension, such as [[2, 4], [4, 1]], or \"((2,4),(4,1))\" in "
                               "quotes",
                               Describe(node)));
  }
  return strategy;
}

namespace {

void ReadPlaceRule(const MapReader& in, ParallelConfig& parallel) {
  constexpr std::pair<const char*, Placed> kKinds[] = {
      {"match", Placed::kOperators}, {"table", Placed::kTables}, {"weights", Placed::kWeights}};
  PlaceRule rule;
  rule.mark = in.mark();
  rule.path = in.path();
  int given = 0;
  for (const auto& [key, of] : kKinds) {
    if (!in.Has(key)) continue;
    in.Read(key, rule.match);
    rule.of = of;
    ++given;
  }
  if (in.problems().HasUnder(in.path())) return;
  if (given != 1) {
    return in.Report("match",
                     fmt::format("found {} of match, table and weights, expected one", given));
  }
  const std::string& device = in.Find("device")->text;
  rule.device = device == "gpu" ? Device::kGpu : device == "ps" ? Device::kPs : Device::kCpu;
  if (rule.device == Device::kPs && rule.of == Placed::kOperators) {
    return in.Report("device", "found ps, expected cpu or gpu: servers have tables and weights");
  }
  parallel.place.push_back(std::move(rule));
}

void ReadCutRule(const MapReader& in, ParallelConfig& parallel) {
  CutRule rule;
  rule.mark = in.mark();
  rule.path = in.path();
  in.Read("match", rule.match);
  const std::optional<Strategy> strategy = ReadStrategy(in, "strategy");
  rule.out = ReadStrategy(in, "out");
  if (in.problems().HasUnder(in.path())) return;
  if (!strategy) return in.Report("strategy", "found auto, expected numbers of parts");
  rule.strategy = *strategy;
  parallel.cut.push_back(std::move(rule));
}

void ReadFusion(const MapReader& in, FusionConfig& fusion) {
  const ConfigNode* const node = in.Find("fusion");
  if (node == nullptr || (node->is_scalar() && node->text == "auto")) return;
  bool fits = true;
  if (node->is_list()) {
    for (const ConfigNode& item : node->items) {
      const auto at = ParseUint(item.is_scalar() ? item.text : "");
      fits = fits && at && *at <= std::numeric_limits<uint32_t>::max();
      if (fits) fusion.begins.push_back(static_cast<uint32_t>(*at));
    }
    fits = fits && !fusion.begins.empty();
  } else {
    const auto bytes = ParseSize(node->is_scalar() ? node->text : "");
    fits = bytes && *bytes > 0;
    if (fits) fusion.bytes = *bytes;
  }
  if (fits) return;
  in.Report("fusion", fmt::format("found {}, expected auto, a size such as 4MiB, or a list of "
                                  "numbers of gradients such as [4, 9]",
                                  Describe(*node)));
}

}  // namespace

void ReadParallel(const MapReader& in, ParallelConfig& parallel) {
  if (const ConfigNode* fallback = in.Find("fallback")) {
    parallel.fall_back_to_cpu = fallback->text == "cpu";
  }
  for (const auto& item : in.Items("place")) ReadPlaceRule(item.map, parallel);
  const std::vector<std::string> profile = in.Paths("profile");
  if (!profile.empty()) parallel.profile = profile[0];
  in.Read("overlap", parallel.overlap);
  if (in.Has("data") && in.Find("data")->text != "auto") in.Read("data", parallel.data);
  for (const auto& item : in.Items("cut")) ReadCutRule(item.map, parallel);
  in.Read("all_to_all", parallel.all_to_all);
  ReadFusion(in, parallel.fusion);
  in.Read("wire", parallel.wire);
  const MapReader optimizer = in.Sub("optimizer");
  optimizer.Read("shard", parallel.optimizer.on);
  optimizer.Read("threshold", parallel.optimizer.threshold_bytes);
  optimizer.Read("group", parallel.optimizer.group);
}

void CheckTeams(const MapReader& root, const JobConfig& job) {
  const uint32_t data = job.parallel.data, workers = job.cluster.workers;
  const auto report = [&](std::string_view text) {
    root.problems().Add(root.node()->MarkOf("parallel.data"), "parallel.data", text);
  };
  if (data != 0 && workers % data != 0) {
    return report(
        fmt::format("found {}, expected a divisor of cluster.workers, which is {}: all "
                    "teams have equally many workers",
                    data, workers));
  }
  if (job.parallel.optimizer.on && job.train.asynchronous()) {
    root.problems().Add(root.node()->MarkOf("parallel.optimizer"), "parallel.optimizer.shard",
                        "found true, expected false: with train.staleness above 0 servers update "
                        "weights");
  }
  if (job.team_size() > 1 && job.train.asynchronous()) {
    report(
        fmt::format("found {} with {} workers, expected auto: with train.staleness above 0 "
                    "every worker is a team",
                    data, workers));
  }
}

}  // namespace dt
