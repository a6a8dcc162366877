#include "worker/service/worker_core.h"

#include <iterator>
#include <utility>
#include <variant>

#include "common/base/failpoint.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/control/read_process_stats.h"
#include "common/control/role_loop.h"
#include "common/storage/path_below.h"
#include "worker/data/stream/stream_dataset.h"
#include "worker/service/dense_saver.h"
#include "worker/service/stream_watch.h"
#include "worker/service/timings.h"
#include "worker/service/train_stack.h"
#include "worker/service/worker_stripes.h"

namespace dt::worker {
namespace {

constexpr Duration kPoll = milliseconds(200);  // A wait notices a stop within this time.
// The scheduler needs so many leases to say who is lost, when it is there.
constexpr int kVerdictLeases = 3;
// Failpoints, by kind of order.
constexpr std::string_view kOrderPlaces[] = {"train", "evaluate", "save", "load", "finish"};
static_assert(std::size(kOrderPlaces) == std::variant_size_v<Order>);
constexpr SpanLabel kReadData{Track::kTrain, "read data"};
constexpr SpanLabel kAwaitView{Track::kTrain, "the next view", kWait};

class WorkerCore {
 public:
  explicit WorkerCore(const WorkerParts& parts)
      : parts_(parts),
        options_(parts.options),
        pool_(options_.threads),
        stripes_({.config = options_.job.data,
                  .self = parts.link.welcome().id,
                  .pool = pool_,
                  .activity = parts.activity},
                 data_),
        trace_(options_.job, parts.link.welcome().id, parts.activity.threads(), parts.clock),
        dense_saver_(options_.more_threads,
                     [this](RowsWrittenMessage written) { parts_.link.Send(std::move(written)); }),
        stack_({.parts = parts_,
                .data = data_,
                .trace = trace_,
                .pool = pool_,
                .interrupted = [this] { return Interrupted(); },
                .next_split = [this] { return NextSplit(); }}) {}

  Status Run(std::stop_token stop) {
    stop_ = stop;
    const Status worked = Work();
    trace_.Finish();
    LogDelays();
    return EndRole(parts_.link, worked, stop);
  }

 private:
  // Returns why the worker stops; never OK.
  Status Work() {
    DT_TRY_STATUS(parts_.devices);
    if (!options_.job.data.by_slices) {
      DT_TRY_STATUS(OpenData());
      parts_.link.Send(DataReady());
    }
    return RunRole(parts_.link,
                   {.turn = [this] { return Ended(); },
                    .until_next_turn = [] { return kPoll; },
                    .take = [this](const ControlMessage& message) { return Take(message); }});
  }

  Status Take(const ControlMessage& message) {
    if (const auto* start = std::get_if<StartMessage>(&message)) {
      view_ = start->view.number;
      DT_TRY_STATUS(stripes_.Start(*start, [this] { return Ended(); }));
      if (watch_) {
        watch_->Begin(start->stream_begins);
        watch_->BeginView(start->view, self());
      }
      if (Status status = stack_.Start(*start); !status.ok()) {
        return stack_.PeerMayBeLost() ? ChangeView(status) : status;
      }
      parts_.link.Send(ReadyMessage{});
    } else if (const auto* read = std::get_if<ReadDataMessage>(&message)) {
      if (stack_.ready()) return OkStatus();  // It comes again; the answer is on its way.
      const TimelineSpan span(trace_.timeline(), kReadData, kNoStep);
      DT_TRY(DataReadyMessage ready, stripes_.Read(*read, [this] { return Ended(); }));
      parts_.link.Send(std::move(ready));
    } else if (const auto* order = std::get_if<OrderMessage>(&message)) {
      DT_TRY_STATUS(CarryOut(*order));
    } else if (const auto* next = std::get_if<NewViewMessage>(&message)) {
      if (next->view.number <= view_) return OkStatus();
      return ChangeView(Cancelled("the scheduler has left a view unfinished"), next->view);
    } else {
      LogWarn("worker.unexpected_message", {{"message", NameOf(message)}});
    }
    return OkStatus();
  }

  Status Ended() const {
    if (stop_.stop_requested()) return Cancelled("stopped on request");
    DT_TRY_STATUS(dense_saver_.problem());
    if (!parts_.link.ended()) return watch_ ? watch_->problem() : OkStatus();
    const Status end = parts_.link.end_status();
    return end.ok() ? Cancelled("the job is complete") : end;
  }
  // Why every wait is to end: also as the workers change.
  Status Interrupted() const {
    DT_TRY_STATUS(Ended());
    return ViewIsOld() ? Cancelled("the workers of the job change") : OkStatus();
  }
  ProcessId self() const { return parts_.link.welcome().id; }
  bool ViewIsOld() const { return parts_.latest.announced() > view_; }

  // ---------------------------------------------------------- views

