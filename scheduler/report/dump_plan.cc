#include "scheduler/report/dump_plan.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "common/base/check.h"
#include "ops/sharding.h"

namespace dt::scheduler {
namespace {

bool HasSubgraphs(const Plan& plan) { return !plan.train.empty() || !plan.evaluate.empty(); }

// ------------------------------------------------------------ text

std::string WaitsText(const std::vector<Subgraph>& pass, const Subgraph& subgraph) {
  std::string text;
  if (subgraph.needs_rows) text = "pulled rows";
  for (const uint32_t w : subgraph.waits) {
    if (!text.empty()) text += ", ";
    text += pass[w].name;
  }
  return text.empty() ? text : " after " + text;
}

std::string PassText(const Plan& plan, std::string_view name, const std::vector<Subgraph>& pass) {
  std::string text;
  for (const Subgraph& subgraph : pass) {
    text += fmt::format("{} {} on {} ({} nodes){}\n", name, subgraph.name, NameOf(subgraph.stream),
                        subgraph.nodes.size(), WaitsText(pass, subgraph));
    for (const NodeIndex n : subgraph.nodes) {
      const Node& node = plan.graph.nodes[n];
      text += fmt::format("  {}", node.name);
      for (const ValueIndex v : node.outputs) {
        if (!plan.slot.empty()) text += fmt::format(" ${}", plan.slot[v]);
      }
      text += "\n";
    }
  }
  return text;
}

std::string Text(const Plan& plan) {
  if (!HasSubgraphs(plan)) return DumpText(plan.graph);
  return PassText(plan, "train", plan.train) + PassText(plan, "evaluate", plan.evaluate);
}

// ------------------------------------------------------------ JSON

nlohmann::json PassJson(const Plan& plan, const std::vector<Subgraph>& pass) {
  nlohmann::json out = nlohmann::json::array();
  for (const Subgraph& subgraph : pass) {
    out.push_back({{"name", subgraph.name},
                   {"stream", NameOf(subgraph.stream)},
                   {"phase", NameOf(subgraph.phase)},
                   {"stage", subgraph.stage},
                   {"needs_rows", subgraph.needs_rows},
                   {"waits", subgraph.waits},
                   {"nodes", nlohmann::json::array()}});
    for (const NodeIndex n : subgraph.nodes) {
      out.back()["nodes"].push_back(plan.graph.nodes[n].name);
    }
  }
  return out;
}

// Values from outside the graph have no slot, which is written as null.
nlohmann::json SlotsJson(const Plan& plan) {
  nlohmann::json out = nlohmann::json::array();
  for (const uint32_t slot : plan.slot) {
    out.push_back(slot == kNone ? nlohmann::json() : nlohmann::json(slot));
  }
  return out;
}

nlohmann::json PlanAsJson(const Plan& plan, std::string_view explanation) {
  nlohmann::json out = nlohmann::json::parse(DumpJson(plan.graph));
  out.update(nlohmann::json::parse(explanation));
  for (size_t n = 0; n < plan.graph.nodes.size(); ++n) {
    out["nodes"][n]["loops"] = LoopsOf(plan.graph, plan.graph.nodes[n]);
  }
  if (!HasSubgraphs(plan)) return out;
  out["train"] = PassJson(plan, plan.train);
  out["evaluate"] = PassJson(plan, plan.evaluate);
  if (!plan.slot.empty()) out["slots"] = SlotsJson(plan);
  return out;
}

std::string TextOf(const nlohmann::json& json, int indentation) {
  return json.dump(indentation, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string Html(const Plan& plan, std::string_view title, std::string_view explanation) {
  nlohmann::json json = PlanAsJson(plan, explanation);
  json["text"] = DumpText(plan.graph);
  return PlanPage(title, TextOf(json, -1));
}

// ------------------------------------------------------------ Graphviz

// Draws a frame around the nodes of each training subgraph.
std::string Dot(const Plan& plan) {
  std::string dot = DumpDot(plan.graph);
  dot.resize(dot.rfind('}'));
  for (size_t s = 0; s < plan.train.size(); ++s) {
    const Subgraph& subgraph = plan.train[s];
    dot += fmt::format("  subgraph cluster_{} {{ label=\"{} on {}\";", s, subgraph.name,
                       NameOf(subgraph.stream));
    for (const NodeIndex n : subgraph.nodes) dot += fmt::format(" n{};", n);
    dot += " }\n";
  }
  return dot + "}\n";
}

}  // namespace

std::string DumpPlan(const Plan& plan, DumpFormat format, std::string_view title,
                     std::string_view explanation) {
  switch (format) {
    case DumpFormat::kText:
      return Text(plan);
    case DumpFormat::kJson:
      return TextOf(PlanAsJson(plan, explanation), 1) + "\n";
    case DumpFormat::kDot:
      return Dot(plan);
    case DumpFormat::kHtml:
      return Html(plan, title, explanation);
  }
  DT_UNREACHABLE();
}

}  // namespace dt::scheduler
