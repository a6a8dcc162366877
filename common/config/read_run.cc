#include <algorithm>
#include <bit>

#include "common/base/text.h"
#include "common/config/dense_tables.h"
#include "common/config/load_job.h"
#include "common/config/read_sections.h"
#include "common/config/reader/values.h"
#include "common/metrics/metrics.h"

namespace dt {
namespace {

void ReadTrain(const MapReader& in, TrainConfig& train) {
  in.Read("batch_size", train.batch_size);
  in.Read("slices", train.slices);
  in.Read("epochs", train.epochs);
  in.Read("max_steps", train.max_steps);
  if (const ConfigNode* const until = in.Find("until")) train.forever = until->text == "forever";
  in.Read("staleness", train.staleness);
  if (in.IsWord("staleness")) train.staleness = kUnboundedStaleness;
  in.Read("cached_rows", train.cached_rows);
  in.Read("evaluate_every", train.evaluate_every);
  in.Read("math", train.math);
  if (in.Has("early_stop")) {
    const MapReader stop = in.Sub("early_stop");
    train.early_stop.emplace();
    stop.Read("metric", train.early_stop->metric);
    stop.Read("patience", train.early_stop->patience);
  }
}

void ReadInitSection(const MapReader& in, InitConfig& init) {
  in.Read("from", init.from);
  const bool is_folder = init.from.find('/') != std::string::npos;
  if (is_folder) init.from = BesideFile(init.from, in.MarkOf("from"));
  if (const ConfigNode* optimizer = in.Find("optimizer")) {
    init.fresh_optimizer = optimizer->text == "fresh";
  }
  init.only = in.Texts("only");
  if (const std::vector<std::string> paths = in.Paths("arrays"); !paths.empty()) {
    init.arrays = paths[0];
  }
  for (const char* const key : {"optimizer", "only"}) {
    if (in.Has(key) && init.from.empty()) in.Report(key, "needs init.from");
  }
}

// HOST:PORT with a port from 0 to 65535.
bool IsHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view port = text.substr(colon + 1);
  unsigned value = 0;
  for (const char c : port) {
    if (c < '0' || c > '9' || value > 65535) return false;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  return !port.empty() && value <= 65535;
}

void ReadEmulated(const MapReader& in, EmulatedConfig& emulated) {
  in.Read("memory", emulated.memory_bytes);
  in.Read("flops", emulated.flops);
  in.Read("memory_bandwidth", emulated.memory_bandwidth);
  in.Read("link_bandwidth", emulated.link_bandwidth);
  constexpr uint64_t kBytesMin = 1 << 20, kBytesMax = uint64_t{1} << 44;
  if (emulated.memory_bytes < kBytesMin || emulated.memory_bytes > kBytesMax) {
    in.Report("memory",
              fmt::format("found {}, expected 1 MiB to 16 TiB", BytesText(emulated.memory_bytes)));
  }
}

void ReadCluster(const MapReader& in, ClusterConfig& cluster) {
  in.Read("servers", cluster.servers);
  in.Read("workers", cluster.workers);
  in.Read("replicas", cluster.replicas);
  in.Read("move_rate", cluster.move_rate);
  in.Read("shards", cluster.shards);
  in.Read("scheduler", cluster.scheduler);
  in.Read("lease", cluster.lease);
  in.Read("scheduler_outage", cluster.scheduler_outage);
  in.Read("wait_for_server", cluster.wait_for_server);
  in.Read("restarts", cluster.restarts);
  in.Read("start_timeout", cluster.start_timeout);
  in.Sub("worker").Read("memory", cluster.worker.memory_bytes);
  const MapReader server = in.Sub("server");
  server.Read("memory", cluster.server.memory_bytes);
  server.Read("executors", cluster.server.executors);
  server.Read("dir", cluster.server.dir);
  in.Read("devices", cluster.devices);
  ReadEmulated(in.Sub("emulated"), cluster.emulated);
  if (cluster.replicas > cluster.servers) {
    in.Report("replicas", fmt::format("found {}, expected at most the number of servers, {}",
                                      cluster.replicas, cluster.servers));
  }
  if (!std::has_single_bit(cluster.shards)) {
    const uint32_t below = std::bit_floor(cluster.shards);
    in.Report("shards", fmt::format("found {}, expected a power of two, such as {} or {}",
                                    cluster.shards, below, 2 * below));
  }
  constexpr uint64_t kServerBytesMin = 64 << 10;
  if (cluster.server.memory_bytes < kServerBytesMin) {
    server.Report("memory", fmt::format("found {}, expected 64 KiB or more",
                                        BytesText(cluster.server.memory_bytes)));
  }
  const std::string_view address = cluster.scheduler;
  if (!address.starts_with("tcp://") || !IsHostPort(address.substr(6))) {
    in.Report("scheduler", fmt::format("found \"{}\", expected tcp://HOST:PORT", address));
  }
}

// Parses FIRST-LAST; returns nothing if the text has another form.
std::optional<TraceConfig> ParseSteps(std::string_view text) {
  const std::vector<std::string_view> ends = SplitText(text, '-');
  if (ends.size() != 2) return std::nullopt;
  const std::optional<uint64_t> first = ParseUint(ends[0]), last = ParseUint(ends[1]);
  if (!first || !last || *first > *last) return std::nullopt;
  return TraceConfig{.first = *first, .last = *last};
}

void ReadObserve(const MapReader& in, ObserveConfig& observe) {
  in.Read("http", observe.http);
  if (observe.http != "off" && !IsHostPort(observe.http)) {
    in.Report("http", fmt::format("found \"{}\", expected HOST:PORT or off", observe.http));
  }
  std::string trace = "off";
  in.Read("trace", trace);
  if (trace != "off") observe.trace = ParseSteps(trace);
  if (trace != "off" && !observe.trace) {
    in.Report("trace",
              fmt::format("found \"{}\", expected off, or the first and the last step to record, "
                          "such as 100-109",
                          trace));
  }
  if (const ConfigNode* log = in.Find("log")) observe.log_json = log->text == "json";
}

}  // namespace

namespace {

// Reports a problem at the line where the key with this path is written.
void Report(const MapReader& root, const std::string& path, std::string_view text) {
  root.problems().Add(root.node()->MarkOf(path), path, text);
}
void ReportNotYet(const MapReader& root, const std::string& path, std::string_view text) {
  root.problems().AddNotYet(root.node()->MarkOf(path), path, text);
}

// Dense weights are on servers if and only if staleness > 0.
void CheckWeightPlaces(const MapReader& root, const JobConfig& job) {
  const bool on_servers = job.train.asynchronous();
  const std::string_view why =
      on_servers ? "is for train.staleness 0: above it, weights lie on servers, which update them"
                 : "found ps, which is for train.staleness above 0: with 0 every worker has all "
                   "weights and updates them";
  const auto refused = [&](Device device) {
    return device != Device::kAuto && (device == Device::kPs) != on_servers;
  };
  if (refused(job.optimizer.device)) Report(root, "optimizer.device", why);
  for (const PlaceRule& rule : job.parallel.place) {
    if (rule.of != Placed::kWeights || !refused(rule.device)) continue;
    Report(root, JoinPath(rule.path, on_servers ? "weights" : "device"), why);
  }
  for (const NodeConfig& node : job.model.nodes) {
    if (node.device != Device::kPs || on_servers) continue;
    Report(root, JoinPath(JoinPath("model.graph", node.name), "device"), why);
  }
}

// The path of the key that sets the table's device: its own, or that of a rule.
std::string DeviceKeyOf(const TableConfig& table, const JobConfig& job) {
  const auto rule = std::ranges::find_if(job.parallel.place, [&](const PlaceRule& r) {
    return r.of == Placed::kTables && r.match == table.place_match;
  });
  const bool by_rule = !table.place_match.empty() && rule != job.parallel.place.end();
  return JoinPath(by_rule ? rule->path : JoinPath("model.tables", table.name), "device");
}

// With staleness above 0 a worker's share of a batch is not cut, and the names of the two dense
// tables are reserved.
void CheckAsynchronous(const MapReader& root, const JobConfig& job) {
  if (job.train.slices > 1) {
    Report(root, "train.slices",
           fmt::format("found {}, expected auto: with staleness above 0 a worker's share of a "
                       "batch is not cut",
                       job.train.slices));
  }
  for (const TableConfig& table : job.model.tables) {
    if (table.on_worker()) {
      ReportNotYet(root, DeviceKeyOf(table, job),
                   fmt::format("found {}: table {} on the worker, which is not available yet with "
                               "train.staleness above 0; use ps",
                               NameOf(table.device), table.name));
    }
    if (table.name != kDenseTable && table.name != kRunningTable) continue;
    Report(root, JoinPath("model.tables", table.name),
           "is the name of a table of dense parameters, expected another one");
  }
}

}  // namespace

static void ReadSecurity(const MapReader& in, SecurityConfig& security) {
  in.Read("insecure", security.insecure);
  if (security.insecure && in.Has("curve")) {
    in.Report("insecure", "found true beside keys, expected one of them");
  }
  const MapReader curve = in.Sub("curve");
  for (const auto& [key, path] :
       {std::pair("key", &security.curve.key), std::pair("own", &security.curve.own)}) {
    if (const std::vector<std::string> paths = curve.Paths(key); !paths.empty()) *path = paths[0];
  }
  security.curve.allow = ReadFiles(curve, "allow");
}

void ReadRun(const MapReader& root, JobConfig& job) {
  root.Read("job", job.job);
  root.Read("seed", job.seed);
  job.data.seed = job.seed;
  ReadInitSection(root.Sub("init"), job.init);
  ReadTrain(root.Sub("train"), job.train);
  const MapReader cluster = root.Sub("cluster");
  ReadCluster(cluster, job.cluster);
  ReadObserve(root.Sub("observe"), job.observe);
  ReadSecurity(root.Sub("security"), job.security);

  job.run_dir = "runs/" + job.job;
  const MapReader checkpoint = root.Sub("checkpoint");
  job.checkpoint.dir = job.run_dir + "/checkpoints";
  checkpoint.Read("dir", job.checkpoint.dir);
  checkpoint.Read("every", job.checkpoint.every_steps);
  checkpoint.Read("interval", job.checkpoint.interval);
  checkpoint.Read("keep", job.checkpoint.keep);
  checkpoint.Read("durability", job.checkpoint.durability);
  const MapReader log = checkpoint.Sub("log");
  log.Read("sync", job.checkpoint.log.sync);
  log.Read("max_bytes", job.checkpoint.log.max_bytes);
  constexpr uint64_t kLogBytesMin = 1ull << 20;
  if (job.checkpoint.log.max_bytes < kLogBytesMin) {
    log.Report("max_bytes", fmt::format("found {}, expected 1 MiB or more",
                                        BytesText(job.checkpoint.log.max_bytes)));
  }
  const auto by_time = [](const TableConfig& table) { return table.life.expiry_time > Duration(); };
  if (job.cluster.replicas > 1 && job.checkpoint.durability == Durability::kLog &&
      std::ranges::any_of(job.model.tables, by_time)) {
    ReportNotYet(root, "checkpoint.durability",
                 "found log, which is not available yet with cluster.replicas above 1 and "
                 "expiry.hours");
  }
  if (job.cluster.server.dir.empty()) job.cluster.server.dir = job.run_dir;
  if (job.data.cache_dir.empty()) job.data.cache_dir = job.run_dir + "/cache";

  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  const bool named = root.Has("job");
  if (named && (job.job.empty() || job.job.find_first_not_of(kAllowed) != std::string::npos ||
                job.job.starts_with('.') || job.job.size() > 100)) {
    root.Report("job",
                fmt::format("found \"{}\", expected letters, digits, '_', '-' or '.'", job.job));
  }
}

namespace {

// The metrics by which an evaluation may be judged: "valid.auc", or with several losses
// "valid.<loss>.auc".
std::vector<std::string> MetricNames(const std::vector<LossConfig>& losses) {
  std::vector<std::string> names;
  for (const LossConfig& loss : losses) {
    const std::string of = losses.size() == 1 ? "" : loss.name + ".";
    for (const MetricInfo& metric : AllMetrics()) {
      if (!metric.decides() || !metric.IsOf(loss.type, !loss.group.empty())) continue;
      names.push_back(fmt::format("valid.{}{}", of, metric.name));
    }
  }
  return names;
}

}  // namespace

void ReadMetrics(const MapReader& root, JobConfig& job) {
  const std::vector<std::string> names = MetricNames(job.model.losses);
  const bool known = std::ranges::none_of(job.model.losses,
                                          [](const LossConfig& loss) { return loss.type.empty(); });
  if (names.empty() || !known) return;  // These problems are reported already.
  const auto check = [&](const char* section, const char* key, std::string& metric) {
    const ConfigNode* node = root.node()->Find(section)->Find(key)->Find("metric");
    if (node == nullptr || node->is_null()) {
      metric = names.front();
    } else if (node->is_scalar() && std::find(names.begin(), names.end(), metric) == names.end()) {
      root.problems().Add(node->mark, fmt::format("{}.{}.metric", section, key),
                          fmt::format("found \"{}\", expected one of {}{}", metric,
                                      JoinText(names, ", "), DidYouMean(metric, names)));
    }
  };
  if (job.optimizer.plateau.has_value()) {
    check("optimizer", "schedule", job.optimizer.plateau->metric);
  }
  if (job.train.early_stop.has_value()) {
    check("train", "early_stop", job.train.early_stop->metric);
  }
}

// A pattern that matches nothing is probably misspelt; otherwise only the lower speed would show
// it.
static void CheckTableRules(const JobConfig& job, Problems& problems) {
  if (problems.HasUnder("model")) return;
  for (const PlaceRule& rule : job.parallel.place) {
    if (rule.of != Placed::kTables) continue;
    const auto meant = [&](const TableConfig& t) { return MatchesPattern(t.name, rule.match); };
    if (std::ranges::any_of(job.model.tables, meant)) continue;
    problems.Add(rule.mark, JoinPath(rule.path, "table"),
                 fmt::format("no table matches \"{}\"", rule.match));
  }
}

void CheckJob(const MapReader& root, const JobConfig& job) {
  CheckTableRules(job, root.problems());
  const auto need_valid = [&](const char* path) {
    const bool windows = job.data.stream.has_value() && job.train.evaluate_every > 0;
    if (job.data.valid.empty() && !windows) {
      Report(root, path, "needs data.valid, which names no files");
    }
  };
  if (job.train.early_stop.has_value()) need_valid("train.early_stop");
  if (job.train.evaluate_every > 0) need_valid("train.evaluate_every");
  if (job.optimizer.plateau.has_value()) need_valid("optimizer.schedule");
  CheckWeightPlaces(root, job);
  CheckTeams(root, job);
  if (job.train.asynchronous()) CheckAsynchronous(root, job);
  CheckStream(root, job);
  const bool bounded = job.train.asynchronous() && job.train.staleness != kUnboundedStaleness;
  if (job.train.cached_rows > 0 && !bounded) {
    Report(root, "train.cached_rows",
           "needs train.staleness with a bound above 0: it says for how many steps a row may be "
           "used again");
  }
  if (job.train.slices > job.train.batch_size) {
    Report(root, "train.slices",
           fmt::format("found {}, expected at most the batch_size of {}", job.train.slices,
                       job.train.batch_size));
  }
}

}  // namespace dt
