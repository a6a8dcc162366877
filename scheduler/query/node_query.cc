#include "scheduler/query/node_query.h"

#include <optional>

#include <fmt/format.h>

#include "scheduler/query/parts_query.h"
#include "scheduler/query/query_node.h"

namespace dt::scheduler {
namespace {

std::vector<Shape> ReadShapes(const Json& question) {
  const Json& json = Member(question, "shapes");
  if (!json.is_array()) throw QueryError("question", "\"shapes\" is a list of shapes");
  std::vector<Shape> shapes;
  for (const Json& shape : json) shapes.push_back(ReadShape(shape));
  return shapes;
}

// Dimension 0 of the first input is the batch of most operators, and some insist on that.
struct BatchedNode {
  QueryNode node;
  int64_t batch = 1;
};
BatchedNode ReadBatched(const Json& question) {
  const std::vector<Shape> shapes = ReadShapes(question);
  const int64_t batch = shapes.empty() || shapes[0].empty() ? 1 : shapes[0][0];
  const auto symbolic = [&](bool with_batch) {
    std::vector<SymShape> inputs;
    for (const Shape& shape : shapes) {
      inputs.emplace_back();
      for (size_t d = 0; d < shape.size(); ++d) {
        const bool is_batch = with_batch && d == 0 && shape[d] == batch;
        inputs.back().push_back(is_batch ? Dim{kBatch, 1} : Const(shape[d]));
      }
    }
    return inputs;
  };
  try {
    return {ReadNode(question, symbolic(false)), 1};
  } catch (const QueryError& error) {
    if (error.problem.rule != "shapes") throw;
    try {
      return {ReadNode(question, symbolic(true)), batch};
    } catch (const QueryError&) {
    }
    throw;
  }
}

DeviceIndex ReadDevice(const Json& question, uint32_t devices) {
  if (!question.contains("rank") || question["rank"].is_null()) return 0;
  const int64_t rank = ReadInt(question["rank"], "\"rank\"");
  if (rank >= 0 && rank < devices) return static_cast<DeviceIndex>(rank);
  throw QueryError("rank", fmt::format("rank {} of {} devices", rank, devices));
}

// How outputs become whole sums, or as "out" wants them.
Json CommunicationOf(const Json& question, const NodeView& view) {
  std::optional<Strategy> out;
  if (question.contains("out") && !question["out"].is_null()) {
    out = ReadStrategy(question["out"]);
    if (out->size() > view.layouts.outputs.size()) {
      throw QueryError("out", fmt::format("out names {} outputs, and the node has {}", out->size(),
                                          view.layouts.outputs.size()));
    }
  }
  Json steps = Json::array();
  for (size_t o = 0; o < view.layouts.outputs.size(); ++o) {
    const Layout& made = view.layouts.outputs[o];
    Layout wanted = made;
    wanted.partial.clear();
    if (out && o < out->size()) {
      auto layout = OutLayout(made, (*out)[o]);
      if (auto* problem = std::get_if<CutProblem>(&layout)) throw QueryError(*std::move(problem));
      wanted = std::get<Layout>(std::move(layout));
    }
    const Shape shape = NumbersOf(view.node.outputs[o], view.batch);
    const auto how = Redistribute({made, shape}, {wanted, shape}, {});
    CheckOk(how.status(), "out");
    for (Json& step : StepsJson(*how)) {
      Json communication = {{"op", step["kind"]}, {"output", o}};
      step.erase("kind");
      communication.update(step);
      steps.push_back(std::move(communication));
    }
  }
  return steps;
}

Json AnswerLayouts(const Json& question, const BatchedNode& of) {
  const Json& json = question["layouts"];
  if (!json.is_array() || json.size() != of.node.inputs.size()) {
    throw QueryError("inputs", fmt::format("\"layouts\" is a list of {}", of.node.inputs.size()));
  }
  std::vector<Layout> layouts;
  for (size_t i = 0; i < json.size(); ++i) {
    layouts.push_back(ReadLayout(json[i], NumbersOf(of.node.inputs[i], of.batch)));
  }
  std::vector<const Layout*> inputs;
  for (const Layout& layout : layouts) inputs.push_back(&layout);
  if (inputs.empty()) throw QueryError("inputs", "the node has no inputs");
  auto held = CutOfLayouts(of.node.rule, {inputs, {}});
  if (auto* problem = std::get_if<CutProblem>(&held)) throw QueryError(*std::move(problem));
  const NodeLayouts all = LayoutsOf(of.node.rule, std::get<HeldCut>(held));
  const DeviceIndex device = ReadDevice(question, DeviceCount(std::get<HeldCut>(held).cut.matrix));
  const Json node = NodeJson({of.node, std::get<HeldCut>(held).cut, all, of.batch, device});
  return {{"device_matrix", node["device_matrix"]}, {"outputs", node["outputs"]}};
}

}  // namespace

Json AnswerNode(const Json& question) {
  const BatchedNode of = ReadBatched(question);
  if (question.contains("layouts")) return AnswerLayouts(question, of);
  const uint32_t devices = ReadDevices(question);
  if (question.contains("enumerate") && question["enumerate"] == true) {
    Json strategies = Json::array();
    for (const Strategy& strategy : AllStrategies(of.node, devices)) {
      strategies.push_back(StrategyJson(strategy));
    }
    return {{"strategies", std::move(strategies)}};
  }
  const Strategy strategy = ReadStrategy(Member(question, "strategy"));
  auto cut = CutOf(of.node.rule, strategy, devices);
  if (auto* problem = std::get_if<CutProblem>(&cut)) {
    if (const auto parts = InParts({of.node, strategy, devices, of.batch})) {
      Json answer =
          NodeJson({of.node, parts->cut, parts->layouts, of.batch, ReadDevice(question, devices)});
      answer["communication"] = parts->communication;
      return answer;
    }
    QueryError error(*std::move(problem));
    const auto nearest = NearestStrategy(of.node.rule, strategy, devices);
    if (nearest) error.nearest = StrategyJson(*nearest);
    throw error;
  }
  const NodeLayouts layouts = LayoutsOf(of.node.rule, std::get<NodeCut>(cut));
  const NodeView view{of.node, std::get<NodeCut>(cut), layouts, of.batch,
                      ReadDevice(question, devices)};
  Json answer = NodeJson(view);
  answer["communication"] = CommunicationOf(question, view);
  return answer;
}

}  // namespace dt::scheduler
