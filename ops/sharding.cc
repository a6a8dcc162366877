#include "ops/sharding.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "common/base/text.h"
#include "ops/infer.h"
#include "ops/op_spec.h"

namespace dt {
namespace {

// "a,b" gives a and b; an empty text gives nothing.
std::vector<std::string_view> Pieces(std::string_view text) {
  return text.empty() ? std::vector<std::string_view>() : SplitText(text, ',');
}

bool Take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// A dimension as names of loops, without their extents.
struct NamedAxis {
  std::vector<std::string> loops;
  bool lists = false, own = false;
};

// A term, with a place for the dimensions that it does not name.
struct Term {
  std::vector<NamedAxis> axes;
  // Position and kind of `*` (true) or `~` (false).
  std::optional<std::pair<size_t, bool>> rest;

  explicit Term(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '*' || text[i] == '~') {
        rest = {axes.size(), text[i] == '*'};
      } else if (text[i] == '\'' && !axes.empty()) {
        axes.back().lists = true;
      } else {
        axes.emplace_back();
        axes.back().own = text[i] == '$';
        if (IsLetter(text[i])) axes.back().loops.emplace_back(1, text[i]);
        if (text[i] != '(') continue;
        while (++i < text.size() && text[i] != ')') axes.back().loops.emplace_back(1, text[i]);
      }
    }
  }
  // False if it cannot name `rank` dimensions.
  bool Extend(size_t rank) {
    if (axes.size() > rank || (axes.size() < rank && !rest)) return false;
    for (size_t i = 0; axes.size() < rank; ++i) {
      NamedAxis axis;
      if (rest->second) axis.loops.push_back("*" + std::to_string(i));
      axes.insert(axes.begin() + static_cast<ptrdiff_t>(rest->first + i), std::move(axis));
    }
    return true;
  }
};

bool MayBeCut(const std::string& loop) {
  return std::isupper(static_cast<unsigned char>(loop[0])) == 0;
}

class Reader {
 public:
  explicit Reader(ShardingText& rule) : rule_(rule) {}

  Result<Sharding> Read() {
    std::string_view text = rule_.text, rest;
    if (const size_t bar = text.find('|'); bar != text.npos) {
      rest = text.substr(bar + 1);
      text = text.substr(0, bar);
    }
    const size_t arrow = text.find("->");
    if (arrow == text.npos) return Malformed(text);
    const std::vector<std::string_view> ins = Pieces(text.substr(0, arrow));
    const std::vector<std::string_view> outs = Pieces(text.substr(arrow + 2));
    if (rule_.inputs.size() > ins.size()) return Malformed(text);
    for (size_t i = 0; i < rule_.inputs.size(); ++i) DT_TRY_STATUS(ReadInput(i, ins[i]));
    if (rule_.outputs.empty()) {
      for (const std::string_view out : outs) DT_TRY_STATUS(DeriveShape(out));
    }
    if (rule_.outputs.size() != outs.size()) return Malformed(text);
    for (size_t i = 0; i < outs.size(); ++i) DT_TRY_STATUS(ReadOutput(i, outs[i]));
    for (const auto& [axis, dim] : products_) DT_TRY_STATUS(FindFactor(axis, dim));
    for (const std::string_view item : Pieces(rest)) DT_TRY_STATUS(ReadItem(item));
    for (LoopIndex loop = 0; loop < sharding_.loops.size(); ++loop) {
      const bool named = std::ranges::count(sharding_.order, loop) > 0;
      if (sharding_.loops[loop].cut && !named) sharding_.order.push_back(loop);
    }
    return std::move(sharding_);
  }

 private:
  Status Malformed(std::string_view term) const {
    return Internal("the sharding rule \"{}\" of {} does not fit its shapes at \"{}\"", rule_.text,
                    rule_.name, term);
  }

