#include "common/layout/redistribute.h"

#include <numeric>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "test/support/cut_dims.h"
#include "test/support/held_tensor.h"

namespace dt::test {
namespace {

struct Side {
  Layout layout;
  Shape shape;
};

// Carries the redistribution out, and checks every value. Returns it as text, "AllGather 0; …".
std::string Steps(const Side& from, const Side& to, const RedistributionOptions& options = {}) {
  const Result<Redistribution> result =
      Redistribute({from.layout, from.shape}, {to.layout, to.shape}, options);
  if (!result.ok()) return std::string(MessageOf(result.status()));
  std::vector<double> whole(static_cast<size_t>(ElementCount(from.shape)));
  std::iota(whole.begin(), whole.end(), 0);
  HeldTensor held(from.layout, from.shape, whole);
  std::string text;
  for (const RedistributionStep& step : result->steps) {
    held.Apply(step);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", NameOf(step.kind));
    if (step.kind == RedistributionKind::kAllToAll) text += fmt::format(" {}", step.from_dim);
    if (step.kind != RedistributionKind::kAllReduce && step.kind != RedistributionKind::kReshape &&
        step.kind != RedistributionKind::kSendRecv) {
      text += fmt::format(" {}", step.dim);
    }
  }
  EXPECT_EQ(static_cast<int64_t>(held.received() * 4), result->bytes);
  if (to.layout.partial.empty()) {
    EXPECT_EQ(held.by_rank(), HeldTensor(to.layout, to.shape, whole).by_rank()) << text;
  }
  return text;
}

TEST(Redistribute, TheUsualChanges) {
  const Shape shape = {8, 12};
  const Layout rows{.matrix = {4}, .dims = {Over({0}), {}}};
  const Layout columns{.matrix = {4}, .dims = {{}, Over({0})}};
  const Layout whole{.matrix = {4}, .dims = {{}, {}}};
  Layout terms = whole;
  terms.partial = {0};
  EXPECT_EQ(Steps({rows, shape}, {rows, shape}), "");
  EXPECT_EQ(Steps({whole, shape}, {rows, shape}), "Split 0");
  EXPECT_EQ(Steps({rows, shape}, {whole, shape}), "AllGather 0");
  EXPECT_EQ(Steps({columns, shape}, {rows, shape}), "AllToAll 1 0");
  EXPECT_EQ(Steps({terms, shape}, {whole, shape}), "AllReduce");
  EXPECT_EQ(Steps({terms, shape}, {columns, shape}), "ReduceScatter 1");
  terms.join = Join::kMax;
  EXPECT_EQ(Steps({terms, shape}, {whole, shape}), "AllReduce");
  EXPECT_EQ(Steps({terms, shape}, {rows, shape}), "ReduceScatter 0");
}

TEST(Redistribute, CostsAreThoseOfTheFormulas) {
  const Shape shape = {8, 12};
  const Layout rows{.matrix = {4}, .dims = {Over({0}), {}}};
  const Layout columns{.matrix = {4}, .dims = {{}, Over({0})}};
  const Layout whole{.matrix = {4}, .dims = {{}, {}}};
  Layout terms = whole;
  terms.partial = {0};
  const auto bytes = [&](const Layout& from, const Layout& to) {
    return Redistribute({from, shape}, {to, shape}, {})->bytes;
  };
  EXPECT_EQ(bytes(whole, rows), 0);
  EXPECT_EQ(bytes(rows, whole), 4 * 24 * 3);
  EXPECT_EQ(bytes(columns, rows), 4 * 24 * 3 / 4);
  EXPECT_EQ(bytes(terms, whole), 4 * 2 * 96 * 3 / 4);
  EXPECT_EQ(bytes(terms, rows), 4 * 96 * 3 / 4);
}

TEST(Redistribute, AxesOfOneDeviceMeanNothing) {
  const Shape shape = {8};
  const Layout a{.matrix = {1, 4}, .dims = {Over({0, 1})}};
  const Layout b{.matrix = {4}, .dims = {Over({0})}};
  EXPECT_EQ(Steps({a, shape}, {b, shape}), "");
}

TEST(Redistribute, MatricesAreRefined) {
  const Shape shape = {24, 24};
  const Layout a{.matrix = {2, 6}, .dims = {Over({0}), Over({1})}};
  const Layout b{.matrix = {4, 3}, .dims = {Over({0}), Over({1})}};
  EXPECT_EQ(Steps({a, shape}, {b, shape}), "SendRecv");
  EXPECT_EQ(Steps({a, shape}, {b, shape}, {.all_to_all = false}), "AllGather 1, Split 0, Split 1");
  const Layout rows{.matrix = {2, 6}, .dims = {Over({0, 1}), {}}};
  const Layout pairs{.matrix = {4, 3}, .dims = {Over({0}), {}}};
  EXPECT_EQ(Steps({rows, shape}, {pairs, shape}), "AllGather 0");
}

TEST(Redistribute, BoxesWhereNoMatrixIsCommon) {
  const Shape shape = {7, 12};
  const Layout a{.matrix = {3, 4}, .dims = {Over({0}), Over({1})}};
  const Layout b{.matrix = {4, 3}, .dims = {Over({0}), Over({1})}};
  EXPECT_EQ(Steps({a, shape}, {b, shape}), "SendRecv");
  EXPECT_EQ(Steps({a, shape}, {b, shape}, {.all_to_all = false}),
            "AllGather 0, AllGather 1, Split 0, Split 1");
}

TEST(Redistribute, AxesThatChangePlaces) {
  const Shape shape = {8, 8};
  const Layout a{.matrix = {2, 4}, .dims = {Over({0}), Over({1})}};
  const Layout b{.matrix = {2, 4}, .dims = {Over({1}), Over({0})}};
  EXPECT_EQ(Steps({a, shape}, {b, shape}), "SendRecv");
  EXPECT_EQ(Steps({a, shape}, {b, shape}, {.all_to_all = false}),
            "AllGather 0, AllGather 1, Split 0, Split 1");
}

TEST(Redistribute, AxesReducedTogetherCostLess) {
  const Shape shape = {8, 8};
  const Layout a{.matrix = {2, 4}, .dims = {{}, {}}, .partial = {0, 1}};
  const Layout whole{.matrix = {2, 4}, .dims = {{}, {}}};
  const Layout rows{.matrix = {2, 4}, .dims = {Over({1}), {}}};
  EXPECT_EQ(Steps({a, shape}, {whole, shape}), "AllReduce");
  EXPECT_EQ(Steps({a, shape}, {rows, shape}), "ReduceScatter 0, AllReduce");
}

TEST(Redistribute, WhatStaysPartialIsLeft) {
  const Shape shape = {8};
  const Layout a{.matrix = {2, 4}, .dims = {{}}, .partial = {0, 1}};
  const Layout b{.matrix = {2, 4}, .dims = {{}}, .partial = {0}};
  EXPECT_EQ(Steps({a, shape}, {b, shape}), "AllReduce");
  EXPECT_EQ(Steps({b, shape}, {a, shape}), "the new layout is partial where the old one is not");
}

TEST(Redistribute, Reshapes) {
  const Layout heads{.matrix = {2, 3}, .dims = {Over({0}), Over({1}), {}}};
  const Layout merged{.matrix = {2, 3}, .dims = {Over({0}), Over({1})}};
  EXPECT_EQ(Steps({heads, {4, 6, 5}}, {merged, {4, 30}}), "Reshape");
  EXPECT_EQ(Steps({merged, {4, 30}}, {heads, {4, 6, 5}}), "Reshape");
  const Layout whole{.matrix = {6}, .dims = {{}, {}}};
  EXPECT_EQ(Steps({heads, {4, 6, 5}}, {whole, {24, 5}}), "AllGather 0, AllGather 1, Reshape");
  const Layout rows{.matrix = {6}, .dims = {Over({0}), {}}};
  EXPECT_EQ(Steps({rows, {12, 5}}, {rows, {6, 10}}), "Reshape");
  EXPECT_EQ(Steps({rows, {12, 5}}, {rows, {4, 15}}), "AllGather 0, Reshape, Split 0");
  const Layout inner{.matrix = {2}, .dims = {{{.size = 3}, {.size = 4, .axes = {0}}}}};
  const Layout plain{.matrix = {2}, .dims = {Over({0})}};
  EXPECT_EQ(Steps({inner, {12}}, {plain, {12}}), "SendRecv");
  EXPECT_EQ(Steps({inner, {12}}, {plain, {12}}, {.all_to_all = false}),
            "Reshape, AllGather 1, Reshape, Split 0");
}

TEST(Redistribute, GivenLengthsOfParts) {
  Layout fields{.matrix = {3}, .dims = {Over({0})}};
  const Layout even = fields;
  fields.dims[0][0].parts = {6, 0, 1};
  EXPECT_EQ(Steps({fields, {7}}, {even, {7}}), "SendRecv");
  EXPECT_EQ(Steps({even, {7}}, {fields, {7}}, {.all_to_all = false}), "AllGather 0, Split 0");
}

TEST(Redistribute, BetweenRanks) {
  const Shape shape = {12, 6};
  const Layout rows{.matrix = {4}, .dims = {Over({0}), {}}};
  const Layout columns{.matrix = {3}, .dims = {{}, Over({0})}, .ranks = {3, 4, 5}};
  EXPECT_EQ(Steps({rows, shape}, {columns, shape}), "SendRecv");
  const Layout copies{.matrix = {4}, .dims = {{}, {}}, .ranks = {4, 5, 6, 7}};
  EXPECT_EQ(Steps({rows, shape}, {copies, shape}), "SendRecv");
  const Layout one{.matrix = {}, .dims = {{}, {}}};
  EXPECT_EQ(Steps({one, shape}, {copies, shape}), "SendRecv, AllGather 0");
  Layout terms{.matrix = {4}, .dims = {{}, {}}, .partial = {0}};
  EXPECT_EQ(Steps({terms, shape}, {columns, shape}), "ReduceScatter 0, SendRecv");
}

}  // namespace
}  // namespace dt::test
