#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "common/layout/layout.h"
#include "test/ops/cases/case_maker.h"

namespace dt::test {
namespace {

using Defined = std::function<std::vector<Numbers>(const OpCase&)>;

Defined Pair(double (*f)(double, double)) {
  return [f](const OpCase& c) {
    const Tensor a = In(c, 0), b = In(c, 1);
    return std::vector<Numbers>{
        ForEach(OutShape(c), [&](const Index& i) { return f(a.at(i), b.at(i)); })};
  };
}

std::vector<Numbers> Where(const OpCase& c) {
  const Tensor condition = In(c, 0), a = In(c, 1), b = In(c, 2);
  return {ForEach(OutShape(c),
                  [&](const Index& i) { return condition.at(i) != 0 ? a.at(i) : b.at(i); })};
}

std::vector<Numbers> Prelu(const OpCase& c) {
  const Tensor x = In(c, 0), alpha = In(c, 1);
  return {ForEach(x.shape, [&](const Index& i) {
    return std::max(x.at(i), 0.0) + alpha.at(i) * std::min(x.at(i), 0.0);
  })};
}

std::vector<Numbers> Dice(const OpCase& c) {
  const Tensor x = In(c, 0), normal = In(c, 1), alpha = In(c, 2);
  return {ForEach(x.shape, [&](const Index& i) {
    const double p = 1 / (1 + std::exp(-normal.at(i)));
    return p * x.at(i) + (1 - p) * alpha.at(i) * x.at(i);
  })};
}

size_t AxisOf(const OpCase& c, const Tensor& x) {
  const int64_t axis = IntAttr(c.attrs, "axis", -1);
  return static_cast<size_t>(axis < 0 ? axis + std::ssize(x.shape) : axis);
}

std::vector<Numbers> ReduceMax(const OpCase& c) {
  const Tensor x = In(c, 0);
  const size_t axis = AxisOf(c, x);
  Shape kept = x.shape;
  kept[axis] = 1;
  return {ForEach(kept, [&](Index i) {
    double largest = -INFINITY;
    for (i[axis] = 0; i[axis] < x.dim(axis); ++i[axis]) largest = std::max(largest, x.at(i));
    return largest;
  })};
}

// Appends the k largest of x and their positions.
void AddLargest(std::span<const double> x, size_t k, std::vector<Numbers>& out) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return x[i]; });
  for (size_t i = 0; i < k; ++i) {
    out[0].push_back(i < x.size() ? x[order[i]] : 0);
    out[1].push_back(static_cast<double>(i < x.size() ? order[i] : x.size()));
  }
}

std::vector<Numbers> TopK(const OpCase& c) {
  const Tensor x = In(c, 0);
  std::vector<int64_t> lists = IntsAttr(c.attrs, "lists");
  if (lists.empty()) lists = {x.shape.back()};
  std::vector<Numbers> out(2);
  for (std::span<const double> left = x.values; !left.empty();) {
    for (const int64_t length : lists) {
      const auto list = left.first(static_cast<size_t>(length));
      AddLargest(list, static_cast<size_t>(IntAttr(c.attrs, "k", 0)), out);
      left = left.subspan(list.size());
    }
  }
  return out;
}

// Puts the largest of the parts where they were, and chooses among all.
std::vector<Numbers> MergeTopK(const OpCase& c) {
  const Tensor largest = In(c, 0);
  const int64_t size = IntAttr(c.attrs, "size", 0), parts = largest.shape[largest.shape.size() - 2];
  const auto each = static_cast<size_t>(largest.shape.back());
  const size_t candidates = static_cast<size_t>(parts) * each;
  std::vector<Numbers> out(2);
  for (size_t begin = 0; begin < largest.values.size(); begin += candidates) {
    Numbers row(static_cast<size_t>(size), -std::numeric_limits<double>::infinity());
    for (size_t i = 0; i < candidates; ++i) {
      const Range part = EvenPart({0, size}, parts, static_cast<int64_t>(i / each));
      const auto position = static_cast<int64_t>(c.inputs[1].values[begin + i]);
      if (position >= part.size()) continue;
      row[static_cast<size_t>(part.begin + position)] = largest.values[begin + i];
    }
    AddLargest(row, static_cast<size_t>(IntAttr(c.attrs, "k", 0)), out);
  }
  return out;
}

std::vector<Numbers> Gather(const OpCase& c) {
  const Tensor x = In(c, 0);
  const size_t axis = AxisOf(c, x);
  const std::vector<int64_t> indices = IntsAttr(c.attrs, "indices");
  return {ForEach(OutShape(c), [&](Index i) {
    i[axis] = indices[static_cast<size_t>(i[axis])];
    return x.at(i);
  })};
}

