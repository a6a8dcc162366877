#include "worker/service/worker_core.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/config/dense_tables.h"
#include "common/control/control_link.h"
#include "common/control/read_process_stats.h"
#include "common/control/role_loop.h"
#include "common/plan/plan_codec.h"
#include "common/storage/path_below.h"
#include "ops/op_spec.h"
#include "worker/engine/device_kernels.h"
#include "worker/service/step_trace.h"
#include "worker/service/timings.h"
#include "worker/train/trainer.h"

namespace dt::worker {
namespace {

constexpr Duration kPoll = milliseconds(200);  // A wait notices a stop within this time.
// For answers of others; the scheduler notices a dead one earlier.
constexpr Duration kTimeout = seconds(60);
// A server that comes back has this long to read its checkpoint and log; requests to it are sent
// again after kResendToReturning.
constexpr Duration kRecovery = std::chrono::minutes(15);
constexpr Duration kResendToReturning = seconds(1);
// The scheduler needs so many leases to say who is lost, when it is there.
constexpr int kVerdictLeases = 3;

uint64_t Combined(uint64_t fingerprint, uint64_t next) {
  return MixBits(fingerprint ^ next) + next;
}

class WorkerCore {
 public:
  explicit WorkerCore(const WorkerParts& parts)
      : parts_(parts),
        options_(parts.options),
        pool_(options_.threads),
        trace_(options_.job, parts.link.welcome().id) {}

  Status Run(std::stop_token stop) {
    stop_ = stop;
    const Status worked = Work();
    trace_.Finish();
    return EndRole(parts_.link, worked, stop);
  }

 private:
  // Returns why the worker stops; never OK.
  Status Work() {
    DT_TRY_STATUS(parts_.devices);
    DT_TRY_STATUS(OpenData());
    parts_.link.Send(DataReady());
    return RunRole(parts_.link,
                   {.turn = [this] { return Ended(); },
                    .until_next_turn = [] { return kPoll; },
                    .take = [this](const ControlMessage& message) { return Take(message); }});
  }

