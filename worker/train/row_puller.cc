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
  const Step as_of = next->batch.step;
  Begun slice{std::move(next), nullptr};
  if (cache_ != nullptr) {
    slice.cached = spare_.empty() ? std::make_unique<CachedPull>() : std::move(spare_.back());
    if (!spare_.empty()) spare_.pop_back();
    cache_->Split(*slice.plan, as_of, *slice.cached);
  }
  client_.BeginPull(slice.cached != nullptr ? slice.cached->misses : *slice.plan, as_of, mode);
  ahead_.push_back(std::move(slice));
  if (mode == PullMode::kTrain) PrefetchNext(step);
  return OkStatus();
}

Result<std::unique_ptr<LookupPlan>> RowPuller::NextPlan(Step step) {
  if (coming_.empty()) {
    return Recorded(timeline_, stage::kAwaitReader, step, [&] { return reader_.Next(); });
  }
  std::unique_ptr<LookupPlan> plan = std::move(coming_.front());
  coming_.erase(coming_.begin());
  return plan;
}

// Announces slices, so that the servers' disks read for them while this one is computed.
void RowPuller::PrefetchNext(Step step) {
  while (client_.prefetch_helps() && coming_.size() < kSlicesAhead) {
    std::optional<std::unique_ptr<LookupPlan>> plan = reader_.TryNext();
    if (!plan.has_value()) return;
    client_.Prefetch(**plan, step);
    coming_.push_back(*std::move(plan));
  }
}

Result<const RowPuller::Slice*> RowPuller::Finish() {
  if (ahead_.empty()) return nullptr;
  Slice& slice = taken_[taken_count_++ % taken_.size()];
  if (slice.plan != nullptr) reader_.Recycle(std::move(slice.plan));
  if (slice.cached != nullptr) spare_.push_back(std::move(slice.cached));
  slice.plan = std::move(ahead_.front().plan);
  slice.cached = std::move(ahead_.front().cached);
  ahead_.erase(ahead_.begin());
  DT_TRY_STATUS(TakeRows(slice));
  return &slice;
}

Status RowPuller::TakeRows(Slice& slice) {
  const Batch& batch = slice.plan->batch;
  const TimelineSpan span(timeline_, stage::kAwaitRows, batch.step, batch.slice);
  slice.rows.clear();
  if (slice.cached == nullptr) {
    DT_TRY_STATUS(client_.FinishPull(*slice.plan, slice.pulled));
    for (size_t t = 0; t < slice.plan->tables.size(); ++t) {
      slice.rows.push_back(slice.pulled.table(t));
    }
    return OkStatus();
  }
  DT_TRY_STATUS(client_.FinishPull(slice.cached->misses, slice.pulled));
  cache_->Join(slice.pulled, *slice.cached);
  for (const std::vector<float>& rows : slice.cached->rows) slice.rows.emplace_back(rows);
  return OkStatus();
}

}  // namespace dt::worker
