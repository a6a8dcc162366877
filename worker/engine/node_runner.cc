#include "worker/engine/node_runner.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/device/emulated_accelerator.h"

namespace dt::worker {
namespace {

void RunKernel(const Node& node, PreparedNode& prepared, const RunInfo& run, TaskPool& pool) {
  KernelContext context{.node = node,
                        .inputs = prepared.inputs,
                        .outputs = prepared.outputs,
                        .run = run,
                        .pool = pool,
                        .scratch = prepared.scratch};
  prepared.kernel(context);
}

class CpuRunner : public NodeRunner {
 public:
  explicit CpuRunner(TaskPool& pool) : pool_(pool) {}
  Status Run(const Node& node, PreparedNode& prepared, const RunInfo& run) override {
    RunKernel(node, prepared, run, pool_);
    return OkStatus();
  }

 private:
  TaskPool& pool_;
};

class QueueRunner : public NodeRunner {
 public:
  explicit QueueRunner(std::unique_ptr<DeviceQueue> queue) : queue_(std::move(queue)) {}
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
  CopyRunner(std::unique_ptr<DeviceQueue> queue, Stream stream)
      : QueueRunner(std::move(queue)), to_device_(stream == Stream::kToGpu) {}
  Status Run(const Node& node, PreparedNode& prepared, const RunInfo&) override {
    const TensorView& from = prepared.inputs[0];
    const TensorView& to = node.outputs.empty() ? prepared.inputs[1] : prepared.outputs[0];
    DT_CHECK(from.bytes() == to.bytes());
    if (from.data == nullptr)
      return OkStatus();  // An input that this pass has not, and nobody reads.
    return to_device_ ? queue().CopyToDevice(to.data, from.data, from.bytes())
                      : queue().CopyToHost(to.data, from.data, from.bytes());
  }

 private:
  const bool to_device_;
};

// The CPU's kernels on the emulated device's memory.
class EmulatedRunner : public QueueRunner {
 public:
  EmulatedRunner(std::unique_ptr<DeviceQueue> queue, EmulatedAccelerator& device, TaskPool& pool)
      : QueueRunner(std::move(queue)), device_(device), pool_(pool) {}
  Status Run(const Node& node, PreparedNode& prepared, const RunInfo& run) override {
    for (auto* const side : {&prepared.inputs, &prepared.outputs}) {
      for (TensorView& view : *side) {
        if (view.data != nullptr) view.data = device_.Real(view.data);
      }
    }
    RunKernel(node, prepared, run, pool_);
    return OkStatus();
  }

 private:
  EmulatedAccelerator& device_;
  TaskPool& pool_;
};

}  // namespace

Result<std::unique_ptr<NodeRunner>> MakeNodeRunner(Stream stream, TaskPool& pool,
                                                   Accelerator* accelerator) {
  if (stream == Stream::kCpu) return std::make_unique<CpuRunner>(pool);
  DT_CHECK(accelerator != nullptr);
  DT_TRY(std::unique_ptr<DeviceQueue> queue, accelerator->NewQueue());
  if (stream != Stream::kGpu) return std::make_unique<CopyRunner>(std::move(queue), stream);
  auto* const emulated = dynamic_cast<EmulatedAccelerator*>(accelerator);
  if (emulated == nullptr) {
    return WithHint(NotYet("nodes on CUDA cards are not available yet"),
                    "set cluster.devices to emulated, or take the tags off");
  }
  return std::make_unique<EmulatedRunner>(std::move(queue), *emulated, pool);
}

}  // namespace dt::worker