  Status Take(const ControlMessage& message) {
    if (const auto* start = std::get_if<StartMessage>(&message)) {
      if (Status status = Start(*start); !status.ok()) {
        return PeerMayBeLost() ? ChangeView(status) : status;
      }
      parts_.link.Send(ReadyMessage{});
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
    if (!parts_.link.ended()) return OkStatus();
    const Status end = parts_.link.end_status();
    return end.ok() ? Cancelled("the job is complete") : end;
  }
  // Why every wait is to end: also as the workers change.
  Status Interrupted() const {
    DT_TRY_STATUS(Ended());
    return ViewIsOld() ? Cancelled("the workers of the job change") : OkStatus();
  }
  bool ViewIsOld() const { return parts_.link.newest_view() > view_; }

  bool WaitsForServers() const {
    const bool log = options_.job.checkpoint.durability == Durability::kLog;
    return (log || options_.job.cluster.replicas > 1) && !options_.one_process;
  }
  // Limit for answers of others. A server that keeps a log comes back, or others have its shards,
  // or the scheduler ends the job.
  Duration Timeout() const {
    return WaitsForServers() ? options_.job.cluster.wait_for_server + kRecovery : kTimeout;
  }

  // The mesh notices a lost worker at once, the scheduler after its lease; but only the scheduler
  // knows which one it is.
  bool PeerMayBeLost() const { return connecting_ || (team_ && team_->communicator->broken()); }

  // ---------------------------------------------------------- views

  // Gives up what is at hand, and goes on in the view that the scheduler forms, which may not be
  // announced yet. `why` is returned if none is in time.
  Status ChangeView(Status why, std::optional<View> next = {}) {
    const TimePoint deadline = parts_.clock.Now() + options_.job.cluster.scheduler_outage +
                               kVerdictLeases * parts_.link.welcome().lease;
    if (next) Report(*next);
    for (;;) {
      DT_TRY_STATUS(Ended());
      if (!next && parts_.clock.Now() >= deadline) return why;
      Result<ControlMessage> message = parts_.link.Receive(kPoll);
      if (message.status().code() == StatusCode::kDeadlineExceeded) continue;
      DT_TRY_STATUS(message.status());
      auto* const announced = std::get_if<NewViewMessage>(&*message);
      if (announced != nullptr && announced->view.number > view_) {
        next = std::move(announced->view);
        Report(*next);
      }
      const auto* const begins = std::get_if<ViewBeginsMessage>(&*message);
      if (begins == nullptr || !next || begins->view != next->number) continue;
      view_ = next->number;
      Status status = LeaveView(begins->step);
      if (status.ok()) status = EnterView(*next);
      if (status.ok() || !(ViewIsOld() || PeerMayBeLost())) return status;
      why = std::move(status);  // Another one is lost.
      next.reset();
    }
  }

  void Report(const View& next) {
    parts_.link.Send(ViewReportMessage{next.number, progress_.step, progress_.entered.has_value()});
  }

  // Keeps the values; everything else is of the old view.
  Status LeaveView(Step complete) {
    client_->BeginView(view_);
    if (trainer_ == nullptr) return OkStatus();
    DT_TRY_STATUS(trainer_->Settle(complete));
    DT_TRY_STATUS(engine_->FetchParameters());
    plan_ = engine_->plan();
    values_ = std::move(engine_->parameters().arrays());
    trainer_.reset();
    engine_.reset();
    team_.reset();
    return OkStatus();
  }

  Status EnterView(const View& view) {
    DT_TRY_STATUS(Connect(view, plan_.devices));
    DT_TRY_STATUS(OpenEngine(plan_));
    Parameters& parameters = engine_->parameters();
    for (size_t i = 0; i < values_.size(); ++i) {
      std::ranges::copy(values_[i].values, parameters.arrays()[i].values.begin());
    }
    values_.clear();
    OpenTrainer(view);
    LogInfo("worker.view", {{"view", view.number.value()},
                            {"rank", rank_},
                            {"workers", view.workers.size()},
                            {"step", progress_.step}});
    return OkStatus();
  }

  // ---------------------------------------------------------- before the first order

  Status OpenData() {
    const DataConfig& config = options_.job.data;
    DT_TRY(data_.train, Dataset::Open(config, Split::kTrain, pool_));
    DT_TRY_STATUS(Interrupted());
    DT_TRY(data_.valid, Dataset::Open(config, Split::kValid, pool_));
    DT_TRY_STATUS(Interrupted());
    DT_TRY(data_.test, Dataset::Open(config, Split::kTest, pool_));
    return OkStatus();
  }

  DataReadyMessage DataReady() const {
    DataReadyMessage ready;
    ready.train_rows = data_.train->rows();
    ready.valid_rows = data_.valid->rows();
    ready.test_rows = data_.test->rows();
    ready.columns = data_.train->columns();
    for (const Dataset* data : {data_.train.get(), data_.valid.get(), data_.test.get()}) {
      ready.rows_skipped += data->open_stats().rows_skipped;
      ready.fingerprint = Combined(ready.fingerprint, data->fingerprint());
    }
    return ready;
  }

  static Result<Plan> PlanIn(const StartMessage& start) {
    if (start.plans.size() != 1) {
      return Internal("the scheduler sent {} plans to this worker", start.plans.size());
    }
    return DecodePlan(std::as_bytes(std::span(start.plans.front().bytes)), TraitsOf);
  }

  Status OpenEngine(Plan plan) {
    const bool on_accelerator = std::ranges::any_of(
        plan.graph.values, [](const Value& value) { return value.device == Device::kGpu; });
    Accelerator* accelerator =
        options_.accelerator != nullptr ? options_.accelerator : accelerator_.get();
    if (on_accelerator && accelerator == nullptr) {
      DT_TRY(accelerator_, OpenAccelerator(options_.job.cluster, [this] {
               return options_.skip_delays.stop_requested() || !Interrupted().ok();
             }));
      accelerator = accelerator_.get();
    }
    if (tables_ == nullptr) {
      DT_TRY(tables_, WorkerTables::Create(plan, options_.job, accelerator));
    }
    const Engine::Options options{.pool = pool_,
                                  .accelerator = accelerator,
                                  .tables = tables_.get(),
                                  .team = options_.job.train.asynchronous() ? nullptr : &*team_,
                                  .timeline = trace_.timeline(),
                                  .overlap = options_.job.parallel.overlap,
                                  .comm_thread = options_.comm_thread};
    const bool all_on_servers = std::ranges::all_of(
        plan.graph.tables, [](const TableUse& table) { return table.store == kNone; });
    // Without an accelerator, two steps at once would just share the processors, and each would see
    // older rows.
    const bool two_lanes = options.overlap && options_.job.train.asynchronous() && on_accelerator;
    if (two_lanes && all_on_servers) {
      DT_TRY(other_engine_, Engine::Create(plan, options));
    }
    DT_TRY(engine_, Engine::Create(std::move(plan), options));
    return OkStatus();
  }

  Status Start(const StartMessage& start) {
    DT_TRY(Plan plan, PlanIn(start));
    view_ = start.view.number;
    DT_TRY_STATUS(Connect(start.view, plan.devices));
    DT_TRY_STATUS(OpenEngine(std::move(plan)));
    DT_TRY(client_,
           PsClient::Open(
               start.view,
               {.network = &parts_.data_network,
                .requests = RequestOptions(),
                .interrupted = [this] { return Interrupted(); },
                .newer_map = [this](MapVersion version) { return parts_.maps.NewerThan(version); },
                .unreachable =
                    [this](bool waiting, const std::vector<ProcessId>& servers) {
                      heartbeat_.waiting = waiting;
                      heartbeat_.unreachable = servers;
                      parts_.link.SetProgress(heartbeat_);
                    },
                .clock = &parts_.clock}));
    OpenTrainer(start.view);
    LogInfo("worker.started", {{"rank", rank_},
                               {"workers", start.view.workers.size()},
                               {"train_rows", data_.train->rows()},
                               {"dense_bytes", engine_->parameters().bytes()}});
    return OkStatus();
  }

  void OpenTrainer(const View& view) {
    std::function<Result<SplitMessage>()> next_split;
    if (options_.job.train.staleness == kUnboundedStaleness) {
      next_split = [this] { return NextSplit(); };
    }
    trainer_ = std::make_unique<Trainer>(
        Trainer::Options{.job = options_.job,
                         .data = data_,
                         .client = *client_,
                         .engine = *engine_,
                         .other_engine = other_engine_.get(),
                         .team = *team_,
                         .self = parts_.link.welcome().id,
                         .predictions_path = options_.predictions_path,
                         .rank = rank_,
                         .ranks = static_cast<uint32_t>(view.workers.size()),
                         .progress = progress_,
                         .order = order_,
                         .next_split = std::move(next_split),
                         .interrupted = [this] { return Interrupted(); },
                         .report =
                             [this](Step step, uint64_t samples) {
                               heartbeat_.step = step;
                               heartbeat_.samples = samples_before_ + samples;
                               tables_->PutSizes(heartbeat_.tables);
                               parts_.link.SetProgress(heartbeat_);
                               trace_.StepsDone(step);
                             },
                         .timeline = trace_.timeline(),
                         .clock = &parts_.clock});
  }

  RequestBook::Options RequestOptions() {
    const Graph& graph = engine_->plan().graph;
    RequestBook::Options requests{.wire_tables = WireTables(graph, options_.job.model.tables),
                                  .timeout = Timeout(),
                                  .lease = options_.job.cluster.lease,
                                  .timeline = trace_.timeline()};
    if (WaitsForServers()) requests.resend_after = kResendToReturning;
    for (size_t t = 0; t < graph.tables.size(); ++t) {
      const TableConfig& table = options_.job.model.tables[requests.wire_tables[t]];
      // Otherwise the table is on this worker.
      const bool travels = graph.tables[t].store == kNone;
      requests.tables.push_back({travels ? table.dim : 0, table.wire});
    }
    auto wire = static_cast<uint32_t>(options_.job.model.tables.size());
    for (const TableConfig& table : DenseTables(options_.job)) {
      requests.wire_tables.push_back(wire++);
      requests.tables.push_back({table.dim, table.wire});
    }
    return requests;
  }

  Status Connect(const View& view, uint32_t team_size) {
    const std::vector<ProcessId>& workers = view.workers;
    const auto self = std::ranges::find(workers, parts_.link.welcome().id);
    if (self == workers.end()) {
      return Internal("the scheduler started a job without this worker in it");
    }
    const MeshLimits limits{.timeout = Timeout(), .interrupted = [this] { return Interrupted(); }};
    rank_ = static_cast<uint32_t>(self - workers.begin());
    // Asynchronous workers exchange nothing with one another.
    if (workers.size() == 1 || options_.job.train.asynchronous()) {
      team_.emplace(std::move(MakeMemoryMesh(1, limits).front()));
      return OkStatus();
    }
    connecting_ = true;
    DT_TRY(auto mesh, parts_.connect(view, rank_, limits));
    connecting_ = false;
    team_.emplace(std::move(mesh), team_size);
    if (!parts_.connect_cards) return OkStatus();
    team_->connect_cards = parts_.connect_cards(view, rank_, WithCancel(*team_->mesh, limits));
    return OkStatus();
  }

  // ---------------------------------------------------------- orders

  Status CarryOut(const OrderMessage& order) {
    if (trainer_ == nullptr) return Internal("the scheduler gave an order before the start");
    if (order_.number != order.number) order_ = {.number = order.number};
    OrderDoneMessage done{.order = order.number, .result = {}};
    Status status = std::visit([&](const auto& what) { return Do(what, done); }, order.what);
    if (status.ok()) {
      parts_.link.Send(std::move(done));
      return status;
    }
    // A server that knows of a newer view refuses what belongs to this one.
    const bool refused = status.code() == StatusCode::kFailedPrecondition;
    if (!ViewIsOld() && !PeerMayBeLost() && !refused) return status;
    return ChangeView(std::move(status));
  }

  // Called on the reader's thread, which lives within one order.
  Result<SplitMessage> NextSplit() {
    for (;;) {
      Result<SplitMessage> split = parts_.link.NextSplit(order_.number, kPoll);
      if (split.status().code() != StatusCode::kDeadlineExceeded) return split;
      DT_TRY_STATUS(Interrupted());
    }
  }

  Status Do(const TrainOrder& order, OrderDoneMessage& done) {
    DT_TRY(TrainDone trained, trainer_->Train(order));
    samples_before_ += trained.samples;
    done.result = std::move(trained);
    return OkStatus();
  }
  Status Do(const EvaluateOrder& order, OrderDoneMessage& done) {
    DT_TRY(done.result, trainer_->Evaluate(order));
    return OkStatus();
  }
  // Tables on workers and dense parameters are the same in all teams, so the first one writes them;
  // asynchronous workers each count as the only one.
  // If dense parameters are on servers, which save them with their optimizer state, this file is
  // for programs that read checkpoints.
  Status Do(const SaveOrder& order, OrderDoneMessage& done) {
    SaveDone saved;
    DT_TRY(const std::string folder, PathBelow(options_.job.checkpoint.dir, order.name));
    if (rank_ == 0) DT_TRY_STATUS(trainer_->PullDense());
    DT_TRY_STATUS(engine_->FetchParameters());
    if (rank_ == 0 || !options_.job.train.asynchronous()) {
      DT_TRY(std::optional<CheckpointFile> file, engine_->parameters().Save(folder));
      if (file) saved.files.push_back(*std::move(file));
    }
    if (rank_ == 0) {
      DT_TRY(const std::vector<CheckpointFile> tables,
             tables_->Save({folder, rank_, order.step, client_->shards()}));
      saved.files.insert(saved.files.end(), tables.begin(), tables.end());
    }
    done.result = std::move(saved);
    return OkStatus();
  }
  Status Do(const LoadOrder& order, OrderDoneMessage& done) {
    if (!options_.job.train.asynchronous()) {
      DT_TRY_STATUS(engine_->FetchParameters());
      Parameters& parameters = engine_->parameters();
      DT_TRY_STATUS(options_.evaluates ? parameters.LoadWithoutState(order.folder)
                                       : parameters.Load(order.folder));
      DT_TRY_STATUS(tables_->Load(order.folder, order.step));
    }
    progress_ = {.step = order.step};
    trainer_->ForgetRows();
    client_->SetGeneration(order.generation);
    done.result = LoadDone{};
    return OkStatus();
  }
  Status Do(const FinishOrder&, OrderDoneMessage& done) {
    DT_TRY_STATUS(engine_->FetchParameters());
    LogTimings(*engine_, other_engine_.get());
    if (const RowCache* const cache = trainer_->cache()) {
      LogInfo("worker.row_cache", {{"lookups", cache->lookups()}, {"hits", cache->hits()}});
    }
    DT_TRY_STATUS(trainer_->PullDense());
    DT_TRY(std::vector<TableReport> tables, tables_->Reports());
    done.result = FinishDone{.tables = std::move(tables),
                             .dense = engine_->parameters().Sums(),
                             .stats = ReadProcessStats(&parts_.data_network)};
    return OkStatus();
  }

  const WorkerParts parts_;
  const WorkerOptions& options_;
  std::stop_token stop_;
  TaskPool pool_;
  Datasets data_;
  StepTrace trace_;  // Used by everything below.

  // Outlive views.
  TrainProgress progress_;
  OrderProgress order_;  // Of the current order.
  ViewNumber view_;
  // From one view to the next.
  Plan plan_;
  std::vector<Parameters::Array> values_;

  // Set by Start. Each object uses those before it.
  uint32_t rank_ = 0;
  bool connecting_ = false;  // To the other workers, at this moment.
  std::optional<TeamLink> team_;
  std::unique_ptr<Accelerator> accelerator_;  // Null: the plan needs none, or the options name one.
  std::unique_ptr<WorkerTables> tables_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Engine> other_engine_;  // See Trainer::Options; null: none.
  std::unique_ptr<PsClient> client_;
  std::unique_ptr<Trainer> trainer_;
  uint64_t samples_before_ = 0;  // Trained by orders that have ended.
  HeartbeatMessage heartbeat_;   // As it was reported last.
};

}  // namespace

Status RunWorker(const WorkerParts& parts, std::stop_token stop) {
  return WorkerCore(parts).Run(std::move(stop));
}

}  // namespace dt::worker