// The ids of one sample; `cut` is the number of leading ids that are dropped.
struct List {
  int64_t begin = 0, count = 0, cut = 0;
};
List ListOf(const OpCase& c, size_t ends_at, int64_t length, int64_t b) {
  const Numbers& ends = c.inputs[ends_at].values;
  const auto at = static_cast<size_t>(b);
  List list;
  list.begin = at == 0 ? 0 : static_cast<int64_t>(ends[at - 1]);
  list.count = static_cast<int64_t>(ends[at]) - list.begin;
  list.cut = std::max<int64_t>(0, list.count - length);
  return list;
}

std::vector<Numbers> LengthsMask(const OpCase& c) {
  return {ForEach(OutShape(c), [&](const Index& i) {
    return i[1] < ListOf(c, 0, IntAttr(c.attrs, "length", 0), i[0]).count ? 1.0 : 0.0;
  })};
}

std::vector<Numbers> RaggedToPadded(const OpCase& c) {
  const Tensor values = In(c, 0);
  return {ForEach(OutShape(c), [&](const Index& i) {
    const List list = ListOf(c, 1, IntAttr(c.attrs, "length", 0), i[0]);
    const int64_t at = list.cut + i[1];
    return at < list.count ? values.at({list.begin + at, i[2]}) : 0.0;
  })};
}

std::vector<Numbers> PaddedToRagged(const OpCase& c) {
  const Tensor x = In(c, 0);
  Numbers out;
  for (int64_t b = 0; b < x.dim(0); ++b) {
    const List list = ListOf(c, 1, x.dim(1), b);
    for (int64_t at = 0; at < list.count; ++at) {
      for (int64_t d = 0; d < x.dim(2); ++d) {
        out.push_back(at < list.cut ? 0 : x.at({b, at - list.cut, d}));
      }
    }
  }
  return {out};
}

std::vector<Numbers> GatherLists(const OpCase& c) {
  if (!Flag(c, "ragged")) return {};
  const Tensor rows = In(c, 0);
  const bool weighted = Flag(c, "weighted");
  return {ForEach(OutShape(c), [&](const Index& i) {
    const auto at = static_cast<size_t>(i[0]);
    const double weight = weighted ? c.inputs[4].values[at] : 1;
    return weight * rows.at({static_cast<int64_t>(c.inputs[1].values[at]), i[1]});
  })};
}

std::vector<Numbers> Embedding(const OpCase& c) {
  const Tensor weight = In(c, 0), ids = In(c, 1);
  const std::vector<int64_t> split = IntsAttr(c.attrs, "manual_split");
  return {ForEach(OutShape(c), [&](const Index& i) {
    const auto field = static_cast<size_t>(i[1]);
    const auto id = static_cast<int64_t>(ids.at({i[0], i[1]}));
    if (id >= (split.empty() ? weight.dim(0) : split[field])) return 0.0;
    int64_t row = id;
    for (size_t f = 0; f < field && !split.empty(); ++f) row += split[f];
    return weight.at({row, i[2]});
  })};
}

std::map<std::string, Defined> MakeDefinitions() {
  return {
      {"div", Pair([](double a, double b) { return a / b; })},
      {"maximum", Pair([](double a, double b) { return std::max(a, b); })},
      {"minimum", Pair([](double a, double b) { return std::min(a, b); })},
      {"equal", Pair([](double a, double b) { return a == b ? 1.0 : 0.0; })},
      {"less", Pair([](double a, double b) { return a < b ? 1.0 : 0.0; })},
      {"less_equal", Pair([](double a, double b) { return a <= b ? 1.0 : 0.0; })},
      {"greater", Pair([](double a, double b) { return a > b ? 1.0 : 0.0; })},
      {"greater_equal", Pair([](double a, double b) { return a >= b ? 1.0 : 0.0; })},
      {"embedding", Embedding},
      {"where", Where},
      {"prelu", Prelu},
      {"dice", Dice},
      {"reduce_max", ReduceMax},
      {"gather", Gather},
      {"top_k", TopK},
      {"merge_top_k", MergeTopK},
      {"lengths_mask", LengthsMask},
      {"ragged_to_padded", RaggedToPadded},
      {"padded_to_ragged", PaddedToRagged},
      {"gather_rows", GatherLists},
  };
}

}  // namespace

std::vector<Numbers> RaggedDefinition(const OpCase& c) {
  static const std::map<std::string, Defined> definitions = MakeDefinitions();
  const auto found = definitions.find(c.op);
  return found == definitions.end() ? std::vector<Numbers>() : found->second(c);
}

}  // namespace dt::test
