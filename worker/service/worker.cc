#include "worker/service/worker.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/config/dense_tables.h"
#include "common/control/control_link.h"
#include "common/plan/plan_codec.h"
#include "common/storage/place_below.h"
#include "ops/op_spec.h"
#include "worker/engine/device_kernels.h"
#include "worker/service/control_rendezvous.h"
#include "worker/service/step_trace.h"
#include "worker/service/timings.h"
#include "worker/train/trainer.h"

namespace dt::worker {
namespace {

constexpr Duration kPoll = milliseconds(200);  // How soon a wait notices a stop.
constexpr Duration kPatience =
    seconds(60);  // With others; the scheduler notices a dead one before.
// For a server that comes back: to read its checkpoint and log; and how soon it is asked again.
constexpr Duration kRecovery = std::chrono::minutes(15);
constexpr Duration kResendToReturning = seconds(1);
constexpr Duration kVerdictMax = seconds(8);  // For the scheduler to say who is lost.

uint64_t Combined(uint64_t fingerprint, uint64_t next) {
  return MixBits(fingerprint ^ next) + next;
}

class WorkerRole : public Worker {
 public:
  WorkerRole(const WorkerOptions& options, std::unique_ptr<ControlLink> link, Status devices)
      : options_(options),
        devices_(std::move(devices)),
        pool_(options.threads),
        link_(std::move(link)),
        trace_(options.job, link_->welcome().id) {}

  Status Run(std::stop_token stop) override {
    stop_ = stop;
    const Status worked = Work();
    trace_.Finish();
    if (PeerMayBeLost()) AwaitVerdict();
    return EndRole(*link_, worked, stop);
  }

 private:
  Network& DataNetwork() const {
    return options_.data_network != nullptr ? *options_.data_network : options_.network;
  }

  // Ends with what stops the worker; never OK.
  Status Work() {
    DT_TRY_STATUS(devices_);
    DT_TRY_STATUS(OpenData());
    link_->Send(DataReady());
    for (;;) {
      DT_TRY_STATUS(Interrupted());
      Result<ControlMessage> message = link_->Receive(kPoll);
      if (!message.ok()) {
        if (message.status().code() == StatusCode::kDeadlineExceeded) continue;
        return message.status();
      }
      if (auto* start = std::get_if<StartMessage>(&*message)) {
        DT_TRY_STATUS(Start(*start));
        link_->Send(ReadyMessage{});
      } else if (auto* order = std::get_if<OrderMessage>(&*message)) {
        DT_TRY_STATUS(CarryOut(*order));
      } else {
        LogWarn("worker.unexpected_message", {{"message", NameOf(*message)}});
      }
    }
  }

  Status Interrupted() const {
    if (stop_.stop_requested()) return Cancelled("stopped on request");
    if (!link_->ended()) return OkStatus();
    const Status end = link_->end_status();
    return end.ok() ? Cancelled("the job is complete") : end;
  }

  bool WaitsForServers() const {
    return options_.job.checkpoint.durability == Durability::kLog && !options_.one_process;
  }
  // For answers of others. A server that keeps a log comes back, or the scheduler ends the job.
  Duration Patience() const {
    return WaitsForServers() ? options_.job.cluster.wait_for_server + kRecovery : kPatience;
  }

