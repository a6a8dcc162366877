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

// A dimension as names of loops, without their extents.
struct NamedAxis {
  std::vector<std::string> loops;
  bool lists = false;
};

Status Malformed(const Node& node, std::string_view term) {
  return Internal("the sharding rule of {} does not fit {} at \"{}\"", node.op, node.name, term);
}

// `rank`: rank of the tensor, which `*` and `~` depend on.
Result<std::vector<NamedAxis>> AxesOf(const Node& node, std::string_view term, size_t rank) {
  std::vector<NamedAxis> axes;
  std::optional<std::pair<size_t, bool>> rest;  // Position of `*` (true) or `~` (false).
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == '*' || term[i] == '~') {
      rest = {axes.size(), term[i] == '*'};
    } else if (term[i] == '(') {
      axes.emplace_back();
      while (++i < term.size() && term[i] != ')') axes.back().loops.emplace_back(1, term[i]);
    } else if (term[i] == '\'') {
      axes.back().lists = true;
    } else {
      axes.emplace_back();
      if (std::isalpha(static_cast<unsigned char>(term[i])) != 0) {
        axes.back().loops.emplace_back(1, term[i]);
      }
    }
  }
  if (axes.size() > rank || (axes.size() < rank && !rest)) return Malformed(node, term);
  for (size_t i = 0; axes.size() < rank; ++i) {
    NamedAxis axis;
    if (rest->second) axis.loops.push_back("*" + std::to_string(i));
    axes.insert(axes.begin() + static_cast<ptrdiff_t>(rest->first + i), std::move(axis));
  }
  return axes;
}

bool MayBeCut(const std::string& loop) {
  return std::isupper(static_cast<unsigned char>(loop[0])) == 0;
}

