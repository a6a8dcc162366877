// Goal: `cin` is equation 6 of Lian et al. (2018), with and without split halves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/plan/plan.h"
#include "test/unit/scheduler/composites/expanded_model.h"

namespace dt::test {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// Row h: Σ_ij W[i · rows of x + j][h] x0_i ∘ x_j.
Matrix LayerOf(const Matrix& x0, const Matrix& x, const Matrix& weight) {
  Matrix out(weight[0].size(), std::vector<double>(x0[0].size(), 0.0));
  for (size_t h = 0; h < out.size(); ++h) {
    for (size_t i = 0; i < x0.size(); ++i) {
      for (size_t j = 0; j < x.size(); ++j) {
        for (size_t d = 0; d < out[h].size(); ++d) {
          out[h][d] += weight[i * x.size() + j][h] * x0[i][d] * x[j][d];
        }
      }
    }
  }
  return out;
}

void AppendSums(const Matrix& rows, size_t first, std::vector<double>& sums) {
  for (size_t h = first; h < rows.size(); ++h) {
    double sum = 0;
    for (const double x : rows[h]) sum += x;
    sums.push_back(sum);
  }
}

std::vector<NodeConfig> NodesOfCin(Attrs cin) {
  return {TinyNode("e", "lookup", {"C*"}, {{"table", "emb"}}, 1),
          TinyNode("x", "cin", {"e"}, std::move(cin), 2),
          TinyNode("logit", "dense", {"x"}, {{"units", int64_t{1}}}, 3)};
}

TEST(CinTest, IsTheFormula) {
  for (const bool split : {true, false}) {
    const std::vector<int64_t> units = {5, 4, 3};
    const ExpandedModel model(NodesOfCin({{"units", units}, {"split_half", split}}));
    for (size_t b = 0; b < ExpandedModel::kSamples; ++b) {
      const Matrix x0 = model.Sample("e", b);
      Matrix x = x0;
      std::vector<double> want;
      for (size_t k = 0; k < units.size(); ++k) {
        x = LayerOf(x0, x, model.Parameter("x." + std::to_string(k) + ".weight"));
        const bool halved = split && k + 1 < units.size();
        AppendSums(x, halved ? x.size() / 2 : 0, want);
        if (halved) x.resize(x.size() / 2);
      }
      EXPECT_EQ(want.size(), split ? 3u + 2u + 3u : 12u);
      EXPECT_THAT(model.Sample("x", b)[0], Pointwise(DoubleNear(1e-9), want)) << "sample " << b;
    }
  }
}

TEST(CinTest, AUnitCannotBeHalved) {
  const JobConfig job = TinyJob(NodesOfCin({{"units", std::vector<int64_t>{1, 2}}}));
  const Status status = scheduler::MakePlan({job, TinyColumns(), 1}).status();
  EXPECT_THAT(ToText(status), HasSubstr("node \"x\": a layer of 1 unit cannot be split in halves"));
  EXPECT_THAT(ToText(status), HasSubstr("model.yaml:2"));
}

}  // namespace
}  // namespace dt::test