  Status ReadInput(size_t i, std::string_view term) {
    ShardTensor tensor;
    std::optional<std::string> counted;
    for (bool more = true; more;) {
      if (Take(term, "^")) {
        tensor.holds = Holds::kListEnds;
      } else if (Take(term, "@")) {
        tensor.holds = Holds::kRowUses;
      } else if (Take(term, "&")) {
        tensor.linear = Linear::kAlone;
      } else if (Take(term, "+")) {
        tensor.linear = Linear::kTogether;
      } else if (term.size() > 1 && Take(term, "#")) {
        tensor.holds = Holds::kPositions;
        counted = std::string(1, term[0]);
        term.remove_prefix(1);
      } else {
        more = false;
      }
    }
    DT_TRY(tensor.axes, ReadAxes(term, rule_.inputs[i]));
    if (counted) tensor.counted = LoopNamed(*counted);
    sharding_.inputs.push_back(std::move(tensor));
    return OkStatus();
  }

  static std::string_view TakeJoin(std::string_view term, ShardTensor& tensor) {
    if (Take(term, "mean ")) tensor.join = Join::kMean;
    if (Take(term, "max ")) tensor.join = Join::kMax;
    tensor.same = Take(term, "same ");
    return term;
  }

  Status ReadOutput(size_t i, std::string_view term) {
    ShardTensor tensor;
    term = TakeJoin(term, tensor);
    DT_TRY(tensor.axes, ReadAxes(term, rule_.outputs[i]));
    sharding_.outputs.push_back(std::move(tensor));
    return OkStatus();
  }

  // An output whose shape is not given has the extents of its loops.
  Status DeriveShape(std::string_view text) {
    ShardTensor tensor;
    Term term(TakeJoin(text, tensor));
    const size_t rest = term.rest && term.rest->second ? stars_ : 0;
    if (!term.Extend(term.axes.size() + rest)) return Malformed(text);
    SymShape shape;
    for (const NamedAxis& axis : term.axes) {
      Dim dim = Const(1);
      for (const std::string& name : axis.loops) {
        const auto loop = numbers_.find(name);
        if (loop == numbers_.end() || !known_[loop->second]) return Malformed(text);
        const Dim& extent = sharding_.loops[loop->second].extent;
        if (dim.symbol != kConstant && extent.symbol != kConstant) return Malformed(text);
        dim.symbol = std::max(dim.symbol, extent.symbol);
        dim.times *= extent.times;
      }
      shape.push_back(dim);
    }
    rule_.outputs.push_back(std::move(shape));
    return OkStatus();
  }

  // Reads "heads=h", "shape=b(cd)", "first=b", "order=bkn" or "table=rd".
  Status ReadItem(std::string_view item) {
    const size_t equals = item.find('=');
    if (equals == item.npos) return Malformed(item);
    const std::string name(item.substr(0, equals));
    Term term(item.substr(equals + 1));
    const auto given = rule_.attrs.find(name);
    const bool first = name == "first", order = name == "order", table = name == "table";
    if (first || order || table) {
      term.Extend(term.axes.size() + (term.rest ? stars_ : 0));
    } else {
      if (given == rule_.attrs.end()) return OkStatus();
      const auto* numbers = std::get_if<std::vector<int64_t>>(&given->second);
      if (term.axes.size() == 1 && term.axes[0].lists)
        return ReadLengths(name, term.axes[0], numbers);
      if (!term.Extend(numbers == nullptr ? 1 : numbers->size())) return Malformed(item);
    }
    for (size_t at = 0; at < term.axes.size(); ++at) {
      for (const std::string& loop : term.axes[at].loops) {
        if (!numbers_.contains(loop)) return Malformed(item);
      }
      const ShardAxis axis = Numbered(term.axes[at]);
      if (table) {
        sharding_.table.insert(sharding_.table.end(), axis.loops.begin(), axis.loops.end());
      } else if (!order) {
        sharding_.attrs.push_back({name, at, axis, first});
      } else if (axis.loops.size() == 1 && sharding_.loops[axis.loops[0]].cut) {
        sharding_.order.push_back(axis.loops[0]);
      }
    }
    return OkStatus();
  }

