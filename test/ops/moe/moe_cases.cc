// Cases and definitions of the operators that mixtures of experts are made of.
#include "common/base/philox.h"
#include "test/ops/cases/case_maker.h"

namespace dt::test {
namespace {

CaseInput IndexOf(SymShape shape, Numbers values) {
  return {std::move(shape), std::move(values), true, false};
}

void AddDispatch(CaseMaker& make, const std::string& name, int64_t experts, int64_t k) {
  OpCase& c = make.Add(name, "dispatch", {{"experts", experts}}, {{Batch(), Const(5)}});
  Numbers chosen;
  const uint64_t stream = make.NextStream();
  for (int64_t p = 0; p < k * make.batch(); ++p) {
    const uint32_t drawn = Philox(stream, 0, static_cast<uint64_t>(p))[0];
    // Some choices are of an expert beyond the last one; the second expert is never chosen.
    const int64_t expert = drawn % (experts + 1);
    chosen.push_back(static_cast<double>(expert == 1 ? 0 : expert));
  }
  c.inputs.push_back(IndexOf({Batch(), Const(k)}, std::move(chosen)));
}

// Uses every position once: first choices are in the first half, second choices in the second.
void AddCombine(CaseMaker& make, const std::string& name, bool has_gates) {
  const int64_t n = make.batch();
  OpCase& c = make.Add(name, "combine", {}, {{Batch(2), Const(19)}});
  Numbers places;
  for (int64_t p = 0; p < 2 * n; ++p) places.push_back(static_cast<double>(p / 2 + p % 2 * n));
  const SymShape choices = {Batch(), Const(2)};
  c.inputs.push_back(IndexOf(choices, std::move(places)));
  if (has_gates) c.inputs.push_back(Floats(c, choices, make.NextStream()));
}

// Of 2 B rows the first expert has a seventh, the second has none, and the third all others.
void AddProduct(CaseMaker& make, const std::string& name, int64_t width, int64_t units) {
  const int64_t n = 2 * make.batch();
  const Numbers ends = {static_cast<double>(n / 7), static_cast<double>(n / 7),
                        static_cast<double>(n)};
  for (const bool transposed : {false, true}) {
    for (const bool has_bias : {false, true}) {
      OpCase& c =
          make.Add(fmt::format("{}{}{}", name, transposed ? ", transposed" : "",
                               has_bias ? ", with bias" : ""),
                   "expert_matmul", {{"transpose_b", transposed}}, {{Batch(2), Const(width)}});
      c.inputs.push_back(IndexOf({Const(3)}, ends));
      const SymShape weight = {Const(3), Const(transposed ? units : width),
                               Const(transposed ? width : units)};
      c.inputs.push_back(Floats(c, weight, make.NextStream()));
      if (has_bias) c.inputs.push_back(Floats(c, {Const(3), Const(units)}, make.NextStream()));
    }
  }
}

std::vector<Numbers> Dispatch(const OpCase& c) {
  const Tensor x = In(c, 0), chosen = In(c, 1);
  const int64_t experts = IntAttr(c.attrs, "experts", 0);
  std::vector<Numbers> out(3);
  out[2].resize(chosen.values.size());
  double row = 0;
  for (int64_t e = 0; e < experts; ++e) {
    for (int64_t b = 0; b < x.dim(0); ++b) {
      for (int64_t j = 0; j < chosen.dim(1); ++j) {
        if (std::min(static_cast<int64_t>(chosen.at({b, j})), experts - 1) != e) continue;
        for (int64_t d = 0; d < x.dim(1); ++d) out[0].push_back(x.at({b, d}));
        out[2][static_cast<size_t>(b * chosen.dim(1) + j)] = row++;
      }
    }
    out[1].push_back(row);
  }
  return out;
}

std::vector<Numbers> Combine(const OpCase& c) {
  const Tensor rows = In(c, 0), places = In(c, 1);
  return {ForEach(OutShape(c), [&](const Index& i) {
    double sum = 0;
    for (int64_t j = 0; j < places.dim(1); ++j) {
      const double gate = c.inputs.size() == 3 ? In(c, 2).at({i[0], j}) : 1;
      sum += gate * rows.at({static_cast<int64_t>(places.at({i[0], j})), i[1]});
    }
    return sum;
  })};
}

std::vector<Numbers> ExpertMatmul(const OpCase& c) {
  const Tensor rows = In(c, 0), ends = In(c, 1), weight = In(c, 2);
  const Tensor bias = c.inputs.size() == 4 ? In(c, 3) : Tensor{};
  const bool transposed = Flag(c, "transpose_b");
  return {ForEach(OutShape(c), [&](const Index& i) {
    int64_t e = 0;
    while (static_cast<double>(i[0]) >= ends.at({e})) ++e;
    double sum = bias.values.empty() ? 0 : bias.at({e, i[1]});
    for (int64_t k = 0; k < rows.dim(1); ++k) {
      sum += rows.at({i[0], k}) * (transposed ? weight.at({e, i[1], k}) : weight.at({e, k, i[1]}));
    }
    return sum;
  })};
}

}  // namespace

void AddMoeCases(CaseMaker& make) {
  AddDispatch(make, "dispatch", 4, 2);
  AddDispatch(make, "dispatch to one expert", 1, 1);
  AddDispatch(make, "dispatch to all of many", 33, 33);
  AddCombine(make, "combine", true);
  AddCombine(make, "combine without gates", false);
  AddProduct(make, "expert_matmul", 7, 9);
  AddProduct(make, "expert_matmul of wide rows", 70, 129);
  AddProduct(make, "expert_matmul to wide rows", 20, 200);
}

std::vector<Numbers> MoeDefinition(const OpCase& c) {
  if (c.op == "dispatch") return Dispatch(c);
  if (c.op == "combine") return Combine(c);
  if (c.op == "expert_matmul") return ExpertMatmul(c);
  return {};
}

}  // namespace dt::test
