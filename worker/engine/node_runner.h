// Runs one node where its stream is: a kernel on the processor or the accelerator, or a copy
// between them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/device/accelerator.h"
#include "common/graph/plan.h"
#include "common/runtime/task_pool.h"
#include "ops/kernel.h"

namespace dt::worker {

// One node, ready to run: its views are set before each pass, and lie where its inputs and outputs
// lie.
struct PreparedNode {
  Kernel kernel = nullptr;
  std::vector<TensorView> inputs, outputs;
  std::vector<std::byte> scratch;
  uint64_t runs = 0;
  Duration time{};
};

// Of one stream; only its thread uses it.
class NodeRunner {
 public:
  virtual ~NodeRunner() = default;
  virtual Status Run(const Node& node, PreparedNode& prepared, const RunInfo& run) = 0;
  // Work given so far has ended when the event has; the stream goes on. Nothing to do for the
  // processor.
  virtual Status Record(DeviceEvent&) { return OkStatus(); }
  // What is run from now on comes after the event.
  virtual Status WaitFor(DeviceEvent& event, Duration patience) { return event.Wait(patience); }
};

// `accelerator` may be null for Stream::kCpu. Errors: Unavailable, no queue; NotYet, an accelerator
// whose kernels are not here.
Result<std::unique_ptr<NodeRunner>> MakeNodeRunner(Stream stream, TaskPool& pool,
                                                   Accelerator* accelerator);

}  // namespace dt::worker
