#include "scheduler/report/explain.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/config/load_job.h"
#include "ops/op_spec.h"
#include "scheduler/passes/placement/slice_costs.h"
#include "scheduler/place/place_items.h"
#include "scheduler/report/explain_team.h"

namespace dt::scheduler {
namespace {

using Json = nlohmann::ordered_json;

class Explainer {
 public:
  Explainer(const Plan& plan, const JobConfig& job, const PlacementReport& report)
      : plan_(plan),
        graph_(plan.graph),
        job_(job),
        report_(report),
        costs_(graph_, plan.columns, {plan.batch_size, plan.slices, plan.devices}) {}

  std::string Run() {
    Summary();
    text_ += ExplainTeam(plan_);
    Places();
    Tables();
    Passes("training", plan_.train);
    Passes("evaluation", plan_.evaluate);
    return text_;
  }

  Json RunJson() const {
    Json nodes = Json::object();
    for (const Node& node : graph_.nodes) {
      if (const std::string_view why = Why(node); !why.empty()) nodes[node.name] = why;
    }
    Json lookups = Json::array();
    for (const LookupSpec& lookup : graph_.lookups) {
      Json columns = Json::array();
      for (const uint32_t column : lookup.columns) columns.push_back(plan_.columns[column].name);
      lookups.push_back({{"name", lookup.name},
                         {"table", graph_.tables[lookup.table].name},
                         {"columns", std::move(columns)}});
    }
    return {{"prediction", PredictionJson()},
            {"placement", {{"tables", TablesJson()}, {"nodes", std::move(nodes)}}},
            {"lookups", std::move(lookups)},
            {"team", TeamJson()}};
  }

 private:
  Json TeamJson() const {
    const TeamReport team = ReportOfTeam(plan_);
    Json calls = Json::array();
    for (const TeamCall& call : team.calls) {
      calls.push_back({{"op", call.op},
                       {"value", call.of},
                       {"group", call.group},
                       {"bytes", call.bytes},
                       {"read_by", call.read_by}});
    }
    return {{"workers", plan_.devices},
            {"position", plan_.position},
            {"parameters_held", team.held},
            {"parameters", team.whole},
            {"communications", std::move(calls)}};
  }

  template <class... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  void Summary() {
    int64_t trained = 0, states = 0;
    for (const ParameterSpec& p : graph_.parameters) {
      (p.trained ? trained : states) +=
          static_cast<int64_t>(costs_.Elements(graph_.value(p.value).shape));
    }
    Line("plan of {}: {} nodes, {} values; batch {} in {} slices of {}", job_.job,
         graph_.nodes.size(), graph_.values.size(), plan_.batch_size, plan_.slices,
         costs_.step().slice_samples());
    Line("dense parameters: {} trained, {} of optimizer state and running statistics", trained,
         states);
    Memory(Device::kCpu, "cpu");
    Memory(Device::kGpu, "gpu");
  }

  void Memory(Device device, std::string_view name) {
    const MemoryUse use = MemoryOf(plan_, costs_, device);
    if (device == Device::kGpu && use.lasting == 0 && use.unshared == 0) return;
    const std::string of = device == Device::kGpu ? fmt::format("; allocated at most {} of {}",
                                                                Bytes(report_.accelerator_bytes),
                                                                Bytes(report_.accelerator_limit))
                                                  : "";
    Line("memory on {}: weights and state {}, a slice {} in {} slots (without sharing: {}){}", name,
         Bytes(use.lasting), Bytes(use.slots), use.slot_count, Bytes(use.unshared), of);
  }

