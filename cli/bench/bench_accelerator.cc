// Measures what automatic placement needs to know of the accelerator: copies over its link and
// inside it, and, for a card, dense arithmetic. The emulated accelerator computes with the CPU's
// kernels.
#include <algorithm>
#include <cstring>

#include "cli/bench/bench.h"
#include "common/device/accelerator_cuda.h"
#include "common/device/emulated_accelerator.h"
#include "common/device/tensor.h"

namespace dt::cli {
namespace {

constexpr int kRepeats = 5;
constexpr Duration kTimeout = std::chrono::seconds(60);

// A queue with a method that waits for its work; keeps the first error.
class TimedQueue {
 public:
  static Result<TimedQueue> Make(Accelerator& on) {
    TimedQueue made;
    DT_TRY(made.queue_, on.NewQueue());
    DT_TRY(made.event_, on.NewEvent());
    return made;
  }

  DeviceQueue& queue() { return *queue_; }
  const Status& status() const { return status_; }

  // Units per second, where `body` gives the queue `work` units.
  std::vector<double> Rate(double work, const std::function<Status()>& body) {
    return MeasureRate(work, kRepeats, [&] {
      if (status_.ok()) status_ = body();
      if (status_.ok()) status_ = Finish();
    });
  }
  Status Finish() {
    DT_TRY_STATUS(queue_->Record(*event_));
    return event_->Wait(kTimeout);
  }

