#include "worker/train/row_puller.h"

#include "worker/train/stage_spans.h"

namespace dt::worker {
namespace {

constexpr size_t kSlicesAhead = 2;

}  // namespace

Status RowPuller::Begin(Step step, PullMode mode) {
  DT_TRY(std::unique_ptr<LookupPlan> next, NextPlan(step));
  if (next == nullptr) return OkStatus();
  const TimelineSpan span(timeline_, stage::kSendPull, step, next->batch.slice);
  Slice slice{std::move(next), nullptr};
  if (cache_ != nullptr) {
    slice.cached = spare_ != nullptr ? std::move(spare_) : std::make_unique<CachedPull>();
    cache_->Split(*slice.plan, step, *slice.cached);
  }
  client_.BeginPull(slice.cached != nullptr ? slice.cached->misses : *slice.plan, step, mode);
  ahead_.push_back(std::move(slice));
  if (mode == PullMode::kTrain) LookAhead(step);
  return OkStatus();
}

Result<std::unique_ptr<LookupPlan>> RowPuller::NextPlan(Step step) {
  if (coming_.empty()) {
    return Recorded(timeline_, stage::kAwaitReader, step, [&] { return reader_.Next(); });
  }
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
  if (current_.plan != nullptr) reader_.Recycle(std::move(current_.plan));
  if (current_.cached != nullptr) spare_ = std::move(current_.cached);
  if (ahead_.empty()) return nullptr;
  current_ = std::move(ahead_.front());
  ahead_.pop_front();
  DT_TRY_STATUS(TakeRows());
  return current_.plan.get();
}

Status RowPuller::TakeRows() {
  const Batch& batch = current_.plan->batch;
  const TimelineSpan span(timeline_, stage::kAwaitRows, batch.step, batch.slice);
  tables_.clear();
  if (current_.cached == nullptr) {
    DT_TRY_STATUS(client_.FinishPull(*current_.plan, pulled_));
    for (size_t t = 0; t < current_.plan->tables.size(); ++t) tables_.push_back(pulled_.table(t));
    return OkStatus();
  }
  DT_TRY_STATUS(client_.FinishPull(current_.cached->misses, pulled_));
  cache_->Join(pulled_, *current_.cached);
  for (const std::vector<float>& rows : current_.cached->rows) tables_.emplace_back(rows);
  return OkStatus();
}

}  // namespace dt::worker