  // The prediction of scheduler/place for a step.
  void Places() {
    const Placement& p = report_.placement;
    const Prediction& step = p.prediction;
    const double slices = report_.slices;
    const StepTime& time = report_.step;
    Line("predicted: {} a step", TimeText(time.step));
    Line("  a worker {}{}: cpu computes {}{}", TimeText(time.worker),
         report_.slices > 1 ? fmt::format(" for {} slices", report_.slices) : "",
         TimeText(slices * step.computing[kOnCpu]), OnAccelerator(step));
    Line("  {}", MachineText(time));
    if (report_.automatic) {
      std::string others;
      for (const Placement::Alternative& other : p.alternatives) {
        const bool fits = other.prediction.fits();
        others += fmt::format("{}{} {}", others.empty() ? "" : ", ", other.name,
                              fits ? TimeText(slices * other.prediction.seconds) : "does not fit");
      }
      Line("  placed automatically; {}; instead: {}",
           p.exact
               ? "no placement takes less"
               : fmt::format("no placement takes less than {}", TimeText(slices * p.lower_bound)),
           others);
    }
    if (time.servers > 0) {
      Line("  servers {} for tables, {}", TimeText(time.servers),
           job_.parallel.overlap ? "beside the workers" : "while the workers wait");
    }
    if (time.exchange > 0) {
      Line("  workers {} to tell one another gradients of rows", TimeText(time.exchange));
    }
    Line("  messages {}", TimeText(time.messages));
    Line("  {}", report_.constants);
    if (!report_.fallback.empty()) {
      Line("  fallback to cpu of what is tagged gpu: {}", report_.fallback);
    }
  }

  // For example "2 servers and 3 workers on one machine: its 2 cores work 4.3 ms for all of them".
  std::string MachineText(const StepTime& time) const {
    const MachineShare& of = report_.machine;
    const auto counted = [](uint32_t count, std::string_view what) {
      return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
    };
    return fmt::format("{} and {} on one machine: its {} {} {} for all of them",
                       counted(of.servers, "server"), counted(of.workers, "worker"),
                       counted(of.cores, "core"), of.cores == 1 ? "works" : "work",
                       TimeText(time.machine));
  }

  std::string OnAccelerator(const Prediction& step) const {
    const double slices = report_.slices;
    if (step.computing[kOnAccelerator] == 0 && step.copying[kOnCpu] == 0) return "";
    const auto copies = [&](uint8_t away, std::string_view to) {
      return fmt::format("copies to {} {} ({})", to, TimeText(slices * step.copying[away]),
                         Bytes(slices * step.copied_bytes[away]));
    };
    return fmt::format(", gpu {}, {}, {}", TimeText(slices * step.computing[kOnAccelerator]),
                       copies(kOnCpu, "gpu"), copies(kOnAccelerator, "cpu"));
  }

  static std::string Bytes(double bytes) { return BytesText(static_cast<uint64_t>(bytes)); }

  Json PredictionJson() const {
    const Placement& p = report_.placement;
    const StepTime& time = report_.step;
    const double slices = report_.slices;
    Json others = Json::array();
    for (const Placement::Alternative& other : p.alternatives) {
      if (!report_.automatic) break;
      const bool fits = other.prediction.fits();
      others.push_back({{"name", other.name},
                        {"seconds", fits ? Json(slices * other.prediction.seconds) : Json()}});
    }
    return {{"seconds_per_step", time.step},
            {"worker_seconds", time.worker},
            {"cpu_seconds", slices * p.prediction.computing[kOnCpu]},
            {"gpu_seconds", slices * p.prediction.computing[kOnAccelerator]},
            {"copy_seconds", slices * (p.prediction.copying[0] + p.prediction.copying[1])},
            {"exchange_seconds", time.exchange},
            {"server_seconds", time.servers},
            {"message_seconds", time.messages},
            {"machine",
             {{"servers", report_.machine.servers},
              {"workers", report_.machine.workers},
              {"cores", report_.machine.cores},
              {"seconds", time.machine}}},
            {"instead", std::move(others)},
            {"constants", report_.constants},
            {"fallback", report_.fallback.empty() ? Json() : Json(report_.fallback)}};
  }

