// Goal: `attention`, `transformer` and `layer_norm` compute the formulas of their papers (plain
// loops over small matrices), all of their parameters are trained, and mistakes are answered with a
// sentence.
#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/plan/plan.h"
#include "test/unit/scheduler/composites/expanded_model.h"

namespace dt::test {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr double kTolerance = 1e-9;

// Columns [begin, end).
Matrix Columns(const Matrix& x, size_t begin, size_t end) {
  Matrix cut;
  for (const auto& row : x) {
    cut.emplace_back(row.begin() + static_cast<ptrdiff_t>(begin),
                     row.begin() + static_cast<ptrdiff_t>(end));
  }
  return cut;
}

// softmax over each row of `scores` where the mask is not 0; zeros if the whole mask is 0.
Matrix Weights(Matrix scores, const std::vector<double>& mask) {
  for (auto& row : scores) {
    double sum = 0;
    for (size_t j = 0; j < row.size(); ++j) {
      row[j] = mask.empty() || mask[j] != 0 ? std::exp(row[j]) : 0;
      sum += row[j];
    }
    for (double& w : row) w = sum == 0 ? 0 : w / sum;
  }
  return scores;
}

struct Heads {
  size_t heads = 1;
  double scale = 1;
};

// The output of the heads of layer `prefix`, before the operators that follow them.
Matrix Attended(const ExpandedModel& model, const Matrix& x, const std::string& prefix,
                const Heads& heads, const std::vector<double>& mask) {
  const Matrix q = Times(x, model.Parameter(prefix + "query.weight"));
  const Matrix k = Times(x, model.Parameter(prefix + "key.weight"));
  const Matrix v = Times(x, model.Parameter(prefix + "value.weight"));
  const size_t width = q[0].size() / heads.heads;
  Matrix out(x.size());
  for (size_t h = 0; h < heads.heads; ++h) {
    const auto head = [&](const Matrix& m) { return Columns(m, h * width, (h + 1) * width); };
    Matrix scores = Times(head(q), Turned(head(k)));
    for (auto& row : scores) {
      for (double& s : row) s *= heads.scale;
    }
    const Matrix mixed = Times(Weights(std::move(scores), mask), head(v));
    for (size_t i = 0; i < out.size(); ++i) {
      out[i].insert(out[i].end(), mixed[i].begin(), mixed[i].end());
    }
  }
  return out;
}

Matrix Normed(Matrix x, const Matrix& gamma, const Matrix& beta) {
  for (auto& row : x) {
    const auto n = static_cast<double>(row.size());
    double mean = 0, variance = 0;
    for (const double v : row) mean += v / n;
    for (const double v : row) variance += (v - mean) * (v - mean) / n;
    for (size_t j = 0; j < row.size(); ++j) {
      row[j] = (row[j] - mean) / std::sqrt(variance + 1e-5) * gamma[0][j] + beta[0][j];
    }
  }
  return x;
}

void ExpectEqual(const Matrix& got, const Matrix& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_THAT(got[i], Pointwise(DoubleNear(kTolerance), want[i])) << "row " << i;
  }
}

// `op` over three embeddings of size 4, with a mask that contains zeros.
std::vector<NodeConfig> Nodes(const std::string& op, Attrs attrs) {
  std::vector<std::string> inputs = {"e"};
  if (attrs.contains("masked")) inputs.push_back("mask");
  return {TinyNode("e", "lookup", {"C*"}, {{"table", "emb"}}, 1),
          TinyNode("numbers", "concat", {"I1", "I2", "I1"}, {}, 2),
          TinyNode("mask", "relu", {"numbers"}, {}, 3),
          TinyNode("x", op, inputs, std::move(attrs), 4),
          TinyNode("logit", "dense", {"x"}, {{"units", int64_t{1}}}, 5)};
}

TEST(AttentionTest, HeadsUnderAMask) {
  const ExpandedModel model(
      Nodes("attention", {{"heads", int64_t{2}}, {"units", int64_t{6}}, {"masked", true}}));
  for (size_t b = 0; b < ExpandedModel::kSamples; ++b) {
    const Matrix want = Attended(model, model.Sample("e", b), "x.0.", {2, 1 / std::sqrt(3.0)},
                                 model.Sample("mask", b)[0]);
    ExpectEqual(model.Sample("x.0.merged", b), want);
  }
}

TEST(AttentionTest, LayersWithAResidualAreAutoInt) {
  const ExpandedModel model(Nodes("attention", {{"layers", int64_t{2}},
                                                {"units", int64_t{5}},
                                                {"residual", true},
                                                {"scale", false},
                                                {"activation", "relu"}}));
  for (size_t b = 0; b < ExpandedModel::kSamples; ++b) {
    Matrix x = model.Sample("e", b);
    for (const std::string prefix : {"x.0.", "x.1."}) {
      const Matrix past = Times(x, model.Parameter(prefix + "residual.weight"));
      x = Plus(Attended(model, x, prefix, {}, {}), past);
      for (auto& row : x) {
        for (double& v : row) v = std::max(v, 0.0);
      }
    }
    ExpectEqual(model.Sample("x.1.relu", b), x);
  }
}

