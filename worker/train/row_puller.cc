#include "worker/train/row_puller.h"

#include "common/base/check.h"

namespace dt::worker {

Status RowPuller::Begin(Step step, PullMode mode) {
  DT_CHECK(ahead_ == nullptr);
  DT_TRY(ahead_, reader_.Next());
  if (ahead_ != nullptr) client_.BeginPull(*ahead_, step, mode);
  return OkStatus();
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
