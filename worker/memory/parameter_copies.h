// Moves the dense parameters between the host's arrays and their copies: in the accelerator's
// memory, and in replicas on either device. Owned by the train thread.
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
  // All of these outlive it; `accelerator` may be null if no parameter is there.
  struct Options {
    const Plan& plan;
    Bindings& bindings;
    Parameters& parameters;
    Accelerator* accelerator = nullptr;
  };
  // Errors: Unavailable, if no queue can be made.
  static Result<std::unique_ptr<ParameterCopies>> Create(const Options& options);
  explicit ParameterCopies(const Options& options) : options_(options) {}

  // Called if the host's arrays may be written: they are the current values from now on.
  void Touch() { touched_ = true; }
  bool touched() const { return touched_; }
  // Sends the host's arrays to all copies, if they were touched since the last time. REQUIRES, like
  // Fetch: no stream runs.
  Status Send();
  // Copies the accelerator's values to the host's arrays, unless these are the current values.
  Status Fetch();

 private:
  Status Move(ValueIndex device, const Parameters::Array& array, bool to_device);
  Status SendReplica(const ReplicaSpec& replica, const Parameters::Array& array);
  Status Finish();

  const Options options_;
  std::unique_ptr<DeviceQueue> queue_;  // Null without an accelerator, as is moved_.
  std::unique_ptr<DeviceEvent> moved_;
  bool touched_ = true;
};

}  // namespace dt::worker
