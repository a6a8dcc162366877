// Prints GFLOP/s of the matrix products of a training step on one thread, alternately as the
// operators compute them (Gemm) and by one call of a oneDNN primitive for the whole product.
// Operands are not in the cache: four sets are used in turn. Usage: products [ROUNDS]
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "common/base/clock.h"
#include "common/base/philox.h"
#include "ops/gemm/compiled_product_cpu.h"
#include "ops/gemm/gemm_cpu.h"

namespace dt {
namespace {

constexpr size_t kSets = 4;

struct Operands {
  std::vector<float> a, b;
  std::vector<uint16_t> bf16_a, bf16_b;

  explicit Operands(const GemmShape& shape) : a(shape.m * shape.k), b(shape.k * shape.n) {
    FillNormal(1, 0, a);
    FillNormal(2, 0, b);
    bf16_a.resize(a.size());
    bf16_b.resize(b.size());
    StoreBf16(a, bf16_a.data());
    StoreBf16(b, bf16_b.data());
  }
};

// One shape in the four forms of a product.
class Product {
 public:
  explicit Product(const GemmShape& shape) : shape_(shape), c_(shape.m * shape.n) {
    for (size_t i = 0; i < kSets; ++i) sets_.emplace_back(shape);
  }

  void Ours(const Operands& in, bool bf16) {
    GemmTask<float> task{.shape = shape_, .a = in.a.data(), .b = in.b.data(), .c = c_.data()};
    Attrs attrs;
    if (bf16) {
      attrs["math"] = std::string("bf16");
      task.bf16_a = in.bf16_a.data();
      // Weights are floats, gradients of layers are stored in bf16.
      if (shape_.transpose_a) task.bf16_b = in.bf16_b.data();
    }
    UseMath(attrs, task, scratch_, 0);
    Gemm(pool_, task);
  }
  void Compiled(const Operands& in, bool bf16) {
    Multiply({.type = bf16 ? FactorType::kBf16 : FactorType::kFp32,
              .m = shape_.m,
              .n = shape_.n,
              .k = shape_.k,
              .transpose_a = shape_.transpose_a,
              .transpose_b = shape_.transpose_b},
             {bf16 ? static_cast<const void*>(in.bf16_a.data()) : in.a.data(),
              bf16 ? static_cast<const void*>(in.bf16_b.data()) : in.b.data(), c_.data()});
  }

  void Print(const char* what, int rounds) {
    const std::function<void(const Operands&)> ways[] = {
        [&](const Operands& in) { Ours(in, false); },
        [&](const Operands& in) { Compiled(in, false); },
        [&](const Operands& in) { Ours(in, true); },
        [&](const Operands& in) { Compiled(in, true); }};
    double seconds[4] = {};
    for (int round = -1; round < rounds; ++round) {
      for (size_t way = 0; way < (MultipliesBf16() ? 4 : 3); ++way) {
        const TimePoint begun = SystemClock().Now();
        for (const Operands& in : sets_) ways[way](in);
        if (round >= 0) seconds[way] += SecondsBetween(begun, SystemClock().Now());
      }
    }
    const double flops = 2.0 * static_cast<double>(shape_.m * shape_.n * shape_.k * kSets) * rounds;
    fmt::print("{:<20} {:>5} {:>5} {:>5} |", what, shape_.m, shape_.n, shape_.k);
    for (const double of : seconds) fmt::print(" {:>7.1f}", of > 0 ? flops / of / 1e9 : 0.0);
    fmt::print("\n");
  }

 private:
  const GemmShape shape_;
  std::vector<Operands> sets_;
  std::vector<float> c_;
  std::vector<std::byte> scratch_;
  TaskPool pool_{1};
};

void PrintAll(int rounds) {
  fmt::print("{:<20} {:>5} {:>5} {:>5} |    fp32  oneDNN    bf16  oneDNN\n", "GFLOP/s", "m", "n",
             "k");
  struct Layer {
    size_t in, out;
  };
  constexpr size_t kBatch = 2048;
  for (const auto [in, out] : {Layer{367, 512}, {512, 256}, {400, 400}}) {
    Product({.m = kBatch, .n = out, .k = in}).Print("forward", rounds);
    Product({.m = kBatch, .n = in, .k = out, .transpose_b = true})
        .Print("gradient of input", rounds);
    Product({.m = in, .n = out, .k = kBatch, .transpose_a = true})
        .Print("gradient of weight", rounds);
  }
}

}  // namespace
}  // namespace dt

int main(int argc, char** argv) {
  dt::PrintAll(argc > 1 ? std::max(1, std::atoi(argv[1])) : 20);
  return 0;
}