  // An attribute with the lengths of a loop's lists.
  Status ReadLengths(const std::string& name, const NamedAxis& axis,
                     const std::vector<int64_t>* lengths) {
    if (lengths == nullptr || axis.loops.size() != 1 || !numbers_.contains(axis.loops[0])) {
      return Malformed(name);
    }
    ShardLoop& loop = sharding_.loops[numbers_[axis.loops[0]]];
    if (loop.extent != Const(std::ssize(*lengths))) return Malformed(name);
    loop.lists = *lengths;
    sharding_.attrs.push_back({.name = name, .axis = Numbered(axis)});
    return OkStatus();
  }

  Result<std::vector<ShardAxis>> ReadAxes(std::string_view text, const SymShape& shape) {
    Term term(text);
    const size_t named = term.axes.size();
    if (!term.Extend(shape.size())) return Malformed(text);
    if (term.rest && term.rest->second) stars_ = std::max(stars_, shape.size() - named);
    std::vector<ShardAxis> axes;
    for (size_t d = 0; d < shape.size(); ++d) {
      axes.push_back(Numbered(term.axes[d]));
      const ShardAxis& axis = axes.back();
      if (axis.lists || axis.loops.empty()) continue;
      if (axis.loops.size() > 1) {
        products_.emplace_back(axis, shape[d]);
      } else {
        DT_TRY_STATUS(SetExtent(axis.loops[0], shape[d]));
      }
    }
    return axes;
  }

  ShardAxis Numbered(const NamedAxis& named) {
    ShardAxis axis;
    axis.lists = named.lists;
    axis.own = named.own;
    for (const std::string& loop : named.loops) axis.loops.push_back(LoopNamed(loop));
    return axis;
  }

  LoopIndex LoopNamed(const std::string& name) {
    const auto [at, is_new] =
        numbers_.try_emplace(name, static_cast<LoopIndex>(sharding_.loops.size()));
    if (is_new) {
      sharding_.loops.push_back({.name = name, .extent = {}, .cut = MayBeCut(name)});
      known_.push_back(false);
    }
    return at->second;
  }

  Status SetExtent(LoopIndex loop, Dim extent) {
    ShardLoop& of = sharding_.loops[loop];
    if (known_[loop] && of.extent != extent) return Malformed(of.name);
    of.extent = extent;
    known_[loop] = true;
    return OkStatus();
  }

  // Finds the extent of the one loop of a product that no other dimension gives.
  Status FindFactor(const ShardAxis& axis, Dim product) {
    std::optional<LoopIndex> unknown;
    for (const LoopIndex loop : axis.loops) {
      if (!known_[loop]) {
        if (unknown) return Malformed(sharding_.loops[loop].name);
        unknown = loop;
        continue;
      }
      const ShardLoop& factor = sharding_.loops[loop];
      if (!Divides(product, factor.extent)) return Malformed(factor.name);
      product = Quotient(product, factor.extent);
    }
    if (unknown) return SetExtent(*unknown, product);
    return product == Const(1) ? OkStatus() : Malformed("a product");
  }

  ShardingText& rule_;
  Sharding sharding_;
  std::map<std::string, LoopIndex> numbers_;  // Numbers of loops by name.
  std::vector<bool> known_;                   // Indexed by loop: whether its extent is known.
  std::vector<std::pair<ShardAxis, Dim>> products_;
  size_t stars_ = 0;  // The most dimensions that a `*` stands for.
};

// Puts the marks of ShardingRule::linear before the terms of the inputs.
std::string WithLinear(std::string_view text, std::string_view linear) {
  const size_t arrow = text.find("->");
  std::string marked;
  size_t at = 0;
  for (const std::string_view term : Pieces(text.substr(0, arrow))) {
    marked += marked.empty() ? "" : ",";
    const char mark = linear[std::min(at++, linear.size() - 1)];
    if (mark != '.') marked += mark;
    marked += term;
  }
  return marked + std::string(text.substr(arrow));
}

