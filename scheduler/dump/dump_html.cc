// The drawing: nodes in columns by the longest way from the inputs, as in K. Sugiyama, S. Tagawa
// and M. Toda, "Methods for Visual Understanding of Hierarchical System Structures" (1981), with
// one sweep that puts each beside what it reads. Long edges pass behind the nodes between.
#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include <fmt/core.h>

#include "scheduler/dump/dump_plan.h"

namespace dt::scheduler {
namespace {

constexpr int kWidth = 200, kHeight = 34, kColumn = 260, kRow = 48, kMargin = 20;

constexpr std::string_view kStyle = R"(
body { font: 14px sans-serif; margin: 16px; }
.drawing { overflow: auto; border: 1px solid #bbb; max-height: 75vh; }
rect { stroke: #444; rx: 4; }
.cpu rect, td.cpu { fill: #dbe9ff; background: #dbe9ff; }
.gpu rect, td.gpu { fill: #d8f3d2; background: #d8f3d2; }
.copy rect, td.copy { fill: #ffe5c2; background: #ffe5c2; }
.any rect { fill: #f2f2f2; }
.gradient rect { stroke-dasharray: 5 3; }
.step rect { stroke-width: 2.5; }
.value rect { fill: #ffffff; stroke: #aaa; }
path { fill: none; stroke: #888; }
svg text { font-size: 11px; }
g:hover rect { stroke: #d00; }
table { border-collapse: collapse; margin-top: 12px; }
td { border: 1px solid #ccc; padding: 2px 8px; vertical-align: top; }
code { white-space: pre-wrap; }
)";

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string Short(std::string_view text) {
  constexpr size_t kBytes = 30;
  if (text.size() <= kBytes) return Escaped(text);
  size_t end = kBytes - 1;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;  // Not within a letter of UTF-8.
  return Escaped(text.substr(0, end)) + "…";
}

// A box of the drawing: a node, or a value from outside that some node reads.
struct Box {
  uint32_t column = 0;
  double place = 0;  // In its column; first where it would like to be, then a whole number.
};

class Drawing {
 public:
  explicit Drawing(const Graph& graph) : graph_(graph), boxes_(graph.nodes.size()) {
    of_value_.resize(graph.values.size(), kNone);
    for (NodeIndex n = 0; n < graph.nodes.size(); ++n) AddColumn(n);
    PlaceInColumns();
  }

  std::string Svg() const {
    uint32_t columns = 0;
    double rows = 0;
    for (const Box& box : boxes_) {
      columns = std::max(columns, box.column + 1);
      rows = std::max(rows, box.place + 1);
    }
    std::string out = fmt::format("<svg width=\"{}\" height=\"{}\">\n",
                                  columns * kColumn + 2 * kMargin, rows * kRow + 2 * kMargin);
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
      for (const ValueIndex v : graph_.nodes[n].inputs) out += Edge(SourceOf(v), n, v);
    }
    for (size_t b = 0; b < boxes_.size(); ++b) out += b < NodeCount() ? NodeBox(b) : ValueBox(b);
    return out + "</svg>\n";
  }

 private:
  size_t NodeCount() const { return graph_.nodes.size(); }

  // Nodes are in topological order: what it reads has its column.
  void AddColumn(NodeIndex n) {
    uint32_t column = 0;
    const size_t known = boxes_.size();
    for (const ValueIndex v : graph_.nodes[n].inputs) {
      if (graph_.value(v).producer == kNone && of_value_[v] == kNone) {
        of_value_[v] = static_cast<uint32_t>(boxes_.size());
        outside_.push_back(v);
        boxes_.emplace_back();
      }
      column = std::max(column, boxes_[SourceOf(v)].column + 1);
    }
    boxes_[n].column = column;
    // What comes from outside stands just before its first reader.
    for (size_t b = known; b < boxes_.size(); ++b) boxes_[b].column = column - 1;
  }

  uint32_t SourceOf(ValueIndex v) const {
    const NodeIndex producer = graph_.value(v).producer;
    return producer == kNone ? of_value_[v] : producer;
  }

  void PlaceInColumns() {
    std::vector<uint32_t> order(boxes_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](uint32_t b) { return boxes_[b].column; });
    for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      while (end < order.size() && boxes_[order[end]].column == boxes_[order[begin]].column) ++end;
      const auto column = std::span(order).subspan(begin, end - begin);
      for (const uint32_t b : column) boxes_[b].place = WishOf(b);
      std::ranges::stable_sort(column, {}, [&](uint32_t b) { return boxes_[b].place; });
      for (size_t i = 0; i < column.size(); ++i) boxes_[column[i]].place = static_cast<double>(i);
    }
  }

  // Where what it reads stands, on average.
  double WishOf(uint32_t b) const {
    if (b >= NodeCount() || graph_.nodes[b].inputs.empty()) return 1e9;
    double sum = 0;
    for (const ValueIndex v : graph_.nodes[b].inputs) sum += boxes_[SourceOf(v)].place;
    return sum / static_cast<double>(graph_.nodes[b].inputs.size());
  }

  static double X(const Box& box) { return box.column * kColumn + kMargin; }
  static double Y(const Box& box) { return box.place * kRow + kMargin; }

  std::string Edge(uint32_t from, uint32_t to, ValueIndex v) const {
    const double x = X(boxes_[from]) + kWidth, y = Y(boxes_[from]) + kHeight / 2.0;
    const double to_x = X(boxes_[to]), to_y = Y(boxes_[to]) + kHeight / 2.0;
    const Value& value = graph_.value(v);
    return fmt::format("<path d=\"M{0} {1} C{2} {1} {3} {4} {5} {4}\"><title>{6}</title></path>\n",
                       x, y, x + 40, to_x - 40, to_y, to_x,
                       Escaped(value.name + " " + ShapeText(graph_, value.shape)));
  }

  std::string BoxAt(size_t b, std::string_view classes, std::string_view first,
                    std::string_view second, std::string_view all) const {
    const double x = X(boxes_[b]), y = Y(boxes_[b]);
    return fmt::format(
        "<g class=\"{}\"><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>"
        "<text x=\"{}\" y=\"{}\">{}</text><text x=\"{}\" y=\"{}\">{}</text></g>\n",
        classes, Escaped(all), x, y, kWidth, kHeight, x + 6, y + 14, Short(first), x + 6, y + 28,
        Short(second));
  }

  std::string NodeBox(size_t b) const {
    const Node& node = graph_.nodes[b];
    std::string classes(node.device == Device::kAuto  ? "any"
                        : IsCopy(node)                ? "copy"
                        : node.device == Device::kGpu ? "gpu"
                                                      : "cpu");
    if (node.forward != kNone) classes += " gradient";
    if (node.phase == Phase::kStep) classes += " step";
    return BoxAt(b, classes, node.name, node.op, NodeText(graph_, node));
  }

  std::string ValueBox(size_t b) const {
    const Value& value = graph_.value(outside_[b - NodeCount()]);
    const std::string shape = ShapeText(graph_, value.shape);
    return BoxAt(b, "value", value.name, shape, value.name + " " + shape);
  }

  const Graph& graph_;
  std::vector<Box> boxes_;           // Of nodes, then of values from outside.
  std::vector<ValueIndex> outside_;  // Of those boxes.
  std::vector<uint32_t> of_value_;   // Its box, of values from outside.
};

std::string SubgraphRows(const Plan& plan, std::string_view pass,
                         const std::vector<Subgraph>& subgraphs) {
  std::string out;
  for (const Subgraph& subgraph : subgraphs) {
    std::string waits = subgraph.needs_rows ? "pulled rows" : "", nodes;
    for (const uint32_t w : subgraph.waits) {
      waits += (waits.empty() ? "" : ", ") + subgraphs[w].name;
    }
    for (const NodeIndex n : subgraph.nodes) nodes += plan.graph.nodes[n].name + " ";
    const Stream stream = subgraph.stream;
    out += fmt::format(
        "<tr><td>{}</td><td>{}</td><td class=\"{}\">{}</td><td>{}</td><td>{}</td></tr>\n", pass,
        Escaped(subgraph.name),
        stream == Stream::kCpu   ? "cpu"
        : stream == Stream::kGpu ? "gpu"
                                 : "copy",
        NameOf(stream), Escaped(waits), Escaped(nodes));
  }
  return out;
}

}  // namespace

std::string DumpHtml(const Plan& plan, std::string_view title) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>"
      "<style>{1}</style></head>\n<body><h1>{0}</h1>\n"
      "<p>{2} nodes. Blue: processor; green: accelerator; orange: copies; grey: not placed yet. "
      "Dashed: gradients; thick: once a step. White: what comes from outside.</p>\n"
      "<div class=\"drawing\">{3}</div>\n",
      Escaped(title), kStyle, plan.graph.nodes.size(), Drawing(plan.graph).Svg());
  if (!plan.train.empty() || !plan.evaluate.empty()) {
    out +=
        "<table><tr><td>pass</td><td>subgraph</td><td>stream</td><td>after</td><td>nodes</td>"
        "</tr>\n" +
        SubgraphRows(plan, "train", plan.train) + SubgraphRows(plan, "evaluate", plan.evaluate) +
        "</table>\n";
  }
  return out + "<p><code>" + Escaped(DumpText(plan.graph)) + "</code></p></body></html>\n";
}

}  // namespace dt::scheduler
