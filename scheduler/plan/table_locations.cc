#include "scheduler/plan/table_locations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/base/text.h"
#include "ops/update/update.h"
#include "scheduler/passes/frontend/frontend.h"
#include "scheduler/passes/placement/devices.h"
#include "scheduler/passes/placement/slice_costs.h"
#include "scheduler/place/place_items.h"
#include "scheduler/plan/pass_list.h"

// A table of `device: auto` goes to the workers if the model predicts a shorter step for that. Each
// choice is evaluated as a placed graph, in which the nodes of the tables go to CPU or accelerator
// like all others. With overlap, a step takes as long as the workers' computing or the servers'
// work on rows, whichever is longer. Without overlap it takes the sum.
//
// For few tables all choices are tried. For more tables, the first tries are sets of the tables
// that save most traffic per byte of memory; then single tables are moved to the other side as long
// as that helps.
namespace dt::scheduler {
namespace {

using Names = std::set<std::string, std::less<>>;

constexpr size_t kAllChoices = 4;  // All choices are tried for at most this many tables.
constexpr size_t kSizesMax = 16;   // Number of sets of best tables that are tried.
constexpr size_t kTriesMax = 64;   // Limit of all tries together.
constexpr uint64_t kRowsMax = std::numeric_limits<uint32_t>::max();

// The option of the table that only servers support; empty if it uses none.
std::string_view NeedsServers(const TableConfig& table) {
  const bool lives = table.life.expiry_steps > 0 || table.life.expiry_time > Duration::zero();
  const bool dense = table.optimizer.scope == UpdateScope::kDense;
  return table.life.admission_pushes > 1     ? "admission"
         : lives                             ? "expiry"
         : table.dtype != FloatFormat::kFp32 ? "dtype"
         : table.wire != FloatFormat::kFp32  ? "wire"
         : dense                             ? "optimizer's scope"
                                             : "";
}

class TableChooser {
 public:
  explicit TableChooser(const PlanRequest& request)
      : request_(request),
        memory_(static_cast<double>(request.job.cluster.worker.memory_bytes)),
        chosen_freely_(MayBeChosen(request.accelerator, request.job)) {}

  TableLocations Run() {
    const Result<Graph> graph = Expand({}, request_);
    if (!graph.ok()) return {};  // The passes report this error.
    FindCandidates(*graph);
    if (!candidates_.empty()) Search();
    Explain();
    return {std::move(best_), std::move(why_)};
  }

 private:
  struct Candidate {
    std::string name;
    double traffic_for_memory = 0;  // Bytes of a slice's traffic for each byte of the table.
  };
  static constexpr double kUnfit = std::numeric_limits<double>::infinity();

  void FindCandidates(const Graph& graph) {
    const SliceCosts costs = CostsOf(graph);
    for (const TableUse& use : graph.tables) {
      const auto config =
          std::ranges::find(request_.job.model.tables, use.name, &TableConfig::name);
      if (config->device != Device::kAuto) continue;
      const double row_bytes = sizeof(float) * (use.dim + StateFloats(config->optimizer, use.dim));
      const double bytes = row_bytes * static_cast<double>(use.expected_rows);
      std::string& why = why_[use.name];
      if (request_.job.train.asynchronous()) {
        why = "auto, with train.staleness above 0";
      } else if (request_.devices() > 1) {
        why = "auto, with teams of several workers";
      } else if (const std::string_view what = NeedsServers(*config); !what.empty()) {
        why = fmt::format("auto, for its {}", what);
      } else if (use.expected_rows == 0) {
        why = "auto: nobody says how many rows it has (rows, expected_rows, data.stats)";
      } else if (use.expected_rows > kRowsMax || (bytes > memory_ && !chosen_freely_)) {
        why = fmt::format("auto: its {} are more than cluster.worker.memory, {}",
                          BytesText(static_cast<uint64_t>(bytes)),
                          BytesText(static_cast<uint64_t>(memory_)));
      } else {
        candidates_.push_back({use.name, costs.DistinctKeys(use) * use.dim / bytes});
      }
    }
    std::ranges::stable_sort(candidates_, std::greater<>(), &Candidate::traffic_for_memory);
  }

  SliceCosts CostsOf(const Graph& graph) const {
    return SliceCosts(graph, request_.columns, StepSizeOf(request_));
  }