  // The mesh notices a lost worker at once, the scheduler a lease later; but it knows which one.
  bool PeerMayBeLost() const {
    return connecting_ || (collective_ != nullptr && collective_->broken());
  }
  void AwaitVerdict() {
    const TimePoint deadline =
        SystemClock().Now() + std::min<Duration>(kVerdictMax, 2 * link_->welcome().lease);
    while (Interrupted().ok() && SystemClock().Now() < deadline) {
      link_->Receive(kPoll).IgnoreError();  // Orders are of no use any more.
    }
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

  Status OpenEngine(std::string_view bytes) {
    DT_TRY(Plan plan, DecodePlan(std::as_bytes(std::span(bytes.data(), bytes.size())), TraitsOf));
    const bool on_accelerator = std::ranges::any_of(
        plan.graph.values, [](const Value& value) { return value.device == Device::kGpu; });
    Accelerator* accelerator = options_.accelerator;
    if (on_accelerator && accelerator == nullptr) {
      DT_TRY(accelerator_, OpenAccelerator(options_.job.cluster, [this] {
               return options_.hurry.stop_requested() || !Interrupted().ok();
             }));
      accelerator = accelerator_.get();
    }
    DT_TRY(tables_, WorkerTables::Create(plan, options_.job, accelerator));
    const Engine::Options options{.pool = pool_,
                                  .accelerator = accelerator,
                                  .tables = tables_.get(),
                                  .timeline = trace_.timeline(),
                                  .overlap = options_.job.parallel.overlap};
    const bool all_on_servers = std::ranges::all_of(
        plan.graph.tables, [](const TableUse& table) { return table.store == kNone; });
    // On processors alone two steps at once would only share them, and see less of one another.
    const bool two_lanes = options.overlap && options_.job.train.asynchronous() && on_accelerator;
    if (two_lanes && all_on_servers) {
      DT_TRY(other_engine_, Engine::Create(plan, options));
    }
    DT_TRY(engine_, Engine::Create(std::move(plan), options));
    return OkStatus();
  }

  Status Start(const StartMessage& start) {
    DT_TRY_STATUS(CheckShardMap(start.map));
    DT_TRY_STATUS(OpenEngine(start.plan));
    routes_ = std::make_shared<const Routes>(MakeRoutes(start.map));
    stamp_ = {
        .generation = start.generation, .term = link_->welcome().term, .map = start.map.version};
    const Graph& graph = engine_->plan().graph;
    PsClient::Options client;
    client.network = &DataNetwork();
    client.wire_tables = WireTables(graph, options_.job.model.tables);
    for (size_t t = 0; t < graph.tables.size(); ++t) {
      const TableConfig& table = options_.job.model.tables[client.wire_tables[t]];
      const bool travels = graph.tables[t].store == kNone;  // Else it is on this worker.
      client.tables.push_back({travels ? table.dim : 0, table.wire});
    }
    auto wire = static_cast<uint32_t>(options_.job.model.tables.size());
    for (const TableConfig& table : DenseTables(options_.job)) {
      client.wire_tables.push_back(wire++);
      client.tables.push_back({table.dim, table.wire});
    }
    client.patience = Patience();
    if (WaitsForServers()) client.resend_after = kResendToReturning;
    client.interrupted = [this] { return Interrupted(); };
    client.timeline = trace_.timeline();
    DT_TRY(client_, PsClient::Open(routes_, stamp_, std::move(client)));
    DT_TRY_STATUS(ConnectMesh(start));
    std::function<Result<SplitMessage>()> next_split;
    if (options_.job.train.staleness == kUnboundedStaleness) {
      next_split = [this] { return NextSplit(); };
    }
    trainer_ = std::make_unique<Trainer>(
        Trainer::Options{.job = options_.job,
                         .data = data_,
                         .routes = routes_,
                         .client = *client_,
                         .engine = *engine_,
                         .other_engine = other_engine_.get(),
                         .collective = *collective_,
                         .self = link_->welcome().id,
                         .predictions_path = options_.predictions_path,
                         .rank = rank_,
                         .ranks = static_cast<uint32_t>(start.workers.size()),
                         .next_split = std::move(next_split),
                         .interrupted = [this] { return Interrupted(); },
                         .progress =
                             [this](Step step, uint64_t samples) {
                               progress_.step = step;
                               progress_.samples = samples_before_ + samples;
                               tables_->PutSizes(progress_.tables);
                               link_->SetProgress(progress_);
                               trace_.StepsDone(step);
                             },
                         .timeline = trace_.timeline()});
    LogInfo("worker.started", {{"rank", rank_},
                               {"workers", start.workers.size()},
                               {"train_rows", data_.train->rows()},
                               {"dense_bytes", engine_->parameters().bytes()}});
    return OkStatus();
  }

  Status ConnectMesh(const StartMessage& start) {
    const auto self = std::ranges::find(start.workers, link_->welcome().id);
    if (self == start.workers.end()) {
      return Internal("the scheduler started a job without this worker in it");
    }
    const MeshLimits limits{.patience = Patience(),
                            .interrupted = [this] { return Interrupted(); }};
    rank_ = static_cast<uint32_t>(self - start.workers.begin());
    // Workers that run apart have nothing to say to one another.
    if (start.workers.size() == 1 || options_.job.train.asynchronous()) {
      collective_ = std::make_unique<Collective>(std::move(MakeMemoryMesh(1, limits).front()));
      return OkStatus();
    }
    ControlRendezvous rendezvous(*link_);
    connecting_ = true;
    DT_TRY(auto mesh,
           ConnectGlooMesh(rendezvous, {.rank = rank_,
                                        .size = static_cast<uint32_t>(start.workers.size()),
                                        .host = options_.host,
                                        .prefix = fmt::format("mesh/{}", start.generation.value()),
                                        .limits = limits}));
    connecting_ = false;
    collective_ = std::make_unique<Collective>(std::move(mesh));
    return OkStatus();
  }

  // ---------------------------------------------------------- orders

  Status CarryOut(const OrderMessage& order) {
    if (trainer_ == nullptr) return Internal("the scheduler gave an order before the start");
    order_ = order.number;
    OrderDoneMessage done{.order = order.number, .result = {}};
    DT_TRY_STATUS(std::visit([&](const auto& what) { return Do(what, done); }, order.what));
    link_->Send(std::move(done));
    return OkStatus();
  }

  // On the reader's thread, which lives within one order.
  Result<SplitMessage> NextSplit() {
    for (;;) {
      Result<SplitMessage> split = link_->NextSplit(order_, kPoll);
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
  // Tables here and dense parameters are the same everywhere: rank 0 writes them. If the latter
  // live on servers, which save them with their optimizer state, the file is for
  // those who read checkpoints.
  Status Do(const SaveOrder& order, OrderDoneMessage& done) {
    SaveDone saved;
    if (rank_ == 0) {
      DT_TRY(const std::string folder, PlaceBelow(options_.job.checkpoint.dir, order.name));
      DT_TRY_STATUS(trainer_->PullDense());
      DT_TRY_STATUS(engine_->FetchParameters());
      DT_TRY(CheckpointFile file, engine_->parameters().Save(folder));
      saved.files.push_back(std::move(file));
      DT_TRY(const std::vector<CheckpointFile> tables,
             tables_->Save({folder, rank_, order.step, routes_->shards()}));
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
    trainer_->ForgetRows();
    stamp_.generation = order.generation;
    client_->SetStamp(stamp_);
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
                             .dense_checksum = engine_->parameters().Checksum(),
                             .stats = ReadProcessStats(&DataNetwork())};
    return OkStatus();
  }

  const WorkerOptions options_;
  const Status devices_;  // Whether what cluster.devices asks for is there.
  std::stop_token stop_;
  TaskPool pool_;
  std::unique_ptr<ControlLink> link_;
  Datasets data_;
  StepTrace trace_;  // Of all that is below.

  // From Start on. Each uses those before it.
  std::unique_ptr<Accelerator> accelerator_;  // Null: the plan needs none, or it is given.
  std::unique_ptr<WorkerTables> tables_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Engine> other_engine_;  // See Trainer::Options; null: none.
  std::shared_ptr<const Routes> routes_;
  Stamp stamp_;
  std::unique_ptr<PsClient> client_;
  uint32_t rank_ = 0;
  bool connecting_ = false;  // To the other workers.
  std::unique_ptr<Collective> collective_;
  std::unique_ptr<Trainer> trainer_;
  uint64_t order_ = 0;           // The one that is carried out.
  uint64_t samples_before_ = 0;  // Trained by orders that are done.
  HeartbeatMessage progress_;    // As it was told last.
};

Result<std::optional<DeviceInfo>> DeviceOf(const WorkerOptions& options) {
  if (options.accelerator != nullptr) return options.accelerator->info();
  return FindAcceleratorWithKernels(options.job.cluster);
}

}  // namespace

Result<std::unique_ptr<Worker>> Worker::Open(const WorkerOptions& options) {
  JoinMessage join;
  join.role = Role::kWorker;
  join.job_fingerprint = options.job.fingerprint;
  join.id = options.id;
  if (!options.one_process) join.address = options.host;
  const Result<std::optional<DeviceInfo>> accelerator = DeviceOf(options);
  join.devices = {HostDevice()};
  if (accelerator.ok() && accelerator->has_value()) join.devices.push_back(**accelerator);
  // One that is asked for and absent ends the job, but its scheduler shall hear why.
  Status absent = accelerator.status();
  if (!absent.ok() && options.job.parallel.fall_back_to_cpu) {
    LogWarn("worker.no_accelerator", {{"why", MessageOf(absent)}});
    absent = OkStatus();
  }
  ControlLink::Options link_options{.network = &options.network,
                                    .traffic = options.data_network,
                                    .scheduler = options.scheduler,
                                    .join = std::move(join),
                                    .stop = options.stop,
                                    .scheduler_outage = options.job.cluster.scheduler_outage};
  DT_TRY(auto link, ControlLink::Open(link_options));
  if (!options.one_process) SetLogProcess("worker", link->welcome().id.value());
  return std::make_unique<WorkerRole>(options, std::move(link), std::move(absent));
}

}  // namespace dt::worker
