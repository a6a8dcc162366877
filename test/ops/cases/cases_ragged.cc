#include <cmath>

#include "test/ops/cases/case_maker.h"

namespace dt::test {
namespace {

void AddPairs(CaseMaker& make, const char* op) {
  const Dim b = Batch();
  const std::string name = op;
  const size_t first = make.cases.size();
  make.Add(name, op, {}, {{b, Const(17)}, {b, Const(17)}});
  make.Add(name + ", a row for all", op, {}, {{Const(17)}, {b, Const(17)}});
  make.Add(name + ", a column for all", op, {}, {{b, Const(17)}, {b, Const(1)}});
  make.Add(name + ", both ways", op, {}, {{b, Const(1), Const(4)}, {b, Const(3), Const(1)}});
  for (size_t i = first; i < make.cases.size(); ++i) {
    const bool compares = FindOp(op)->gradient == nullptr, chooses = name.starts_with('m');
    double shift = 0;
    for (CaseInput& input : make.cases[i].inputs) {
      // Comparisons get multiples of 1/2, so that some values are equal; divisors are not near 0.
      // The values between which maximum and minimum choose differ by 1/4 or more, because where
      // they are equal there is no derivative.
      for (double& x : input.values) {
        if (compares || chooses) x = std::round(2 * x) / 2 + shift;
        if (name == "div") x = std::copysign(0.5 + std::fabs(x), x);
      }
      if (chooses) shift = 0.25;
    }
  }
}

void AddWhere(CaseMaker& make) {
  const Dim b = Batch();
  const std::vector<std::vector<SymShape>> shapes = {
      {{b, Const(17)}, {b, Const(17)}, {b, Const(17)}},
      {{b, Const(1)}, {b, Const(17)}, {Const(17)}},
      {{b, Const(17)}, {Const(1)}, {b, Const(1)}},
      {{Const(1)}, {b, Const(3), Const(4)}, {b, Const(3), Const(4)}},
      {{b, Const(3), Const(1)}, {b, Const(1), Const(4)}, {Const(3), Const(4)}},
      {{Const(4)}, {Const(1)}, {b, Const(3), Const(4)}}};
  for (size_t i = 0; i < shapes.size(); ++i) {
    OpCase& c = make.Add(fmt::format("where {}", i), "where", {}, shapes[i]);
    for (double& x : c.inputs[0].values) x = x > 0 ? std::ceil(x) : 0;
    c.inputs[0].smooth = false;
  }
}

void AddActivations(CaseMaker& make) {
  const Dim b = Batch();
  for (const auto& [x, alpha] : {std::pair<SymShape, int64_t>{{b, Const(19)}, 19},
                                 {{b, Const(19)}, 1},
                                 {{b, Const(3), Const(5)}, 5}}) {
    const std::string how = fmt::format(" of {} dimensions, {} slopes", x.size(), alpha);
    make.Add("prelu" + how, "prelu", {}, {x, {Const(alpha)}});
    make.Add("dice" + how, "dice", {}, {x, x, {Const(alpha)}});
  }
}

void AddChoices(CaseMaker& make) {
  const Dim b = Batch();
  const SymShape fields = {b, Const(4), Const(6)};
  make.Add("reduce_max of the last", "reduce_max", {{"axis", int64_t{-1}}}, {fields});
  make.Add("reduce_max of fields", "reduce_max", {{"axis", int64_t{1}}}, {fields});
  make.Add("reduce_max, kept", "reduce_max", {{"axis", int64_t{1}}, {"keep_dims", true}}, {fields});
  make.Add("reduce_max of a parameter", "reduce_max", {{"axis", int64_t{0}}},
           {{Const(50), Const(3)}});
  make.Add("top_k", "top_k", {{"k", int64_t{3}}}, {{b, Const(2), Const(41)}});
  make.Add("top_k of all", "top_k", {{"k", int64_t{6}}}, {{b, Const(6)}});
  OpCase& ties = make.Add("top_k with ties", "top_k", {{"k", int64_t{4}}}, {{b, Const(9)}});
  for (double& x : ties.inputs[0].values) x = std::round(x);
  ties.inputs[0].smooth = false;
  using Ints = std::vector<int64_t>;
  make.Add("top_k of lists", "top_k", {{"k", int64_t{2}}, {"lists", Ints{4, 1, 0, 3}}},
           {{b, Const(2), Const(8)}});
  // Parts of 3, 3 and 1 elements.
  OpCase& merged = make.Add("merge_top_k", "merge_top_k", {{"k", int64_t{2}}, {"size", int64_t{7}}},
                            {{b, Const(3), Const(2)}});
  CaseInput positions = Floats(merged, {b, Const(3), Const(2)}, make.NextStream());
  positions.index = true, positions.smooth = false;
  for (size_t i = 0; i < positions.values.size(); ++i) {
    const bool turned = positions.values[i] > 0;
    positions.values[i] = i % 6 < 4 ? (i % 2 == 0 ? (turned ? 2 : 0) : 1) : (i % 2 == 0 ? 0 : 1);
  }
  merged.inputs.push_back(std::move(positions));
  make.Add("gather", "gather", {{"indices", Ints{5, 0, 5, 1}}}, {fields});
  make.Add("gather of fields", "gather", {{"axis", int64_t{1}}, {"indices", Ints{2, 2}}}, {fields});
  make.Add("gather of a parameter", "gather", {{"axis", int64_t{0}}, {"indices", Ints{1, 3, 1}}},
           {{Const(4), Const(3)}});
}

// Lists of up to five ids, cut or padded to three.
void AddLists(CaseMaker& make) {
  constexpr int64_t kLongest = 5, kDim = 7;
  const Attrs length = {{"length", int64_t{3}}};
  const SymShape ids = {{kIdsSymbol, 1}}, values = {{kIdsSymbol, 1}, Const(kDim)};
  const auto ends_of = [&](OpCase& c) {
    return CaseInput{{Batch()}, ListEnds(make, c, kLongest), true, false};
  };
  OpCase& mask = make.Add("lengths_mask", "lengths_mask", length, {});
  mask.inputs = {ends_of(mask)};
  OpCase& pad = make.Add("ragged_to_padded", "ragged_to_padded", length, {});
  const CaseInput pad_ends = ends_of(pad);
  pad.inputs = {Floats(pad, values, make.NextStream()), pad_ends};
  OpCase& cut =
      make.Add("padded_to_ragged", "padded_to_ragged", {}, {{Batch(), Const(3), Const(kDim)}});
  cut.inputs.push_back(ends_of(cut));
  cut.inputs.push_back(Floats(cut, ids, make.NextStream()));
  cut.inputs.back().smooth = false;
  for (const bool weighted : {false, true}) {
    OpCase& rows = make.Add("gather_rows of lists", "gather_rows",
                            {{"ragged", true}, {"weighted", weighted}}, {});
    ends_of(rows);
    AddLookup(make, rows, ids, {6, kDim});
    if (weighted) rows.inputs.push_back(Floats(rows, ids, make.NextStream()));
    rows.inputs.back().smooth = false;
  }
}

// With the attribute, each field has its own rows.
void AddEmbeddings(CaseMaker& make) {
  const std::vector<int64_t> split = {5, 1, 9, 0, 2};
  for (const bool fields : {false, true}) {
    OpCase& c = make.Add(fields ? "embedding of fields" : "embedding", "embedding", {},
                         {{Const(17), Const(6)}, {Batch(), Const(5)}});
    if (fields) c.attrs["manual_split"] = split;
    CaseInput& ids = c.inputs[1];
    ids.index = true, ids.smooth = false;
    for (size_t i = 0; i < ids.values.size(); ++i) {
      const auto rows = static_cast<double>(fields ? split[i % 5] : 17);
      // Some name no row.
      ids.values[i] = std::floor(std::fmod(std::fabs(ids.values[i]) * 1000, rows + 1));
    }
  }
}

}  // namespace

void AddRaggedCases(CaseMaker& make) {
  for (const char* op :
       {"div", "maximum", "minimum", "equal", "less", "less_equal", "greater", "greater_equal"}) {
    AddPairs(make, op);
  }
  AddWhere(make);
  AddActivations(make);
  AddChoices(make);
  AddLists(make);
  AddEmbeddings(make);
}

}  // namespace dt::test
