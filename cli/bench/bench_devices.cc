// Measures what automatic placement needs to know of the CPU: dense arithmetic, memory, and the
// cost of a node in addition to its work.
#include "cli/bench/bench.h"
#include "common/base/clock.h"
#include "ops/kernel.h"

namespace dt::cli {
namespace {

constexpr int kRepeats = 5;

struct MatmulShape {
  int64_t m = 0, k = 0, n = 0;
  double flops() const { return 2.0 * static_cast<double>(m * k * n); }
};
// Shapes of layers in typical recommendation models.
constexpr MatmulShape kShapes[] = {{2048, 367, 512}, {2048, 512, 256}, {4096, 400, 400}};

std::string NameOf(const MatmulShape& shape, const std::string& math) {
  return fmt::format("matmul {}x{}x{}, {}", shape.m, shape.k, shape.n, math);
}

// A node outside any graph, with its own memory for every tensor.
class LoneNode {
 public:
  LoneNode(std::string op, const std::vector<Shape>& inputs, const Shape& output, Attrs attrs)
      : node_{.name = "bench", .op = std::move(op), .attrs = std::move(attrs)},
        kernel_(FindKernel(node_.op)) {
    for (const Shape& shape : inputs) inputs_.push_back(Tensor(shape));
    outputs_.push_back(Tensor(output));
  }

  void Run(TaskPool& pool) {
    KernelContext context{node_, inputs_, outputs_, run_, pool, scratch_};
    kernel_(context);
  }

 private:
  TensorView Tensor(const Shape& shape) {
    std::vector<float>& memory = memory_.emplace_back(ElementCount(shape), 0.5f);
    return {DType::kF32, shape, memory.data()};
  }

  const Node node_;
  const Kernel kernel_;
  const RunInfo run_;
  std::vector<std::vector<float>> memory_;
  std::vector<TensorView> inputs_, outputs_;
  std::vector<std::byte> scratch_;
};

BenchCase BenchMatmul(const MatmulShape& shape, const std::string& math, TaskPool& all,
                      TaskPool& one) {
  constexpr int kRuns = 10;
  LoneNode node("matmul", {{shape.m, shape.k}, {shape.k, shape.n}}, {shape.m, shape.n},
                {{"math", math}});
  const auto rate = [&](TaskPool& pool) {
    return MeasureRate(kRuns * shape.flops() / 1e9, kRepeats, [&] {
      for (int i = 0; i < kRuns; ++i) node.Run(pool);
    });
  };
  return {.name = NameOf(shape, math) + ", all threads",
          .unit = "GFLOP/s",
          .runs = rate(all),
          .reference = "one thread",
          .reference_runs = rate(one)};
}

// Operations per second over all shapes.
double MatmulRate(const std::string& math, TaskPool& all, TaskPool& one,
                  std::vector<BenchCase>& cases) {
  double flops = 0, seconds = 0;
  for (const MatmulShape& shape : kShapes) {
    cases.push_back(BenchMatmul(shape, math, all, one));
    flops += shape.flops();
    seconds += shape.flops() / (Median(cases.back().runs) * 1e9);
  }
  return flops / seconds;
}

// Reads two arrays and writes one, all larger than the caches.
BenchCase BenchMemory(TaskPool& pool) {
  constexpr int64_t kElements = 32 << 20;
  LoneNode node("add", {{kElements}, {kElements}}, {kElements}, {});
  constexpr double kBytes = 3.0 * kElements * sizeof(float);
  return {.name = "add of 128 MiB and 128 MiB, all threads",
          .unit = "GB/s",
          .runs = MeasureRate(kBytes / 1e9, kRepeats, [&] { node.Run(pool); })};
}

}  // namespace

Status BenchProcessor(std::vector<BenchCase>& cases, DeviceProfile& profile) {
  ComputeRates& rates = profile.cpu;
  TaskPool one(1), all;
  // CPUs have no kernels for tf32 and use those for fp32.
  const double fp32 = MatmulRate("fp32", all, one, cases);
  rates.flops = {fp32, fp32, MatmulRate("bf16", all, one, cases)};
  cases.push_back(BenchMemory(all));
  rates.memory_bytes = Median(cases.back().runs) * 1e9;
  DT_TRY(BenchCase launch, BenchLaunch(all, nullptr));
  rates.launch_seconds = 1e-3 / Median(launch.runs);
  cases.push_back(std::move(launch));
  rates.name = fmt::format("{} threads", all.threads());
  rates.source = "measured " + WallTimeText().substr(0, 10);
  return OkStatus();
}

}  // namespace dt::cli
