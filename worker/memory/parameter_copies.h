// Moves the dense parameters between the host's arrays and wherever else they lie: the
// accelerator's memory and the replicas on either device. Owned by the train thread.
#pragma once

#include <memory>

#include "common/base/status.h"
#include "common/device/accelerator.h"
#include "common/plan/plan.h"
#include "worker/memory/bindings.h"
#include "worker/memory/parameters.h"

namespace dt::worker {

class ParameterCopies {
 public:
  // What is passed outlives it; `accelerator` may be null if no parameter lies there. Error:
  // Unavailable, no queue.
  struct Options {
    const Plan& plan;
    Bindings& bindings;
    Parameters& parameters;
    Accelerator* accelerator = nullptr;
  };
  static Result<std::unique_ptr<ParameterCopies>> Create(const Options& options);
  explicit ParameterCopies(const Options& options) : options_(options) {}

  // Somebody may write the host's arrays: they are what counts from now on.
  void Touch() { touched_ = true; }
  bool touched() const { return touched_; }
  // Sends them to wherever else they lie, if they were touched since. REQUIRES, as Fetch: no stream
  // runs.
  Status Send();
  // Brings the accelerator's values to the host's arrays, unless those are what counts.
  Status Fetch();

 private:
  Status Move(ValueIndex device, const Parameters::Array& array, bool to_device);
  Status SendReplica(const ReplicaSpec& replica, const Parameters::Array& array);
  Status Finish();

  const Options options_;
  std::unique_ptr<DeviceQueue> queue_;  // With an accelerator; as the event.
  std::unique_ptr<DeviceEvent> moved_;
  bool touched_ = true;
};

}  // namespace dt::worker