  // Gives up what is at hand, and goes on in the view that the scheduler forms, which may not be
  // announced yet. `why` is returned if none is in time.
  Status ChangeView(Status why, std::optional<View> next = {}) {
    const TimePoint deadline = parts_.clock.Now() + options_.job.cluster.scheduler_outage +
                               kVerdictLeases * parts_.link.welcome().lease;
    if (stack_.PeerMayBeLost()) parts_.activity.Break(parts_.clock.Now());
    if (next) {
      DT_TRY_STATUS(Report(*next));
    }
    for (;;) {
      const TimelineSpan span(trace_.timeline(), kAwaitView, kNoStep);
      DT_TRY_STATUS(Ended());
      if (!next && parts_.clock.Now() >= deadline) return why;
      Result<ControlMessage> message = parts_.link.Receive(kPoll, ControlLink::Orders::kDrop);
      if (message.status().code() == StatusCode::kDeadlineExceeded) continue;
      DT_TRY_STATUS(message.status());
      auto* const announced = std::get_if<NewViewMessage>(&*message);
      if (announced != nullptr && announced->view.number > view_) {
        next = std::move(announced->view);
        DT_TRY_STATUS(Report(*next));
      }
      const auto* const begins = std::get_if<ViewBeginsMessage>(&*message);
      if (begins == nullptr || !next || begins->view != next->number) continue;
      view_ = next->number;
      PassFailpoint("view begins", view_.value());
      if (watch_) watch_->BeginView(*next, self());
      Status status = stack_.BeginView(*next, *begins);
      if (status.ok() || !(ViewIsOld() || stack_.PeerMayBeLost())) return status;
      why = std::move(status);  // Another one is lost.
      if (stack_.PeerMayBeLost()) parts_.activity.Break(parts_.clock.Now());
      next.reset();
    }
  }

  // The worker is ready for the next view, unless yet another one is announced meanwhile.
  Status Report(const View& next) {
    PassFailpoint("view", next.number.value());
    const auto is_old = [&] { return parts_.latest.announced() > next.number; };
    const Status read = stripes_.ReadFor(next, [&] {
      DT_TRY_STATUS(Ended());
      return is_old() ? Cancelled("the workers of the job change") : OkStatus();
    });
    if (!is_old()) {
      DT_TRY_STATUS(read);
    }
    parts_.link.Send(stack_.ReportFor(next));
    return OkStatus();
  }

  // ---------------------------------------------------------- before the first order

  Status OpenData() {
    const TimelineSpan span(trace_.timeline(), kReadData, kNoStep);
    const DataConfig& config = options_.job.data;
    if (config.stream.has_value()) {
      DT_TRY_STATUS(OpenStream());
    } else {
      DT_TRY(data_.train, Dataset::Open(config, Split::kTrain, pool_));
    }
    DT_TRY_STATUS(Interrupted());
    DT_TRY(data_.valid, Dataset::Open(config, Split::kValid, pool_));
    DT_TRY_STATUS(Interrupted());
    DT_TRY(data_.test, Dataset::Open(config, Split::kTest, pool_));
    return OkStatus();
  }

  Status OpenStream() {
    const DataConfig& config = options_.job.data;
    DT_TRY(auto messages, parts_.open_stream(*config.stream, [this] { return Interrupted(); }));
    DT_TRY(auto stream, StreamDataset::Open(config, std::move(messages)));
    DT_TRY(partitions_, stream->Partitions());
    data_.train = std::move(stream);
    const auto stopped = [this] {
      return parts_.link.ended() ? Cancelled("the job has ended") : OkStatus();
    };
    DT_TRY(auto reader, parts_.open_stream(*config.stream, stopped));
    watch_.emplace(
        std::move(reader), static_cast<uint32_t>(partitions_.size()),
        [this](StreamReportMessage report) { parts_.link.Send(std::move(report)); }, parts_.repeat);
    return OkStatus();
  }

  DataReadyMessage DataReady() const {
    DataReadyMessage ready;
    ready.partitions = partitions_;
    ready.train_rows = data_.train->rows();
    ready.valid_rows = data_.valid->rows();
    ready.test_rows = data_.test->rows();
    ready.columns = data_.train->columns();
    for (const Dataset* data : {data_.train.get(), data_.valid.get(), data_.test.get()}) {
      ready.rows_skipped += data->open_stats().rows_skipped;
      ready.fingerprint = CombinedHash(ready.fingerprint, data->fingerprint());
    }
    return ready;
  }

  // ---------------------------------------------------------- orders

  Status CarryOut(const OrderMessage& order) {
    if (!stack_.ready()) return Internal("the scheduler gave an order before the start");
    stack_.BeginOrder(order.number);
    const std::string_view kind = kOrderPlaces[order.what.index()];
    const TimelineSpan span(trace_.timeline(), {Track::kTrain, kind}, kNoStep);
    PassFailpoint(kind, stack_.step());
    OrderDoneMessage done{.order = order.number, .result = {}};
    Status status = std::visit([&](const auto& what) { return Do(what, done); }, order.what);
    if (status.ok()) {
      PassFailpoint("done", stack_.step());
      parts_.link.Send(std::move(done));
      dense_saver_.Start();
      return status;
    }
    // A server that knows of a newer view refuses what belongs to this one.
    const bool refused = status.code() == StatusCode::kFailedPrecondition;
    if (!ViewIsOld() && !stack_.PeerMayBeLost() && !refused) return status;
    return ChangeView(std::move(status));
  }