// The loop over samples; it is added if the rule has none.
LoopIndex SamplesLoop(Sharding& sharding) {
  for (const LoopIndex loop : sharding.order) {
    if (sharding.loops[loop].extent == Dim{kBatch, 1}) return loop;
  }
  sharding.loops.push_back({.name = "samples", .extent = {kBatch, 1}, .cut = true});
  sharding.order.insert(sharding.order.begin(), static_cast<LoopIndex>(sharding.loops.size() - 1));
  return sharding.order.front();
}

// Replaces a loop by others in all axes.
void ReplaceLoop(Sharding& sharding, LoopIndex loop, const ShardAxis& by) {
  sharding.loops[loop].cut = false;
  std::erase(sharding.order, loop);
  for (auto* tensors : {&sharding.inputs, &sharding.outputs}) {
    for (ShardTensor& tensor : *tensors) {
      for (ShardAxis& axis : tensor.axes) {
        const auto at = std::ranges::find(axis.loops, loop);
        if (at == axis.loops.end()) continue;
        axis.lists = axis.lists || by.lists;
        axis.loops.insert(axis.loops.erase(at), by.loops.begin(), by.loops.end());
      }
    }
  }
}

// How many ids or rows a device has follows from its samples: a loop over them is not cut itself,
// but holds lists of samples. A loop over several positions of each sample is two loops.
void FollowSamples(Sharding& sharding) {
  const size_t loops = sharding.loops.size();
  for (LoopIndex loop = 0; loop < loops; ++loop) {
    const Dim extent = sharding.loops[loop].extent;
    if (!sharding.loops[loop].cut || extent.symbol == kConstant || extent == Dim{kBatch, 1}) {
      continue;
    }
    const LoopIndex samples = SamplesLoop(sharding);
    if (extent.symbol > kBatch) {
      ReplaceLoop(sharding, loop, {.loops = {samples}, .lists = true});
      continue;
    }
    const auto positions = static_cast<LoopIndex>(sharding.loops.size());
    sharding.loops.push_back({.name = sharding.loops[loop].name + ".positions",
                              .extent = Const(extent.times),
                              .cut = true});
    sharding.order.insert(std::ranges::find(sharding.order, loop), positions);
    ReplaceLoop(sharding, loop, {.loops = {samples, positions}});
  }
}

}  // namespace

bool ShardTensor::Has(LoopIndex loop) const {
  return std::ranges::any_of(
      axes, [&](const ShardAxis& axis) { return std::ranges::count(axis.loops, loop) > 0; });
}

bool ShardTensor::HasOwnRows() const {
  return std::ranges::any_of(axes, [](const ShardAxis& axis) { return axis.own; });
}

std::string LoopsOf(const Graph& graph, const Node& node) {
  const ShardingRule& rule = FindOp(node.op)->sharding;
  std::string text = rule.derive == nullptr ? std::string(rule.loops) : rule.derive(graph, node);
  return rule.linear.empty() ? text : WithLinear(text, rule.linear);
}

Result<Sharding> ShardingOf(const Graph& graph, const Node& node) {
  const std::string text = LoopsOf(graph, node);
  ShardingText rule{.name = node.name, .text = text, .attrs = node.attrs};
  for (const ValueIndex v : node.inputs) rule.inputs.push_back(graph.value(v).shape);
  for (const ValueIndex v : node.outputs) rule.outputs.push_back(graph.value(v).shape);
  DT_TRY(Sharding sharding, ReadSharding(rule));
  FollowSamples(sharding);
  return sharding;
}

Result<Sharding> ReadSharding(ShardingText& rule) { return Reader(rule).Read(); }

}  // namespace dt
