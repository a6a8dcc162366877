#include "worker/memory/parameter_copies.h"

#include <algorithm>
#include <utility>

namespace dt::worker {
namespace {

constexpr Duration kTimeout = std::chrono::minutes(1);

}  // namespace

Result<std::unique_ptr<ParameterCopies>> ParameterCopies::Create(const Options& options) {
  auto copies = std::make_unique<ParameterCopies>(options);
  if (options.accelerator == nullptr) return copies;
  DT_TRY(copies->queue_, options.accelerator->NewQueue());
  DT_TRY(copies->moved_, options.accelerator->NewEvent());
  return copies;
}

Status ParameterCopies::Move(ValueIndex device, const Parameters::Array& array, bool to_device) {
  const TensorView& view = options_.bindings.view(device);
  auto* const host = const_cast<float*>(array.values.data());
  return to_device ? queue_->CopyToDevice(view.data, host, view.bytes())
                   : queue_->CopyToHost(host, view.data, view.bytes());
}

Status ParameterCopies::SendReplica(const ReplicaSpec& replica, const Parameters::Array& array) {
  if (options_.plan.graph.value(replica.value).device == Device::kGpu) {
    return Move(replica.value, array, true);
  }
  std::ranges::copy(array.values, static_cast<float*>(options_.bindings.view(replica.value).data));
  return OkStatus();
}

Status ParameterCopies::Send() {
  if (!std::exchange(touched_, false)) return OkStatus();
  const Graph& graph = options_.plan.graph;
  for (const Parameters::Array& array : options_.parameters.arrays()) {
    if (graph.value(array.value).device == Device::kGpu) {
      DT_TRY_STATUS(Move(array.value, array, true));
    }
    for (const ReplicaSpec& replica : graph.replicas) {
      if (replica.of == array.value) DT_TRY_STATUS(SendReplica(replica, array));
    }
  }
  return Finish();
}

Status ParameterCopies::Fetch() {
  if (queue_ == nullptr || touched_) return OkStatus();
  for (const Parameters::Array& array : options_.parameters.arrays()) {
    if (options_.plan.graph.value(array.value).device != Device::kGpu) continue;
    DT_TRY_STATUS(Move(array.value, array, false));
  }
  return Finish();
}

Status ParameterCopies::Finish() {
  if (queue_ == nullptr) return OkStatus();
  DT_TRY_STATUS(queue_->Record(*moved_));
  return moved_->Wait(kTimeout);
}

}  // namespace dt::worker
