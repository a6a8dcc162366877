// Goal: on every back end, every operator gives the results of the CPU, forward and backward, in
// each type that the back end supports. Method: the table of cases, and the cases of step
// operators, run on the emulated accelerator (equal bits), with the CUDA kernels compiled for the
// host, and on a CUDA device if there is one (equal within bounds). Memory after the end of a
// tensor is NaN, so that reading it is noticed.
#include "test/ops/backends.h"

#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "common/device/cuda_library.h"
#include "ops/norm/dropout_stream.h"
#include "test/support/cuda_on_host/cuda_on_host.h"

namespace dt::test {
namespace {

// Bounds relative to the largest value of an output. They allow for sums of a few hundred terms in
// another order, and in bf16 for a few roundings of 2^-9 in each gradient.
constexpr double kFloatBound = 5e-5, kBf16Bound = 0.03;

std::vector<Numbers> GradsFor(const OpCase& c) {
  std::vector<Numbers> grads = RandomGrads(c, RunCase(c, DType::kF32));
  for (Numbers& of : grads) {
    for (double& g : of) g = RoundedToBf16(g);
  }
  return grads;
}

void ExpectNear(const std::vector<Numbers>& got, const std::vector<Numbers>& want, double bound) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t o = 0; o < want.size(); ++o) {
    ASSERT_EQ(got[o].size(), want[o].size()) << "number " << o;
    double largest = 1;
    for (const double w : want[o]) largest = std::max(largest, std::fabs(w));
    for (size_t i = 0; i < want[o].size(); ++i) {
      ASSERT_NEAR(got[o][i], want[o][i], bound * largest) << "number " << o << " at " << i;
    }
  }
}

// The case with values that bf16 represents exactly.
OpCase Rounded(OpCase c) {
  for (CaseInput& input : c.inputs) {
    if (input.index) continue;
    for (double& x : input.values) x = RoundedToBf16(x);
  }
  return c;
}

// Compares with the CPU's results in f32.
void ExpectSame(const OpCase& c, DType dtype, Backend& backend) {
  const double bound = dtype == DType::kBf16 ? kBf16Bound : kFloatBound;
  const RunResult got = RunCase(c, dtype, backend), want = RunCase(c, DType::kF32);
  ExpectNear(got.outputs, want.outputs, bound);
  ExpectNear(got.inputs, want.inputs, bound);
  if (testing::Test::HasFatalFailure() || !HasGradient(c)) return;
  SCOPED_TRACE("gradient");
  const std::vector<Numbers> grads = GradsFor(c);
  ExpectNear(GradientOf(c, grads, dtype, backend), GradientOf(c, grads, DType::kF32), bound);
}

void ExpectAllSame(Backend& backend) {
  for (const int64_t batch : {0, 1, 5, 70, 300}) {
    for (const OpCase& given : AllCases(batch)) {
      if (batch == 300 && given.name == "matmul, wide") continue;  // This case is slow on the host.
      const OpCase c = Rounded(given);
      SCOPED_TRACE(fmt::format("{}, batch {}", c.name, batch));
      for (const DType dtype : {DType::kF32, DType::kBf16}) {
        // Master weights and optimizer states are f32, and so is everything without a float input.
        if (dtype == DType::kBf16 && c.op.starts_with("update")) continue;
        SCOPED_TRACE(NameOf(dtype));
        ExpectSame(c, dtype, backend);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Backends, EmulatedAcceleratorGivesTheBitsOfTheCpu) {
  const std::unique_ptr<Backend> backend = MakeEmulatedBackend();
  for (const int64_t batch : {0, 1, 5, 70}) {
    for (const OpCase& c : AllCases(batch)) {
      SCOPED_TRACE(fmt::format("{}, batch {}", c.name, batch));
      for (const DType dtype : {DType::kF32, DType::kF64}) {
        if (dtype == DType::kF64 && c.op.starts_with("update")) continue;
        const RunResult want = RunCase(c, dtype), got = RunCase(c, dtype, *backend);
        ASSERT_EQ(got.outputs, want.outputs);
        ASSERT_EQ(got.inputs, want.inputs);
        if (!HasGradient(c)) continue;
        const std::vector<Numbers> grads = GradsFor(c);
        ASSERT_EQ(GradientOf(c, grads, dtype, *backend), GradientOf(c, grads, dtype));
      }
    }
  }
}

TEST(Backends, CudaKernelsOnTheHostGiveTheNumbersOfTheCpu) {
  const CudaTable table = TableOnHost();
  ExpectAllSame(*MakeCudaBackend(table, 0));
}

TEST(Backends, CardGivesTheNumbersOfTheCpu) {
  // The library is in the program's folder.
  const char* const program = std::getenv("DT_PROGRAM");
  const std::string beside = program == nullptr ? "." : program;
  const Result<CudaLibrary> library =
      CudaLibrary::Open(beside.substr(0, beside.rfind('/')) + "/libdovetail_cuda.so");
  if (!library.ok()) GTEST_SKIP() << "no CUDA here: " << library.status();
  if (const Result<int> cards = library->CountDevices(); !cards.ok()) {
    GTEST_SKIP() << "no CUDA card here: " << cards.status();
  }
  ExpectAllSame(*MakeCudaBackend(library->table(), 0));
}

TEST(Backends, EveryOperatorHasACudaKernel) {
  const CudaTable table = TableOnHost();
  for (const OpSpec* spec : AllOps()) {
    if (FindKernel(spec->name) == nullptr) continue;  // Operators of the engine have no kernel.
    EXPECT_NE(table.find_kernel(std::string(spec->name).c_str()), nullptr) << spec->name;
  }
  EXPECT_EQ(table.find_kernel("matmull"), nullptr);
  EXPECT_EQ(table.find_kernel(""), nullptr);
}

// With math in bf16, products round their operands and nothing else.
TEST(Backends, MathOfAProductIsAnAttribute) {
  const CudaTable table = TableOnHost();
  const std::unique_ptr<Backend> backend = MakeCudaBackend(table, 0);
  OpCase c =
      StepCase("matmul", {{"transpose_b", true}}, {{Const(9), Const(33)}, {Const(7), Const(33)}});
  const std::vector<Numbers> exact = RunCase(c, DType::kF32).outputs;
  const std::vector<Numbers> rounded = RunCase(Rounded(c), DType::kF32).outputs;
  c.attrs["math"] = std::string("tf32");
  ExpectNear(RunCase(c, DType::kF32, *backend).outputs, exact, 2e-3);
  c.attrs["math"] = std::string("bf16");
  ExpectNear(RunCase(c, DType::kF32, *backend).outputs, rounded, kFloatBound);
}

TEST(Backends, DropoutDrawsFromTheStreamOfItsName) {
  EXPECT_EQ(kDropoutPurpose, HashString("dropout"));
}

}  // namespace
}  // namespace dt::test
