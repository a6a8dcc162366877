// Tests of list operators beyond the table of cases: ties, written-out lists, and inputs that the
// shape rules refuse.
#include <cmath>

#include <gtest/gtest.h>

#include "test/ops/cases/case_maker.h"

namespace dt::test {
namespace {

const Dim B = Batch();

Numbers RunOne(const OpCase& c) { return RunCase(c, DType::kF32).outputs[0]; }

TEST(ReduceMax, GradientGoesToTheFirstOfEqualOnes) {
  const OpCase c = CaseOf("reduce_max", {{"axis", int64_t{1}}},
                          {{{B, Const(4)}, {1, 3, 3, 2, /**/ 5, 5, 5, 5}}}, 2);
  EXPECT_EQ(RunOne(c), Numbers({3, 5}));
  EXPECT_EQ(GradientOf(c, {{10, 20}}, DType::kF32)[0], Numbers({0, 10, 0, 0, /**/ 20, 0, 0, 0}));
}

TEST(ReduceMax, ShowsNaN) {
  const double nan = std::nan("");
  for (const Numbers& values : {Numbers{nan, 1, 2}, Numbers{1, nan, 2}, Numbers{1, 2, nan}}) {
    const OpCase c = CaseOf("reduce_max", {{"axis", int64_t{1}}}, {{{B, Const(3)}, values}}, 1);
    EXPECT_TRUE(std::isnan(RunOne(c)[0]));
  }
}

TEST(MaximumAndMinimum, GradientGoesToTheFirstWhereBothAreEqual) {
  for (const char* op : {"maximum", "minimum"}) {
    const OpCase c = CaseOf(op, {}, {{{B}, {2, 1}}, {{B}, {2, 1}}}, 2);
    const std::vector<Numbers> grads = GradientOf(c, {{10, 20}}, DType::kF32);
    EXPECT_EQ(grads[0], Numbers({10, 20})) << op;
    EXPECT_EQ(grads[1], Numbers({0, 0})) << op;
  }
}

// Three samples: a list that is too long, an empty one, and one that is padded.
class Lists : public ::testing::Test {
 protected:
  static OpCase Case(std::string op, Attrs attrs, std::vector<CaseInput> inputs) {
    OpCase c = CaseOf(std::move(op), std::move(attrs), std::move(inputs), 3);
    c.sizes[kIdsSymbol] = 4;
    return c;
  }
  const CaseInput ends_{{B}, {3, 3, 4}, true, false};
  const CaseInput values_{{{kIdsSymbol, 1}, Const(1)}, {10, 11, 12, 13}};
  const Attrs two_{{"length", int64_t{2}}};
};

TEST_F(Lists, OfTooManyIdsKeepTheirLast) {
  EXPECT_EQ(RunOne(Case("ragged_to_padded", two_, {values_, ends_})),
            Numbers({11, 12, /**/ 0, 0, /**/ 13, 0}));
}

TEST_F(Lists, MaskSaysWhichPlacesAreFilled) {
  EXPECT_EQ(RunOne(Case("lengths_mask", two_, {ends_})), Numbers({1, 1, /**/ 0, 0, /**/ 1, 0}));
}

TEST_F(Lists, WhatWasCutGetsNoGradient) {
  const OpCase c = Case("ragged_to_padded", two_, {values_, ends_});
  EXPECT_EQ(GradientOf(c, {{1, 2, 3, 4, 5, 6}}, DType::kF32)[0], Numbers({0, 1, 2, 5}));
}

TEST_F(Lists, ComeBackAsTheyWere) {
  const Attrs four = {{"length", int64_t{4}}};
  const OpCase pad = Case("ragged_to_padded", four, {values_, ends_});
  const CaseInput padded{{B, Const(4), Const(1)}, RunOne(pad)};
  EXPECT_EQ(RunOne(Case("padded_to_ragged", {}, {padded, ends_, values_})), values_.values);
}

struct Refusal {
  OpCase c;
  std::string message;
};

std::string MessageFor(OpCase c) {
  for (CaseInput& input : c.inputs) input.values.clear();
  const Result<std::vector<Value>> inferred = InferCase(c);
  return inferred.ok() ? "accepted" : std::string(MessageOf(inferred.status()));
}

TEST(RaggedInfer, RefusesWithASentence) {
  const CaseInput x{{B, Const(4)}, {}}, fields{{B, Const(3), Const(4)}, {}}, two{{Const(2)}, {}};
  const CaseInput ends{{B}, {}, true}, values{{{kIdsSymbol, 1}, Const(4)}, {}};
  const Attrs length = {{"length", int64_t{3}}};
  const auto axis = [](int64_t n) { return Attrs{{"axis", n}}; };
  const auto indices = [](std::vector<int64_t> list) { return Attrs{{"indices", list}}; };
  const std::vector<Refusal> refusals = {
      {CaseOf("less", {}, {x, two}, 1), "less: shapes do not fit together: [B, 4] and [2]"},
      {CaseOf("div", {}, {x, {{B, Const(1), Const(4)}, {}}}, 1),
       "div: [B, 4] and [B, 1, 4] would give [B, B, 4], every sample with every other"},
      {CaseOf("where", {}, {x, two, x}, 1), "where: shapes do not fit together: [2] and [B, 4]"},
      {CaseOf("where", {}, {two, x, x}, 1), "where: shapes do not fit together: [2] and [B, 4]"},
      {CaseOf("where", {}, {ends, x, x}, 1),
       "where: input 1 (\"in0\") holds row positions, floats are needed"},
      {CaseOf("prelu", {}, {x, two}, 1),
       "prelu: alpha must have one value for each of the last dimension of [B, 4], or one, is [2]"},
      {CaseOf("dice", {}, {x, fields, two}, 1),
       "dice: the normalised input must be [B, 4], is [B, 3, 4]"},
      {CaseOf("reduce_max", axis(0), {x}, 1),
       "reduce_max: axis 0 of [B, 4] varies; samples are not mixed in a model"},
      {CaseOf("reduce_max", axis(2), {x}, 1),
       "reduce_max: axis 2 is outside the 2 dimensions of its input"},
      {CaseOf("gather", indices({4}), {x}, 1),
       "gather: index 4 is not within the 4 positions of the axis"},
      {CaseOf("gather", {}, {x}, 1), "gather: needs one index or more"},
      {CaseOf("gather", axis(0), {x}, 1),
       "gather: axis 0 of [B, 4] varies, only constant dimensions are gathered"},
      {CaseOf("lengths_mask", {}, {ends}, 1), "lengths_mask: length is 0, expected 1 or more"},
      {CaseOf("lengths_mask", length, {x}, 1),
       "lengths_mask: input 1 (\"in0\") holds floats, row positions are needed"},
      {CaseOf("ragged_to_padded", length, {fields, ends}, 1),
       "ragged_to_padded: input 1 (\"in0\") must be [ids, dim], is [B, 3, 4]"},
      {CaseOf("padded_to_ragged", {}, {x, ends, values}, 1),
       "padded_to_ragged: input 1 (\"in0\") must be [B, length, dim], is [B, 4]"},
  };
  for (const Refusal& refusal : refusals) EXPECT_EQ(MessageFor(refusal.c), refusal.message);
}

}  // namespace
}  // namespace dt::test