class Reader {
 public:
  Reader(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  Result<Sharding> Read(std::string_view text) {
    std::string_view attrs;
    if (const size_t bar = text.find('|'); bar != text.npos) {
      attrs = text.substr(bar + 1);
      text = text.substr(0, bar);
    }
    const size_t arrow = text.find("->");
    if (arrow == text.npos) return Malformed(node_, text);
    const std::vector<std::string_view> ins = Pieces(text.substr(0, arrow));
    const std::vector<std::string_view> outs = Pieces(text.substr(arrow + 2));
    if (node_.inputs.size() > ins.size() || node_.outputs.size() != outs.size()) {
      return Malformed(node_, text);
    }
    for (size_t i = 0; i < node_.inputs.size(); ++i) DT_TRY_STATUS(ReadInput(i, ins[i]));
    for (size_t i = 0; i < outs.size(); ++i) DT_TRY_STATUS(ReadOutput(i, outs[i]));
    for (const auto& [axis, dim] : products_) DT_TRY_STATUS(FindFactor(axis, dim));
    for (const std::string_view attr : Pieces(attrs)) DT_TRY_STATUS(ReadAttr(attr));
    return std::move(sharding_);
  }

 private:
  Status ReadInput(size_t i, std::string_view term) {
    ShardTensor tensor;
    if (Take(term, "^")) tensor.holds = Holds::kListEnds;
    if (Take(term, "@")) tensor.holds = Holds::kRowUses;
    DT_TRY(tensor.axes, ReadAxes(term, graph_.value(node_.inputs[i]).shape));
    sharding_.inputs.push_back(std::move(tensor));
    return OkStatus();
  }

  Status ReadOutput(size_t i, std::string_view term) {
    ShardTensor tensor;
    if (Take(term, "mean ")) tensor.join = Join::kMean;
    if (Take(term, "max ")) tensor.join = Join::kMax;
    if (Take(term, "same ")) tensor.join = Join::kSame;
    DT_TRY(tensor.axes, ReadAxes(term, graph_.value(node_.outputs[i]).shape));
    sharding_.outputs.push_back(std::move(tensor));
    return OkStatus();
  }

  // Reads an attribute such as "heads=h" or "shape=b(cd)".
  Status ReadAttr(std::string_view attr) {
    const size_t equals = attr.find('=');
    if (equals == attr.npos) return Malformed(node_, attr);
    const std::string name(attr.substr(0, equals));
    const auto given = node_.attrs.find(name);
    if (given == node_.attrs.end()) return OkStatus();
    const auto* numbers = std::get_if<std::vector<int64_t>>(&given->second);
    const size_t count = numbers == nullptr ? 1 : numbers->size();
    DT_TRY(const std::vector<NamedAxis> axes, AxesOf(node_, attr.substr(equals + 1), count));
    for (size_t at = 0; at < count; ++at) {
      sharding_.attrs.push_back({name, at, Numbered(axes[at])});
    }
    return OkStatus();
  }

  Result<std::vector<ShardAxis>> ReadAxes(std::string_view term, const SymShape& shape) {
    DT_TRY(const std::vector<NamedAxis> named, AxesOf(node_, term, shape.size()));
    std::vector<ShardAxis> axes;
    for (size_t d = 0; d < named.size(); ++d) {
      axes.push_back(Numbered(named[d]));
      if (named[d].lists || named[d].loops.empty()) continue;
      if (named[d].loops.size() > 1) {
        products_.emplace_back(axes.back(), shape[d]);
      } else {
        DT_TRY_STATUS(SetExtent(axes.back().loops[0], shape[d]));
      }
    }
    return axes;
  }

  ShardAxis Numbered(const NamedAxis& named) {
    ShardAxis axis;
    axis.lists = named.lists;
    for (const std::string& loop : named.loops) {
      const auto [at, is_new] =
          numbers_.try_emplace(loop, static_cast<uint8_t>(sharding_.loops.size()));
      if (is_new) {
        sharding_.loops.push_back({.name = loop, .extent = {}, .cut = MayBeCut(loop)});
        known_.push_back(false);
      }
      axis.loops.push_back(at->second);
    }
    return axis;
  }

  Status SetExtent(uint8_t loop, Dim extent) {
    ShardLoop& of = sharding_.loops[loop];
    if (known_[loop] && of.extent != extent) return Malformed(node_, of.name);
    of.extent = extent;
    known_[loop] = true;
    return OkStatus();
  }

  // Finds the extent of the one loop of a product that no other dimension gives.
  Status FindFactor(const ShardAxis& axis, Dim product) {
    std::optional<uint8_t> unknown;
    for (const uint8_t loop : axis.loops) {
      if (!known_[loop]) {
        if (unknown) return Malformed(node_, sharding_.loops[loop].name);
        unknown = loop;
        continue;
      }
      const ShardLoop& factor = sharding_.loops[loop];
      if (!Divides(product, factor.extent)) return Malformed(node_, factor.name);
      product = Quotient(product, factor.extent);
    }
    if (unknown) return SetExtent(*unknown, product);
    return product == Const(1) ? OkStatus() : Malformed(node_, "a product");
  }

  const Graph& graph_;
  const Node& node_;
  Sharding sharding_;
  std::map<std::string, uint8_t> numbers_;  // Numbers of loops by name.
  std::vector<bool> known_;                 // Indexed by loop: whether its extent is known.
  std::vector<std::pair<ShardAxis, Dim>> products_;
};

}  // namespace

bool ShardTensor::Has(uint8_t loop) const {
  return std::ranges::any_of(
      axes, [&](const ShardAxis& axis) { return std::ranges::count(axis.loops, loop) > 0; });
}

std::string LoopsOf(const Graph& graph, const Node& node) {
  const ShardingRule& rule = FindOp(node.op)->sharding;
  return rule.derive == nullptr ? std::string(rule.loops) : rule.derive(graph, node);
}

Result<Sharding> ShardingOf(const Graph& graph, const Node& node) {
  return Reader(graph, node).Read(LoopsOf(graph, node));
}

}  // namespace dt