  // Called on the reader's thread, which lives within one order.
  Result<SplitMessage> NextSplit() {
    for (;;) {
      Result<SplitMessage> split = parts_.link.NextSplit(stack_.order(), kPoll);
      if (split.status().code() != StatusCode::kDeadlineExceeded) return split;
      DT_TRY_STATUS(Interrupted());
    }
  }

  Status Do(const TrainOrder& order, OrderDoneMessage& done) {
    DT_TRY(TrainDone trained, stack_.trainer().Train(order));
    stack_.OnTrained(trained.samples);
    done.result = std::move(trained);
    return OkStatus();
  }
  Status Do(const EvaluateOrder& order, OrderDoneMessage& done) {
    DT_TRY(done.result, stack_.trainer().Evaluate(order));
    return OkStatus();
  }
  // Tables on workers and dense parameters are the same in all teams, so the first one writes them;
  // asynchronous workers each count as the only one. Dense parameters are written when this is
  // answered, while training goes on.
  // If dense parameters are on servers, which save them with their optimizer state, this file is
  // for programs that read checkpoints.
  Status Do(const SaveOrder& order, OrderDoneMessage& done) {
    SaveDone saved;
    DT_TRY(const std::string folder, PathBelow(options_.job.checkpoint.dir, order.name));
    if (stack_.rank() == 0) DT_TRY_STATUS(stack_.trainer().PullDense());
    DT_TRY_STATUS(stack_.engine().FetchParameters());
    if (stack_.rank() == 0 || !options_.job.train.asynchronous()) {
      saved.writing = dense_saver_.Prepare(done.order, folder, stack_.engine().parameters());
    }
    if (stack_.rank() == 0) {
      DT_TRY(const std::vector<CheckpointFile> tables,
             stack_.tables().Save({folder, stack_.rank(), order.step, stack_.shards()}));
      saved.files.insert(saved.files.end(), tables.begin(), tables.end());
    }
    done.result = std::move(saved);
    return OkStatus();
  }
  Status Do(const LoadOrder& order, OrderDoneMessage& done) {
    if (order.begins) {
      DT_TRY_STATUS(stack_.engine().FetchParameters());
      DT_TRY_STATUS(stack_.engine().parameters().LoadParts(order.folder, order.taken));
      DT_TRY_STATUS(stack_.tables().LoadParts(order.folder, order.taken));
    } else if (!options_.job.train.asynchronous()) {
      DT_TRY_STATUS(stack_.engine().FetchParameters());
      Parameters& parameters = stack_.engine().parameters();
      DT_TRY_STATUS(options_.evaluates ? parameters.LoadWithoutState(order.folder)
                                       : parameters.Load(order.folder));
      DT_TRY_STATUS(stack_.tables().Load(order.folder, order.step));
    }
    stack_.OnLoaded(order.step, order.generation);
    done.result = LoadDone{};
    return OkStatus();
  }
  Status Do(const FinishOrder&, OrderDoneMessage& done) {
    DT_TRY_STATUS(stack_.engine().FetchParameters());
    LogTimings(stack_.engine(), stack_.other_engine());
    if (const RowCache* const cache = stack_.trainer().cache()) {
      LogInfo("worker.row_cache", {{"lookups", cache->lookups()}, {"hits", cache->hits()}});
    }
    DT_TRY_STATUS(stack_.trainer().PullDense());
    DT_TRY(std::vector<TableReport> tables, stack_.tables().Reports());
    done.result = FinishDone{.tables = std::move(tables),
                             .dense = stack_.engine().parameters().Sums(),
                             .stats = ReadProcessStats(&parts_.data_network)};
    return OkStatus();
  }

  void LogDelays() const {
    const StreamDataset* const stream = data_.train ? data_.train->stream() : nullptr;
    if (stream == nullptr) return;
    const StreamDelays delays = stream->delays();
    if (delays.count() == 0) return;
    LogInfo("stream.delays", {{"messages", delays.count()},
                              {"p50", delays.Quantile(0.5)},
                              {"p99", delays.Quantile(0.99)}});
  }

  const WorkerParts parts_;
  const WorkerOptions& options_;
  std::stop_token stop_;
  TaskPool pool_;
  Datasets data_;
  std::vector<PartitionRange> partitions_;  // Of the stream, when it was opened.
  WorkerStripes stripes_;
  StepTrace trace_;  // Used by everything below.

  ViewNumber view_;  // The last one that this worker has entered, or tried to.
  DenseSaver dense_saver_;
  TrainStack stack_;
  std::optional<StreamWatch> watch_;
};

}  // namespace

Status RunWorker(const WorkerParts& parts, std::stop_token stop) {
  return WorkerCore(parts).Run(std::move(stop));
}

}  // namespace dt::worker