  // Among equally fast choices the first one wins, which has the fewest tables on workers.
  void Search() {
    best_seconds_ = Seconds({});
    const size_t count = candidates_.size();
    if (count <= kAllChoices) {
      for (unsigned choice = 1; choice < 1u << count; ++choice) {
        Names names;
        for (size_t i = 0; i < count; ++i) {
          if ((choice >> i & 1) != 0) names.insert(candidates_[i].name);
        }
        Take(std::move(names));
      }
      return;
    }
    for (size_t i = 1; i <= std::min(count, kSizesMax); ++i) {
      const size_t size = i * count / std::min(count, kSizesMax);
      Names names;
      for (size_t t = 0; t < size; ++t) names.insert(candidates_[t].name);
      Take(std::move(names));
    }
    for (size_t same = 0, at = 0; same < count && seconds_.size() < kTriesMax; ++at) {
      same = Take(Flipped(candidates_[at % count].name)) ? 0 : same + 1;
    }
  }

  bool Take(Names names) {
    const double seconds = Seconds(names);
    if (seconds >= best_seconds_) return false;
    best_seconds_ = seconds;
    best_ = std::move(names);
    return true;
  }

  Names Flipped(const std::string& name) const {
    Names names = best_;
    if (names.erase(name) == 0) names.insert(name);
    return names;
  }

  // Time of a step; kUnfit if no placement fits in memory.
  double Seconds(const Names& on_worker) {
    const auto [known, is_new] = seconds_.emplace(on_worker, kUnfit);
    if (is_new) known->second = Try(on_worker);
    return known->second;
  }

  double Try(const Names& on_worker) const {
    PlacementReport report;
    PlanRequest request = request_;
    request.on_worker = on_worker;
    request.report = &report;
    Graph graph;
    for (const GraphPass& pass : GraphPasses()) {
      Result<Graph> next = pass.run(std::move(graph), request);
      if (!next.ok()) return kUnfit;
      graph = *std::move(next);
      if (pass.name == kPlacePass) break;
    }
    if (HostBytes(graph, on_worker) > memory_) return kUnfit;
    const TableTimes times = TimesOfTables(graph, request);
    const double workers = report.slices * report.placement.prediction.seconds + times.exchange;
    return request.job.parallel.overlap ? std::max(workers, times.servers)
                                        : workers + times.servers;
  }

  double HostBytes(const Graph& graph, const Names& chosen) const {
    const SliceCosts costs = CostsOf(graph);
    double bytes = 0;
    for (const TableUse& table : graph.tables) {
      if (!chosen.contains(table.name)) continue;
      if (graph.value(table.store).device == Device::kCpu) bytes += costs.Bytes(table.store);
    }
    return bytes;
  }

  void Explain() {
    for (const Candidate& candidate : candidates_) {
      const auto other = seconds_.find(Flipped(candidate.name));
      const bool here = best_.contains(candidate.name);
      const std::string_view instead = here ? "on servers" : "on the worker";
      std::string& why = why_[candidate.name];
      why = fmt::format("auto: a step takes {}", TimeText(best_seconds_));
      if (other == seconds_.end()) continue;
      why += std::isinf(other->second)
                 ? fmt::format(", and it does not fit {}", instead)
                 : fmt::format(", with it {} {}", instead, TimeText(other->second));
    }
  }

  const PlanRequest& request_;
  const double memory_;  // Bytes of a worker's host memory for tables.
  const bool chosen_freely_;
  std::vector<Candidate> candidates_;
  std::map<Names, double> seconds_;  // Time of a step for each set of tables on workers.
  Names best_;
  double best_seconds_ = kUnfit;
  std::map<std::string, std::string, std::less<>> why_;
};

}  // namespace

TableLocations ChooseTableLocations(const PlanRequest& request) {
  return TableChooser(request).Run();
}

TableTimes TimesOfTables(const Graph& graph, const PlanRequest& request) {
  const SliceCosts costs(graph, request.columns, StepSizeOf(request));
  double pulled_rows = 0, pulled_bytes = 0, exchanged_bytes = 0;
  for (const TableUse& table : graph.tables) {
    const double rows = costs.DistinctKeys(table) * request.slices * request.devices();
    const double bytes = rows * table.dim * sizeof(float);
    if (table.store != kNone) {
      exchanged_bytes += bytes;
    } else {
      pulled_rows += rows;
      pulled_bytes += bytes;
    }
  }
  // Each worker receives the gradients of all others, at the rate of a server connection.
  const double workers = std::max(1u, request.workers);
  const ServerRates& rates = request.profile.server;
  return {.servers = rates.SecondsOf(pulled_rows, pulled_bytes, request.servers),
          .server_work = pulled_rows * rates.row_seconds + 2 * pulled_bytes / rates.bytes,
          .exchange = exchanged_bytes * (workers - 1) / workers / rates.bytes};
}

}  // namespace dt::scheduler
