#include "worker/train/trainer.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"
#include "worker/train/stage_spans.h"

namespace dt::worker {

const Dataset& Datasets::of(SplitKind split) const {
  switch (split) {
    case SplitKind::kTrain:
      return *train;
    case SplitKind::kValid:
      return *valid;
    case SplitKind::kTest:
      return *test;
  }
  DT_UNREACHABLE();
}

Trainer::Trainer(Options options) : options_(std::move(options)) {
  if (!options_.job.train.asynchronous()) return;
  dense_.emplace(options_.job, options_.engine);
  if (options_.other_engine != nullptr) {
    other_dense_.emplace(options_.job, *options_.other_engine);
  }
  if (options_.job.train.cached_rows == 0) return;
  RowCache::Options cache{.dims = {},
                          .rows = options_.job.train.cached_rows,
                          .staleness = options_.job.train.staleness};
  for (const TableUse& table : options_.engine.plan().graph.tables) {
    cache.dims.push_back(table.dim);
  }
  cache_.emplace(cache);
}

void Trainer::ForgetRows() {
  if (cache_) cache_->Clear();
}

std::vector<uint32_t> Trainer::WireTablesOf(const std::vector<DenseBlockTable>& fixed) const {
  std::vector<uint32_t> wire = WireTables(options_.engine.plan().graph, options_.job.model.tables);
  for (const DenseBlockTable& table : fixed) wire.push_back(table.wire);
  return wire;
}

std::unique_ptr<SliceReader> Trainer::OpenReader(const Dataset& data, LookupFor purpose,
                                                 NextSlice next) {
  const Plan& plan = options_.engine.plan();
  const auto fixed = dense_ ? dense_->tables() : std::vector<DenseBlockTable>();
  Timeline* const timeline = purpose == LookupFor::kTrain ? options_.timeline : nullptr;
  return std::make_unique<SliceReader>(SliceReader::Options{.data = data,
                                                            .plan = plan,
                                                            .shards = options_.client.shards(),
                                                            .wire_tables = WireTablesOf(fixed),
                                                            .fixed = fixed,
                                                            .purpose = purpose,
                                                            .spare = spare_,
                                                            .interrupted = options_.interrupted,
                                                            .next = std::move(next),
                                                            .ahead = options_.job.parallel.overlap,
                                                            .timeline = timeline});
}

// ------------------------------------------------------------ training

std::shared_ptr<StepSamples> Trainer::SamplesOf(const TrainOrder& order) const {
  const JobConfig& job = options_.job;
  const StepSamples::Options options{.seed = job.seed,
                                     .epoch = order.epoch,
                                     .window = job.data.shuffle_window,
                                     .batch_size = options_.engine.plan().batch_size};
  if (!order.cut.empty()) {
    const Step before = order.epoch_first_step;
    return StepSamples::OfCut(order.cut, {order.first_step - before, order.end_step - before});
  }
  return options_.data.train->striped() == nullptr
             ? StepSamples::OfRows(options, options_.data.train->rows())
             : StepSamples::OfStripes(options, StepsPerEpoch(), options_.stripe_rows);
}

uint64_t Trainer::StepsPerEpoch() const {
  if (options_.job.data.stream.has_value()) return kEndless;
  uint64_t rows = options_.data.train->rows();
  if (options_.data.train->striped() != nullptr) {
    rows = std::reduce(options_.stripe_rows.begin(), options_.stripe_rows.end());
  }
  return options_.job.train.steps_per_epoch(rows, options_.stripe_rows);
}

// The slices of this rank's team, step by step.
NextSlice Trainer::OwnSlices(const TrainOrder& order) const {
  return [order, team = team(), samples = SamplesOf(order), step = FirstStepOf(order),
          slice = SliceIndex{0}](LookupPlan& plan) mutable {
    const auto slices = static_cast<uint32_t>(order.slice_owner.size());
    for (;; ++slice) {
      if (slice == slices) {
        slice = 0;
        ++step;
      }
      if (step >= order.end_step) return false;
      if (order.slice_owner[slice] == team) break;
    }
    const uint64_t in_epoch = step - order.epoch_first_step;
    samples->Take(in_epoch, slice, slices, plan.rows, plan.batch);
    plan.batch.step = step;
    plan.batch.epoch = order.epoch;
    plan.batch.slice = slice++;
    plan.batch.step_samples = samples->Count(in_epoch);
    return true;
  };
}

bool Trainer::CanDo(const TrainOrder& order) const {
  if (order.first_step < order.epoch_first_step || order.slice_owner.empty()) return false;
  if (dense_) return true;
  const Plan& plan = options_.engine.plan();
  const uint32_t teams = options_.ranks / plan.devices;
  return order.slice_owner.size() == plan.slices &&
         std::ranges::all_of(order.slice_owner, [&](uint32_t owner) { return owner < teams; });
}

Result<TrainDone> Trainer::Train(const TrainOrder& order) {
  if (!CanDo(order)) {
    return Internal("the scheduler ordered steps {} to {} in {} slices, which the plan cannot do",
                    order.first_step, order.end_step, order.slice_owner.size());
  }
  return dense_ ? TrainAsynchronous(order) : TrainSynchronous(order);
}

TrainDone Trainer::NothingDone(const TrainOrder& order) const {
  TrainDone done{.end_step = order.end_step};
  done.loss_sums.resize(options_.engine.plan().graph.losses.size());
  return done;
}

// Steps of the order may have been done in an earlier view.
Step Trainer::FirstStepOf(const TrainOrder& order) const {
  return std::max(order.first_step, options_.progress.step);
}

float Trainer::LrScale(const TrainOrder& order, Step step) const {
  const JobConfig& job = options_.job;
  const Step job_steps = job.train.steps(StepsPerEpoch());
  return static_cast<float>(order.lr_scale * job.optimizer.schedule.ScaleAt(step, job_steps));
}

Result<TrainDone> Trainer::TrainSynchronous(const TrainOrder& order) {
  const std::unique_ptr<SliceReader> reader =
      OpenReader(*options_.data.train, LookupFor::kTrain, OwnSlices(order));
  RowPuller puller(*reader, options_.client, nullptr, options_.timeline);
  Stages stages{.progress = options_.progress,
                .puller = puller,
                .client = options_.client,
                .engine = options_.engine,
                .team = options_.team,
                .overlap = options_.job.parallel.overlap,
                .timeline = options_.timeline};
  Result<TrainDone> done = RunSteps(order, stages);
  // It computes with rows of the puller.
  if (!done.ok() && !options_.progress.entered) options_.engine.Abandon();
  return done;
}

Status Trainer::Settle(Step step) {
  TrainProgress& progress = options_.progress;
  if (!progress.entered) return OkStatus();
  if (step <= progress.step) {
    progress.entered.reset();
    options_.engine.Abandon();
    return OkStatus();
  }
  if (step != progress.step + 1) {
    return Internal("{} steps are complete, and this worker has done {}", step, progress.step);
  }
  DT_TRY_STATUS(options_.client.Complete(progress.step));
  DT_TRY_STATUS(options_.engine.Update(*progress.entered));
  DT_TRY_STATUS(options_.engine.FinishUpdate());
  const uint32_t samples = progress.entered->step_samples;
  TrainDone& done = options_.order.done;
  const bool first = done.samples == 0;
  AddStep(first, samples, options_.engine.step_losses(), done);
  progress = {.step = step};
  options_.report(step, done.samples);
  return OkStatus();
}

Result<TrainDone> Trainer::RunSteps(const TrainOrder& order, Stages& stages) {
  const std::shared_ptr<StepSamples> of_steps = SamplesOf(order);
  OrderProgress& own = options_.order;
  TrainDone& done = own.done;
  if (!own.begun) {
    own.begun = options_.clock->Now();
    done = NothingDone(order);
  }
  const Step first = FirstStepOf(order);
  if (stages.overlap && first < order.end_step) DT_TRY_STATUS(BeginStep(first, stages));
  for (Step step = first; step < order.end_step; ++step) {
    DT_TRY_STATUS(options_.interrupted());
    const uint32_t samples = of_steps->Count(step - order.epoch_first_step);
    const Status trained = TrainStep({.step = step,
                                      .samples = samples,
                                      .slice_owner = order.slice_owner,
                                      .lr_scale = LrScale(order, step)},
                                     stages);
    if (options_.progress.step > step) {
      AddStep(step == order.first_step, samples, options_.engine.step_losses(), done);
      options_.report(step + 1, done.samples);
    }
    DT_TRY_STATUS(trained);
  }
  done.seconds = SecondsBetween(*own.begun, options_.clock->Now());
  return done;
}

// ------------------------------------------------------------ asynchronous training

// Sends pulls as far ahead as the staleness allows, and begins steps on free lanes.
Status Trainer::BeginAsynchronous(const AsyncStepInfo& now, UnderWay& steps, AsyncStages& on) {
  // A step does not see those earlier steps of its worker that are pulled and not yet pushed, so
  // the staleness limits their number. One more step is pulled than there are lanes.
  const uint64_t unseen = std::min<uint64_t>(options_.job.train.staleness, on.lanes.size());
  const uint64_t end = now.number + (on.overlap ? unseen : 0) + 1;
  while (!steps.all_pulled && steps.pulled < end) {
    const size_t before = on.puller.ahead();
    DT_TRY_STATUS(on.puller.Begin(now.order + steps.pulled, PullMode::kTrain));
    steps.all_pulled = on.puller.ahead() == before;
    if (!steps.all_pulled) ++steps.pulled;
  }
  for (; steps.begun < std::min(steps.pulled, now.number + on.lanes.size()); ++steps.begun) {
    AsyncStepInfo step = now;
    step.number = steps.begun;
    DT_TRY_STATUS(BeginAsyncStep(step, on));
  }
  return OkStatus();
}

Result<TrainDone> Trainer::TrainAsynchronous(const TrainOrder& order) {
  DT_TRY_STATUS(SetDense());
  const std::unique_ptr<SliceReader> reader =
      OpenReader(*options_.data.train, LookupFor::kTrain, OwnParts(order));
  RowPuller puller(*reader, options_.client, cache_ ? &*cache_ : nullptr, options_.timeline);
  std::vector<AsyncLane> lanes = {{options_.engine, *dense_}};
  if (other_dense_) lanes.push_back({*options_.other_engine, *other_dense_});
  AsyncStages stages{.puller = puller,
                     .client = options_.client,
                     .lanes = lanes,
                     .lr_scale = [&](Step step) { return LrScale(order, step); },
                     .overlap = options_.job.parallel.overlap,
                     .timeline = options_.timeline};
  Result<TrainDone> done = RunSteps(order, stages);
  if (!done.ok()) {
    for (const AsyncLane& lane : lanes) lane.engine.Abandon();
  }
  return done;
}

Result<TrainDone> Trainer::RunSteps(const TrainOrder& order, AsyncStages& stages) {
  OrderProgress& own = options_.order;
  if (!own.begun) {
    own.begun = options_.clock->Now();
    own.done = NothingDone(order);
  }
  PushedSteps pushed(order, own);
  UnderWay steps;
  AsyncStepInfo info{.worker = options_.self,
                     .order = order.first_step,
                     .settled = order.settled_step,
                     .slices = static_cast<uint32_t>(order.slice_owner.size())};
  for (;; ++info.number) {
    DT_TRY_STATUS(options_.interrupted());
    TimelineSpan whole(options_.timeline, stage::kStep, info.count());
    DT_TRY_STATUS(BeginAsynchronous(info, steps, stages));
    if (steps.begun == info.number) {
      whole.Cancel();
      break;
    }
    DT_TRY(const AsyncStepResult result, EndAsyncStep(info, stages));
    pushed.Add(
        {result.step, result.slice, result.samples, {result.losses.begin(), result.losses.end()}});
    pushed.Acknowledge(result.acknowledged);
    options_.report(pushed.step(), pushed.samples());
  }
  DT_TRY_STATUS(options_.client.WaitForPushes());
  pushed.Acknowledge(info.number);
  own.done.seconds = SecondsBetween(*own.begun, options_.clock->Now());
  return own.done;
}

// This worker's slices of each batch; without a bound on staleness, those that it asks for.
NextSlice Trainer::OwnParts(const TrainOrder& order) const {
  return [order, samples = SamplesOf(order),
          slices = OrderSlices(order, options_.self, options_.next_split, options_.order)](
             LookupPlan& plan) mutable -> Result<bool> {
    DT_TRY(const std::optional<OrderSlices::Slice> own, slices.Next());
    if (!own.has_value()) return false;
    samples->Take(own->step - order.epoch_first_step, own->slice,
                  static_cast<uint32_t>(order.slice_owner.size()), plan.rows, plan.batch);
    plan.batch.step = own->step;
    plan.batch.epoch = order.epoch;
    plan.batch.slice = 0;
    plan.batch.pushed_slice = own->slice;
    plan.batch.next_step = own->next_step;
    plan.batch.step_samples = plan.batch.samples;
    return true;
  };
}

LookupPlan Trainer::DensePlan() const {
  const Plan& plan = options_.engine.plan();
  const std::vector<DenseBlockTable> fixed = dense_->tables();
  LookupPlan blocks;
  LookupPlanner(plan, options_.client.shards(), WireTablesOf(fixed), fixed).FillFixed(blocks);
  return blocks;
}

// Every worker offers the same first values; servers that have values keep their own.
Status Trainer::SetDense() {
  if (dense_set_) return OkStatus();
  const LookupPlan blocks = DensePlan();
  const DenseBlocks::Rows values = dense_->Values(blocks);
  std::vector<std::span<const float>> rows(blocks.tables.size());
  std::ranges::copy(values, rows.end() - values.size());
  options_.client.BeginSetAbsent(blocks, rows);
  DT_TRY_STATUS(options_.client.WaitForPushes());
  dense_set_ = true;
  return OkStatus();
}

Status Trainer::PullDense() {
  if (!dense_) return OkStatus();
  const LookupPlan blocks = DensePlan();
  options_.client.BeginPull(blocks, 0, PullMode::kEvaluate);
  PulledRows pulled;
  DT_TRY_STATUS(options_.client.FinishPull(blocks, pulled));
  std::vector<std::span<const float>> rows;
  for (size_t t = 0; t < blocks.tables.size(); ++t) rows.push_back(pulled.table(t));
  dense_->Take(blocks, rows);
  return OkStatus();
}

}  // namespace dt::worker
