// Goal: every operator computes its definition, its gradient is the derivative of what it computes,
// and neither depends on the number of threads. Method: one table of cases (cases.cc), definitions
// as plain loops in float64 (definitions.cc), central differences in float64, and equal bits with
// 1, 2 and 3 threads on batches that are divided into several pieces.
#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/ops/op_case.h"

namespace dt::test {
namespace {

// Bound for float32 sums, relative to the largest value of the definition.
constexpr double kFloatTolerance = 2e-5;

void ExpectNear(const std::vector<Numbers>& got, const std::vector<Numbers>& want,
                double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t o = 0; o < want.size(); ++o) {
    ASSERT_EQ(got[o].size(), want[o].size()) << "output " << o;
    double largest = 1;
    for (const double w : want[o]) largest = std::max(largest, std::fabs(w));
    for (size_t i = 0; i < want[o].size(); ++i) {
      ASSERT_NEAR(got[o][i], want[o][i], tolerance * largest) << "output " << o << " at " << i;
    }
  }
}

std::vector<Numbers> RandomGrads(const OpCase& c) {
  return RandomGrads(c, RunCase(c, DType::kF64));
}

double Dot(const std::vector<Numbers>& a, const std::vector<Numbers>& b) {
  double sum = 0;
  for (size_t o = 0; o < a.size(); ++o) {
    for (size_t i = 0; i < a[o].size(); ++i) sum += a[o][i] == 0 ? 0 : a[o][i] * b[o][i];
  }
  return sum;
}

// d (Σ outputs · grads) / d (one input element), by central difference.
double Difference(OpCase& c, size_t input, size_t at, const std::vector<Numbers>& grads) {
  constexpr double kStep = 1e-5;
  double& x = c.inputs[input].values[at];
  const double there = x;
  x = there + kStep;
  const double above = Dot(grads, RunCase(c, DType::kF64).outputs);
  x = there - kStep;
  const double below = Dot(grads, RunCase(c, DType::kF64).outputs);
  x = there;
  return (above - below) / (2 * kStep);
}

void ExpectGradientIsDifference(OpCase c) {
  const std::vector<Numbers> grads = RandomGrads(c);
  const std::vector<Numbers> got = GradientOf(c, grads, DType::kF64);
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (!c.inputs[i].smooth) continue;
    ASSERT_EQ(got[i].size(), c.inputs[i].values.size()) << "input " << i;
    const size_t stride = std::max<size_t>(1, got[i].size() / 40);
    for (size_t at = 0; at < got[i].size(); at += stride) {
      const double want = Difference(c, i, at, grads);
      ASSERT_NEAR(got[i][at], want, 1e-6 * (1 + std::fabs(want))) << "input " << i << " at " << at;
    }
  }
}

