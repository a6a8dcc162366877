#include "worker/engine/node_runner.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/device/accelerator_cuda.h"
#include "common/device/emulated_accelerator.h"
#include "worker/engine/comm_runner.h"
#include "worker/engine/cuda_runner.h"

namespace dt::worker {
namespace {

uint64_t BytesOf(const PreparedNode& node) {
  uint64_t bytes = 0;
  for (const auto* const side : {&node.inputs, &node.outputs}) {
    for (const TensorView& view : *side) bytes += view.data != nullptr ? view.bytes() : 0;
  }
  return bytes;
}

// Runs one node after the other, and times each by itself.
class OneByOne : public NodeRunner {
 public:
  explicit OneByOne(const RunnerContext& context) : context_(context) {}
  Status Run(const Subgraph& subgraph, const Pass& pass) override {
    for (const NodeIndex n : subgraph.nodes) {
      const Node& node = context_.plan.graph.nodes[n];
      PreparedNode& prepared = context_.prepare(pass.lane, n);
      const TimelineSpan span(pass.run.training ? context_.timeline : nullptr,
                              {TrackOf(subgraph.stream), node.name, node.op}, pass.run.step,
                              pass.slice);
      const WorkSpan work(*prepared.work);
      if (WorkKind::counts) prepared.work->Count(BytesOf(prepared));
      const TimePoint begun = SystemClock().Now();
      RunInfo run = pass.run;
      run.first_sample += prepared.first_sample;
      run.first_in_slice = prepared.first_sample;
      DT_TRY_STATUS(RunNode(node, prepared, run));
      prepared.time += SystemClock().Now() - begun;
      ++prepared.runs;
    }
    return OkStatus();
  }

 protected:
  virtual Status RunNode(const Node& node, PreparedNode& prepared, const RunInfo& run) = 0;
  void RunKernel(const Node& node, PreparedNode& prepared, const RunInfo& run) {
    KernelContext context{.node = node,
                          .inputs = prepared.inputs,
                          .outputs = prepared.outputs,
                          .run = run,
                          .pool = context_.pool,
                          .scratch = scratch_};
    prepared.kernel(context);
  }

 private:
  const RunnerContext& context_;
  // All nodes share it, because they run one after the other, so that it stays in the caches.
  std::vector<std::byte> scratch_;
};

class CpuRunner : public OneByOne {
 public:
  using OneByOne::OneByOne;

 protected:
  Status RunNode(const Node& node, PreparedNode& prepared, const RunInfo& run) override {
    RunKernel(node, prepared, run);
    return OkStatus();
  }
};

class QueueRunner : public OneByOne {
 public:
  QueueRunner(const RunnerContext& context, std::unique_ptr<DeviceQueue> queue)
      : OneByOne(context), queue_(std::move(queue)) {}
  Status Record(DeviceEvent& event) override { return queue_->Record(event); }
  Status WaitFor(DeviceEvent& event, Duration) override { return queue_->WaitFor(event); }

 protected:
  DeviceQueue& queue() { return *queue_; }

 private:
  const std::unique_ptr<DeviceQueue> queue_;
};

// `copy` writes its output, `refresh` its second input.
class CopyRunner : public QueueRunner {
 public:
  CopyRunner(const RunnerContext& context, std::unique_ptr<DeviceQueue> queue, Stream stream)
      : QueueRunner(context, std::move(queue)), to_device_(stream == Stream::kToGpu) {}

 protected:
  Status RunNode(const Node& node, PreparedNode& prepared, const RunInfo&) override {
    const TensorView& from = prepared.inputs[0];
    const TensorView& to = node.outputs.empty() ? prepared.inputs[1] : prepared.outputs[0];
    DT_CHECK(from.bytes() == to.bytes());
    if (from.data == nullptr) return OkStatus();  // The pass lacks this input, and nobody reads it.
    return to_device_ ? queue().CopyToDevice(to.data, from.data, from.bytes())
                      : queue().CopyToHost(to.data, from.data, from.bytes());
  }

 private:
  const bool to_device_;
};

// Runs the CPU's kernels on the emulated device's memory; they occupy the device for as long as its
// speed demands.
class EmulatedRunner : public QueueRunner {
 public:
  EmulatedRunner(const RunnerContext& context, std::unique_ptr<DeviceQueue> queue,
                 EmulatedAccelerator& device)
      : QueueRunner(context, std::move(queue)), device_(device) {}

 protected:
  Status RunNode(const Node& node, PreparedNode& prepared, const RunInfo& run) override {
    for (auto* const side : {&prepared.inputs, &prepared.outputs}) {
      for (TensorView& view : *side) {
        if (view.data != nullptr) view.data = device_.Real(view.data);
      }
    }
    const auto bytes = static_cast<double>(BytesOf(prepared));
    const TimePoint end = device_.Occupy(prepared.flops, bytes);
    RunKernel(node, prepared, run);
    device_.Await(end);
    return OkStatus();
  }

 private:
  EmulatedAccelerator& device_;
};

}  // namespace

Track TrackOf(Stream stream) {
  switch (stream) {
    case Stream::kCpu:
      return Track::kCpu;
    case Stream::kGpu:
      return Track::kGpu;
    case Stream::kToGpu:
      return Track::kCopyToDevice;
    case Stream::kToCpu:
      return Track::kCopyToHost;
    case Stream::kComm:
      return Track::kExchange;
  }
  DT_UNREACHABLE();
}

Result<std::unique_ptr<NodeRunner>> MakeNodeRunner(Stream stream, const RunnerContext& context) {
  if (stream == Stream::kCpu) return std::make_unique<CpuRunner>(context);
  if (stream == Stream::kComm) return MakeCommRunner(context);
  DT_CHECK(context.accelerator != nullptr);
  if (stream == Stream::kGpu) {
    auto* const card = dynamic_cast<CudaAccelerator*>(context.accelerator);
    if (card != nullptr) return MakeCudaRunner(context, *card);
  }
  DT_TRY(std::unique_ptr<DeviceQueue> queue, context.accelerator->NewQueue());
  if (stream != Stream::kGpu) {
    return std::make_unique<CopyRunner>(context, std::move(queue), stream);
  }
  auto* const emulated = dynamic_cast<EmulatedAccelerator*>(context.accelerator);
  DT_CHECK(emulated != nullptr);
  return std::make_unique<EmulatedRunner>(context, std::move(queue), *emulated);
}

}  // namespace dt::worker
