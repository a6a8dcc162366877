#include "worker/train/order_progress.h"

#include <algorithm>

namespace dt::worker {

void AddStep(bool first, uint32_t samples, std::span<const double> losses, TrainDone& to) {
  if (samples == 0) return;
  to.samples += samples;
  for (size_t l = 0; l < losses.size(); ++l) to.loss_sums[l] += losses[l] * samples;
  if (first) to.first_losses.assign(losses.begin(), losses.end());
}

void PushedSteps::Add(Pushed pushed) {
  step_ = std::max(step_, pushed.step + 1);
  samples_ += pushed.samples;
  pushed_.push_back(std::move(pushed));
}

void PushedSteps::Acknowledge(uint64_t count) {
  for (; acknowledged_ < count; ++acknowledged_, pushed_.pop_front()) {
    const Pushed& first = pushed_.front();
    AddStep(first.step == first_step_, first.samples, first.losses, progress_.done);
    progress_.pushed.insert({first.step, first.slice});
  }
}

}  // namespace dt::worker
