#include "ops/loops.h"

#include <algorithm>

#include <fmt/core.h>

#include "ops/infer.h"

namespace dt {
namespace {

// Divides the dimensions of a tensor into loops, from the left.
class Regrouped {
 public:
  explicit Regrouped(const SymShape& shape) : shape_(shape) { Open(); }

  bool done() const { return at_ == shape_.size(); }
  const Dim& left() const { return left_; }  // The remainder of the current dimension.
  const std::string& text() const { return text_; }

  void Take(char loop, const Dim& factor) {
    loops_ += loop;
    left_ = Quotient(left_, factor);
    if (left_ == Const(1)) Close();
  }
  // The remaining dimensions are not cut.
  void TakeRest(char loop) {
    while (!done()) {
      if (!loops_.empty()) loops_ += loop;
      Close();
    }
  }

 private:
  void Open() {
    for (; !done() && shape_[at_] == Const(1); ++at_) text_ += '1';
    if (!done()) left_ = shape_[at_];
  }
  void Close() {
    if (loops_.empty()) loops_ = ".";
    text_ += loops_.size() == 1 ? loops_ : fmt::format("({})", loops_);
    loops_.clear();
    ++at_;
    Open();
  }

  const SymShape& shape_;
  size_t at_ = 0;
  Dim left_;
  std::string loops_, text_;
};

char Letter(size_t i) { return static_cast<char>('a' + i); }

}  // namespace

std::string BroadcastLoops(const Graph& graph, const Node& node) {
  size_t rank = 0;
  std::vector<const SymShape*> shapes;
  for (const std::vector<ValueIndex>* values : {&node.inputs, &node.outputs}) {
    for (const ValueIndex v : *values) {
      shapes.push_back(&graph.value(v).shape);
      rank = std::max(rank, shapes.back()->size());
    }
  }
  std::string text;
  for (size_t t = 0; t < shapes.size(); ++t) {
    if (t == node.inputs.size()) {
      text += "->";
    } else if (t > 0) {
      text += ',';
    }
    const size_t skip = rank - shapes[t]->size();
    for (size_t d = 0; d < shapes[t]->size(); ++d) {
      text += (*shapes[t])[d] == Const(1) ? '1' : Letter(skip + d);
    }
  }
  if (node.outputs.empty()) text += "->";
  // Axes stand in the order of dimensions, also if the first input is broadcast.
  std::string order;
  for (size_t d = 0; d < rank; ++d) {
    if (text.find(Letter(d)) != text.npos) order += Letter(d);
  }
  return text.starts_with('1') && node.inputs.size() > 1 ? text + "|order=" + order : text;
}

std::string AxesText(const std::vector<bool>& whole) {
  std::string text;
  for (size_t d = 0; d < whole.size(); ++d) text += whole[d] ? '.' : Letter(d);
  return text;
}

std::string OneAxisLoops(const Graph& graph, const Node& node) {
  const size_t rank = graph.value(node.outputs[0]).shape.size();
  std::vector<bool> whole(rank, false);
  whole[*AxisOf(InferContext{graph, node, {}}, IntAttr(node.attrs, "axis", -1), rank)] = true;
  std::string text;
  for (size_t i = 0; i < node.inputs.size(); ++i) text += (i > 0 ? "," : "") + AxesText(whole);
  return text + "->" + AxesText(whole);
}

std::string RegroupedLoops(const Graph& graph, const Node& node) {
  Regrouped in(graph.value(node.inputs[0]).shape), out(graph.value(node.outputs[0]).shape);
  for (size_t loop = 0; !in.done() && !out.done(); ++loop) {
    const Dim factor = Divides(out.left(), in.left()) ? in.left() : out.left();
    if (!Divides(in.left(), factor) || !Divides(out.left(), factor)) break;
    in.Take(Letter(loop), factor);
    out.Take(Letter(loop), factor);
  }
  in.TakeRest('X');
  out.TakeRest('Y');
  return fmt::format("{}->{}|shape={}", in.text(), out.text(), out.text());
}

std::string UncutLoops(const Graph&, const Node& node) {
  std::string text;
  for (size_t i = 0; i < node.inputs.size(); ++i) text += i > 0 ? ",~" : "~";
  text += "->";
  for (size_t i = 0; i < node.outputs.size(); ++i) text += i > 0 ? ",~" : "~";
  return text;
}

}  // namespace dt
