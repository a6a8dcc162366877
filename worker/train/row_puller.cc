#include "worker/train/row_puller.h"

#include "common/base/check.h"

namespace dt::worker {
namespace {

constexpr size_t kSlicesAhead = 2;

}  // namespace

Status RowPuller::Begin(Step step, PullMode mode) {
  DT_CHECK(ahead_ == nullptr);
  DT_TRY(ahead_, NextPlan());
  if (ahead_ == nullptr) return OkStatus();
  client_.BeginPull(*ahead_, step, mode);
  if (mode == PullMode::kTrain) LookAhead(step);
  return OkStatus();
}

Result<std::unique_ptr<LookupPlan>> RowPuller::NextPlan() {
  if (coming_.empty()) return reader_.Next();
  std::unique_ptr<LookupPlan> plan = std::move(coming_.front());
  coming_.pop_front();
  return plan;
}

// While this slice is computed, the disk can read for the coming ones.
void RowPuller::LookAhead(Step step) {
  while (client_.lookahead_helps() && coming_.size() < kSlicesAhead) {
    std::optional<std::unique_ptr<LookupPlan>> plan = reader_.TryNext();
    if (!plan.has_value()) return;
    client_.Lookahead(**plan, step);
    coming_.push_back(*std::move(plan));
  }
}

Result<const LookupPlan*> RowPuller::Finish() {
  if (current_ != nullptr) reader_.Recycle(std::move(current_));
  current_ = std::move(ahead_);
  if (current_ == nullptr) return nullptr;
  DT_TRY_STATUS(client_.FinishPull(*current_, pulled_));
  tables_.clear();
  for (size_t t = 0; t < current_->tables.size(); ++t) tables_.push_back(pulled_.table(t));
  return current_.get();
}

}  // namespace dt::worker