  Json TablesJson() const {
    Json tables = Json::array();
    for (const TableUse& table : graph_.tables) {
      const double rows = std::round(costs_.DistinctKeys(table));
      const bool pulled = table.store == kNone;
      const Device device = pulled ? Device::kPs : graph_.value(table.store).device;
      tables.push_back({{"name", table.name},
                        {"device", dt::NameOf(device)},
                        {"why", WhyThere(table)},
                        {"dim", table.dim},
                        {"rows_per_slice", rows},
                        {"bytes_per_slice", rows * table.dim * sizeof(float)},
                        {"pushed", table.row_grad != kNone}});
    }
    return tables;
  }

  void Tables() {
    for (const TableUse& table : graph_.tables) {
      const double rows = costs_.DistinctKeys(table);
      const double bytes = rows * table.dim * sizeof(float);
      const bool pulled = table.store == kNone;
      const Device device = pulled ? Device::kPs : graph_.value(table.store).device;
      Line("table {} on {}, {}: dim {}, at most {:.0f} rows {} a slice ({}){}", table.name,
           dt::NameOf(device), WhyThere(table), table.dim, rows, pulled ? "pulled" : "taken",
           Bytes(bytes),
           !pulled                   ? ""
           : table.row_grad == kNone ? ", nothing pushed"
                                     : ", as many pushed");
    }
  }

  std::string WhyThere(const TableUse& table) const {
    const auto why = report_.table_why.find(table.name);
    if (why != report_.table_why.end()) return why->second;
    const auto config = std::ranges::find(job_.model.tables, table.name, &TableConfig::name);
    if (config->place_match.empty()) return "as its device says";
    return fmt::format("parallel.place \"{}\" at {}:{}", config->place_match,
                       config->place_mark.file, config->place_mark.line);
  }

  std::string_view Why(const Node& node) const {
    const OpTraits traits = TraitsOf(node.op);
    if (node.phase == Phase::kJoin) return "joins the slices of all workers";
    if (traits.kind == OpKind::kCommunication) return "communicates with other workers";
    if (traits.kind == OpKind::kCopy) {
      return traits.writes.empty() ? "read there" : "weights that are updated elsewhere";
    }
    if (node.phase == Phase::kStep) return "where its weights lie";
    const auto why = report_.why.find(node.name);
    return why == report_.why.end() ? std::string_view() : why->second;
  }

  void Passes(std::string_view name, const std::vector<Subgraph>& subgraphs) {
    for (const Subgraph& subgraph : subgraphs) {
      OpCost total;
      std::string lines;
      for (const NodeIndex n : subgraph.nodes) {
        const Node& node = graph_.nodes[n];
        const OpCost cost = costs_.Of(node);
        total.flops += cost.flops;
        total.bytes += cost.bytes;
        const std::string shape =
            node.outputs.empty() ? "" : ShapeText(graph_, graph_.value(node.outputs[0]).shape);
        lines += fmt::format("  {:<32} {:<20} {:<16} {:<4} {}\n", node.name, node.op, shape,
                             node.device == Device::kGpu ? "gpu" : "cpu", Why(node));
      }
      Line("{} subgraph {} on {}: each {}, {:.3g} flops, {} moved", name, subgraph.name,
           NameOf(subgraph.stream), NameOf(subgraph.phase), total.flops, Bytes(total.bytes));
      text_ += lines;
    }
  }

  const Plan& plan_;
  const Graph& graph_;
  const JobConfig& job_;
  const PlacementReport& report_;
  const SliceCosts costs_;
  std::string text_;
};

}  // namespace

std::string ExplainPlan(const Plan& plan, const JobConfig& job, const PlacementReport& report) {
  return Explainer(plan, job, report).Run();
}

std::string ExplainJson(const Plan& plan, const JobConfig& job, const PlacementReport& report) {
  return Explainer(plan, job, report).RunJson().dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace dt::scheduler