TEST(Operator, ComputesItsDefinition) {
  for (const int64_t batch : {0, 1, 5, 300}) {
    for (const OpCase& c : CasesFor(batch)) {
      SCOPED_TRACE(fmt::format("{}, batch {}", c.name, batch));
      const std::vector<Numbers> want = Definition(c);
      ASSERT_FALSE(want.empty()) << "no definition of " << c.op;
      ExpectNear(RunCase(c, DType::kF64).outputs, want, 1e-11);
      ExpectNear(RunCase(c, DType::kF32).outputs, want, kFloatTolerance);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Operator, GradientIsTheDerivative) {
  for (const int64_t batch : {0, 1, 4}) {
    for (const OpCase& c : CasesFor(batch)) {
      if (!HasGradient(c)) continue;
      SCOPED_TRACE(fmt::format("{}, batch {}", c.name, batch));
      ExpectGradientIsDifference(c);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Operator, FloatGradientIsTheFloat64One) {
  for (const OpCase& c : CasesFor(300)) {
    if (!HasGradient(c)) continue;
    SCOPED_TRACE(c.name);
    const std::vector<Numbers> grads = RandomGrads(c);
    ExpectNear(GradientOf(c, grads, DType::kF32), GradientOf(c, grads, DType::kF64),
               kFloatTolerance);
    if (HasFatalFailure()) return;
  }
}

TEST(Operator, BitsDoNotDependOnThreads) {
  for (const OpCase& c : CasesFor(3000)) {
    // This case is large; smaller cases of the same operator suffice.
    if (c.name == "matmul, wide") continue;
    SCOPED_TRACE(c.name);
    const std::vector<Numbers> one = RunCase(c, DType::kF32, 1).outputs;
    const std::vector<Numbers> grads = RandomGrads(c);
    const auto gradient = [&](uint32_t threads) {
      return HasGradient(c) ? GradientOf(c, grads, DType::kF32, threads) : std::vector<Numbers>();
    };
    const std::vector<Numbers> grad_one = gradient(1);
    for (const uint32_t threads : {2u, 3u}) {
      EXPECT_EQ(RunCase(c, DType::kF32, threads).outputs, one);
      EXPECT_EQ(gradient(threads), grad_one);
    }
  }
}

// With math in bf16, products round their operands and nothing else, and are divided as products in
// float.
TEST(Operator, MathOfAProductIsAnAttribute) {
  const auto is_product = [](const OpCase& c) {
    return c.op == "matmul" || c.op == "dense_layer" || c.op == "dense_layer_back";
  };
  size_t rounded_otherwise = 0;
  for (const int64_t batch : {0, 1, 70, 1100}) {
    for (OpCase c : CasesFor(batch)) {
      if (!is_product(c)) continue;
      SCOPED_TRACE(fmt::format("{}, batch {}", c.name, batch));
      OpCase rounded = c;
      for (size_t i = 0; i < 2; ++i) {
        for (double& x : rounded.inputs[i].values) x = RoundedToBf16(x);
      }
      const std::vector<Numbers> exact = RunCase(c, DType::kF32).outputs;
      c.attrs["math"] = std::string("tf32");
      EXPECT_EQ(RunCase(c, DType::kF32).outputs, exact);
      c.attrs["math"] = std::string("bf16");
      const std::vector<Numbers> got = RunCase(c, DType::kF32).outputs;
      ExpectNear(got, Definition(rounded), kFloatTolerance);
      for (const uint32_t threads : {2u, 3u}) {
        EXPECT_EQ(RunCase(c, DType::kF32, threads).outputs, got);
      }
      rounded_otherwise += got != exact ? 1 : 0;
    }
  }
  EXPECT_GT(rounded_otherwise, 20u);
}

// Joins several tensors into one, sample by sample.
Numbers Joined(const std::vector<Numbers>& parts, size_t samples) {
  Numbers all;
  for (size_t b = 0; b < samples; ++b) {
    for (const Numbers& part : parts) {
      const auto length = static_cast<std::ptrdiff_t>(part.size() / samples);
      const auto from = part.begin() + static_cast<std::ptrdiff_t>(b) * length;
      all.insert(all.end(), from, from + length);
    }
  }
  return all;
}

TEST(Dot, BitsAreThoseOfOneTensorOfOneSample) {
  constexpr int64_t kSamples = 90, kFields = 20;
  for (const int64_t dim : {int64_t{1}, int64_t{7}, int64_t{48}}) {
    SCOPED_TRACE(dim);
    OpCase parts = CaseOf("dot", {}, {}, kSamples);
    parts.inputs = {Floats(parts, {Batch(), Const(dim)}, 1),
                    Floats(parts, {Batch(), Const(kFields - 2), Const(dim)}, 2),
                    Floats(parts, {Batch(), Const(dim)}, 3)};
    const Numbers got = RunCase(parts, DType::kF32).outputs[0];
    const Numbers grads = Normals(got.size(), 4);
    const Numbers got_grads = Joined(GradientOf(parts, {grads}, DType::kF32), kSamples);

    Numbers all;
    for (const CaseInput& input : parts.inputs) all = Joined({all, input.values}, kSamples);
    Numbers want, want_grads;
    for (int64_t b = 0; b < kSamples; ++b) {
      const auto one_of = [&](const Numbers& of) {
        const auto length = std::ssize(of) / kSamples;
        return Numbers(of.begin() + b * length, of.begin() + (b + 1) * length);
      };
      const OpCase one =
          CaseOf("dot", {}, {{{Batch(), Const(kFields), Const(dim)}, one_of(all)}}, 1);
      std::ranges::copy(RunCase(one, DType::kF32).outputs[0], std::back_inserter(want));
      std::ranges::copy(GradientOf(one, {one_of(grads)}, DType::kF32)[0],
                        std::back_inserter(want_grads));
    }
    EXPECT_EQ(got, want);
    EXPECT_EQ(got_grads, want_grads);
  }
}

TEST(Operator, EachHasAKernelADefinitionAndAGradientCase) {
  std::set<std::string, std::less<>> defined, differentiated;
  for (const OpCase& c : CasesFor(4)) {
    defined.insert(c.op);
    if (HasGradient(c)) differentiated.insert(c.op);
  }
  for (const OpSpec* spec : AllOps()) {
    SCOPED_TRACE(spec->name);
    EXPECT_EQ(FindKernel(spec->name) != nullptr, spec->traits.has_kernel());
    EXPECT_NE(spec->infer, nullptr);
    EXPECT_TRUE(!spec->user_visible || defined.contains(spec->name));
    EXPECT_TRUE(spec->gradient == nullptr || differentiated.contains(spec->name));
  }
}

TEST(Operator, ListIsSortedAndFindsItsOwn) {
  EXPECT_TRUE(std::ranges::is_sorted(AllOps(), {}, [](const OpSpec* s) { return s->name; }));
  for (const OpSpec* spec : AllOps()) EXPECT_EQ(FindOp(spec->name), spec);
  EXPECT_EQ(FindOp("matmull"), nullptr);
  EXPECT_EQ(FindOp(""), nullptr);
  EXPECT_EQ(FindKernel("zzz"), nullptr);
}

TEST(Operator, ThoseThatChangeInputsAreUpdatesAndReplicaCopies) {
  for (const OpSpec* spec : AllOps()) {
    const bool updates = spec->traits.kind == OpKind::kUpdate;
    const bool writes = !spec->traits.writes.empty();
    const bool moves = spec->traits.kind == OpKind::kCopy || spec->name == "share_rows";
    EXPECT_TRUE(!writes || updates || moves) << spec->name;
    EXPECT_TRUE(!updates || writes) << spec->name;
    EXPECT_TRUE(!writes || spec->outputs == 0) << spec->name;
  }
}

TEST(Operator, RunningValuesAreChangedByTheOperatorThatIsNamed) {
  for (const OpSpec* spec : AllOps()) {
    const RunningValues& running = spec->running;
    if (running.op.empty()) continue;
    const OpTraits update = TraitsOf(running.op);
    EXPECT_EQ(update.kind, OpKind::kUpdate) << spec->name;
    for (size_t i = 0; i < running.values.size() + running.statistics.size(); ++i) {
      EXPECT_EQ(update.writes.Has(i), i < running.values.size()) << spec->name << ", " << i;
    }
  }
}

TEST(Operator, AnUnknownNameHasTheTraitsOfAPlainOperator) {
  EXPECT_EQ(TraitsOf("matmull").kind, OpKind::kCompute);
  EXPECT_TRUE(TraitsOf("matmull").writes.empty());
}

TEST(Operator, AttributesAreThoseOfItsList) {
  EXPECT_TRUE(FindOp("matmul")->TakesAttr("math"));
  EXPECT_FALSE(FindOp("matmul")->TakesAttr("slices"));
  EXPECT_FALSE(FindOp("relu")->TakesAttr("math"));
}

}  // namespace
}  // namespace dt::test