// One block of the transformer over x.
Matrix BlockOf(const ExpandedModel& model, Matrix x, const std::string& prefix, bool pre) {
  const auto norm = [&](const Matrix& from, const std::string& branch) {
    return Normed(from, model.Parameter(prefix + branch + ".gamma"),
                  model.Parameter(prefix + branch + ".beta"));
  };
  const auto dense = [&](const Matrix& from, const std::string& part) {
    return Plus(Times(from, model.Parameter(prefix + part + ".weight")),
                model.Parameter(prefix + part + ".bias"));
  };
  const Heads heads = {2, 1 / std::sqrt(2.0)};
  const Matrix mixed = Attended(model, pre ? norm(x, "attention") : x, prefix, heads, {});
  x = Plus(x, dense(mixed, "output"));
  if (!pre) x = norm(x, "attention");
  Matrix hidden = dense(pre ? norm(x, "feed") : x, "feed.in");
  for (auto& row : hidden) {
    for (double& v : row) v *= 0.5 * std::erfc(-v / std::sqrt(2.0));
  }
  x = Plus(x, dense(hidden, "feed.out"));
  return pre ? x : norm(x, "feed");
}

TEST(TransformerTest, BlocksWithNormBeforeAndAfter) {
  for (const bool pre : {true, false}) {
    const ExpandedModel model(Nodes("transformer", {{"layers", int64_t{2}},
                                                    {"heads", int64_t{2}},
                                                    {"hidden", int64_t{7}},
                                                    {"norm", pre ? "pre" : "post"}}));
    for (size_t b = 0; b < ExpandedModel::kSamples; ++b) {
      Matrix x = model.Sample("e", b);
      for (const std::string prefix : {"x.0.", "x.1."}) x = BlockOf(model, x, prefix, pre);
      if (pre) x = Normed(x, model.Parameter("x.gamma"), model.Parameter("x.beta"));
      ExpectEqual(model.Sample(pre ? "x.layer_norm" : "x.1.feed.layer_norm", b), x);
    }
  }
}

TEST(LayerNormTest, TakesFieldsAndColumns) {
  const ExpandedModel model({TinyNode("e", "lookup", {"C*"}, {{"table", "emb"}}, 1),
                             TinyNode("f", "layer_norm", {"e"}, {}, 2),
                             TinyNode("n", "layer_norm", {"f", "I*"}, {}, 3),
                             TinyNode("logit", "dense", {"n"}, {{"units", int64_t{1}}}, 4)});
  for (size_t b = 0; b < ExpandedModel::kSamples; ++b) {
    const Matrix want =
        Normed(model.Sample("e", b), model.Parameter("f.gamma"), model.Parameter("f.beta"));
    ExpectEqual(model.Sample("f.layer_norm", b), want);
    EXPECT_EQ(model.Sample("n.layer_norm", b)[0].size(), 14u);
  }
}

TEST(AttentionTest, EveryParameterIsTrainedAndDropoutPlans) {
  const Attrs block = {{"layers", int64_t{2}}, {"heads", int64_t{2}}, {"dropout", 0.1}};
  const JobConfig job =
      TinyJob({TinyNode("e", "lookup", {"C*"}, {{"table", "emb"}}, 1),
               TinyNode("a", "transformer", {"e"}, block, 2),
               TinyNode("b", "attention", {"a"}, {{"residual", true}, {"dropout", 0.2}}, 3),
               TinyNode("c", "cin", {"b"}, {{"units", std::vector<int64_t>{4, 3}}}, 4),
               TinyNode("d", "layer_norm", {"b"}, {}, 5),
               TinyNode("logit", "dense", {"c", "d"}, {{"units", int64_t{1}}}, 6)});
  const Result<Plan> plan = scheduler::MakePlan({job, TinyColumns(), 2});
  ASSERT_TRUE(plan.ok()) << ToText(plan.status());
  EXPECT_GT(plan->graph.parameters.size(), 40u);
  for (const ParameterSpec& p : plan->graph.parameters) {
    EXPECT_EQ(p.trained, p.grad != kNone) << plan->graph.value(p.value).name;
  }
}

TEST(AttentionTest, MistakesAreNamed) {
  const struct {
    std::vector<NodeConfig> nodes;
    const char* says;
  } mistakes[] = {
      {Nodes("attention", {{"heads", int64_t{3}}}),
       "node \"x\": its 4 units cannot be divided among 3 heads"},
      {Nodes("transformer", {{"heads", int64_t{3}}}),
       "node \"x\": its 4 units cannot be divided among 3 heads"},
      {{TinyNode("x", "attention", {"I1"}, {{"masked", true}}, 4)},
       "with masked, its last input is the mask; I1 is the only one"},
      {{TinyNode("e", "lookup", {"C*"}, {{"table", "emb"}}, 1),
        TinyNode("x", "attention", {"e", "I1"}, {{"masked", true}}, 4)},
       "its mask has shape [B, 1], the fields are [B, 3, 4]: it needs one number for each field"},
      {Nodes("transformer", {{"norm", "before"}}),
       "model.graph.x.norm: found \"before\", expected one of pre, post"},
  };
  for (const auto& mistake : mistakes) {
    const JobConfig job = TinyJob(mistake.nodes);
    const std::string text = ToText(scheduler::MakePlan({job, TinyColumns(), 1}).status());
    EXPECT_THAT(text, HasSubstr(mistake.says));
    EXPECT_THAT(text, HasSubstr("model.yaml:4"));
  }
}

}  // namespace
}  // namespace dt::test