 private:
  std::unique_ptr<DeviceQueue> queue_;
  std::unique_ptr<DeviceEvent> event_;
  Status status_;
};

Status MeasureCopies(Accelerator& device, std::vector<BenchCase>& cases, DeviceProfile& profile) {
  constexpr size_t kBytes = 64 << 20, kSmall = 256;
  constexpr int kCopies = 500;
  DT_TRY(const DeviceMemory memory, DeviceMemory::Make(device, 2 * kBytes));
  DT_TRY(const PinnedMemory host, PinnedMemory::Make(device, kBytes));
  DT_TRY(TimedQueue timed, TimedQueue::Make(device));
  std::memset(host.data(), 1, kBytes);
  DeviceQueue& queue = timed.queue();
  std::byte *const there = memory.data(), *const here = host.data();
  const auto add = [&](std::string name, std::string unit, std::vector<double> runs) {
    cases.push_back({.name = std::move(name), .unit = std::move(unit), .runs = std::move(runs)});
    return Median(cases.back().runs);
  };
  profile.to_accelerator.bytes =
      1e9 * add("copy of 64 MiB to the accelerator", "GB/s",
                timed.Rate(kBytes / 1e9, [&] { return queue.CopyToDevice(there, here, kBytes); }));
  profile.from_accelerator.bytes =
      1e9 * add("copy of 64 MiB from the accelerator", "GB/s",
                timed.Rate(kBytes / 1e9, [&] { return queue.CopyToHost(here, there, kBytes); }));
  profile.accelerator.memory_bytes =
      1e9 * add("copy of 64 MiB on the accelerator, read and written", "GB/s",
                timed.Rate(2 * kBytes / 1e9,
                           [&] { return queue.CopyOnDevice(there + kBytes, there, kBytes); }));
  const double waits =
      add("copy of 256 B to the accelerator, awaited", "k copies/s", timed.Rate(kCopies / 1e3, [&] {
        for (int i = 0; i < kCopies; ++i) {
          DT_TRY_STATUS(queue.CopyToDevice(there, here, kSmall));
          DT_TRY_STATUS(timed.Finish());
        }
        return OkStatus();
      }));
  profile.to_accelerator.latency_seconds = profile.from_accelerator.latency_seconds = 1e-3 / waits;
  return timed.status();
}

CudaTensor CardTensor(int64_t rows, int64_t columns, void* data) {
  CudaTensor tensor;
  tensor.data = data;
  tensor.dtype = static_cast<uint8_t>(DType::kF32);
  tensor.rank = 2;
  tensor.times[0] = tensor.extent[0] = rows;
  tensor.times[1] = tensor.extent[1] = columns;
  return tensor;
}

// Measures fp32 arithmetic, at a size that fills a card. The card's other rates keep their shipped
// defaults.
Status MeasureCardMatmul(CudaAccelerator& card, std::vector<BenchCase>& cases,
                         ComputeRates& rates) {
  constexpr int64_t kSide = 4096;
  constexpr int kRuns = 10;
  const CudaKernel* const kernel = card.table().find_kernel("matmul");
  if (kernel == nullptr) return Unavailable("the CUDA library has no kernel for matmul");
  constexpr size_t kBytes = kSide * kSide * sizeof(float);
  DT_TRY(const DeviceMemory memory, DeviceMemory::Make(card, 3 * kBytes));
  DT_TRY(const DeviceMemory run, DeviceMemory::Make(card, sizeof(CudaRun)));
  DT_TRY(const PinnedMemory host, PinnedMemory::Make(card, kBytes));
  DT_TRY(TimedQueue timed, TimedQueue::Make(card));
  auto& queue = static_cast<CudaQueue&>(timed.queue());
  std::memset(host.data(), 0, kBytes);
  for (size_t i = 0; i < 3; ++i) {
    DT_TRY_STATUS(queue.CopyToDevice(memory.data() + i * kBytes, host.data(), kBytes));
  }
  DT_TRY_STATUS(timed.Finish());
  CudaRun sizes;
  sizes.sizes[0] = sizes.sizes[1] = 1;
  std::memcpy(host.data(), &sizes, sizeof(sizes));
  DT_TRY_STATUS(queue.CopyToDevice(run.data(), host.data(), sizeof(sizes)));
  const CudaTensor inputs[] = {CardTensor(kSide, kSide, memory.data()),
                               CardTensor(kSide, kSide, memory.data() + kBytes)};
  const CudaTensor output = CardTensor(kSide, kSide, memory.data() + 2 * kBytes);
  CudaCall call;
  call.inputs = inputs;
  call.input_count = 2;
  call.outputs = &output;
  call.output_count = 1;
  call.run = reinterpret_cast<const CudaRun*>(run.data());
  call.stream = queue.stream();
  const size_t scratch_bytes = kernel->scratch_bytes == nullptr ? 0 : kernel->scratch_bytes(call);
  DT_TRY(const DeviceMemory scratch, DeviceMemory::Make(card, std::max<size_t>(scratch_bytes, 1)));
  call.scratch = scratch.data();
  constexpr double kFlops = 2.0 * kSide * kSide * kSide;
  cases.push_back({.name = "matmul 4096x4096x4096 on the card, fp32",
                   .unit = "TFLOP/s",
                   .runs = timed.Rate(kRuns * kFlops / 1e12, [&] {
                     for (int i = 0; i < kRuns; ++i) {
                       DT_TRY_STATUS(queue.Checked(kernel->launch(call), "matmul"));
                     }
                     return OkStatus();
                   })});
  DT_TRY_STATUS(timed.status());
  rates.flops[static_cast<size_t>(Arithmetic::kFp32)] = Median(cases.back().runs) * 1e12;
  return OkStatus();
}

Result<double> MeasureLaunch(Accelerator& device, std::vector<BenchCase>& cases) {
  TaskPool pool;
  DT_TRY(BenchCase launch, BenchLaunch(pool, &device));
  cases.push_back(std::move(launch));
  return 1e-3 / Median(cases.back().runs);
}

}  // namespace

Status BenchAccelerator(std::vector<BenchCase>& cases, DeviceProfile& profile) {
  const std::string source = profile.cpu.source;
  DeviceProfile measured = profile;
  std::unique_ptr<CudaAccelerator> card;
  if (const Result<CudaLibrary> library = CudaLibrary::OpenForCards(); library.ok()) {
    DT_TRY(card, CudaAccelerator::Open(*library, 0));
    measured = DefaultCardProfile(1);
    measured.cpu = profile.cpu;
    DT_TRY_STATUS(MeasureCopies(*card, cases, measured));
    DT_TRY_STATUS(MeasureCardMatmul(*card, cases, measured.accelerator));
    DT_TRY(measured.accelerator.launch_seconds, MeasureLaunch(*card, cases));
    measured.accelerator.name = card->info().name;
  } else {
    DT_TRY(const std::unique_ptr<EmulatedAccelerator> emulated, EmulatedAccelerator::Create({}));
    DT_TRY_STATUS(MeasureCopies(*emulated, cases, measured));
    measured.accelerator = measured.cpu;
    measured.accelerator.name = kEmulatedName;
    DT_TRY(measured.accelerator.launch_seconds, MeasureLaunch(*emulated, cases));
  }
  measured.accelerator.source = measured.to_accelerator.source = source;
  measured.from_accelerator.source = source;
  profile = measured;
  return OkStatus();
}

}  // namespace dt::cli
