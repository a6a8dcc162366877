#include "worker/service/train_stack.h"

#include <algorithm>

#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/config/dense_tables.h"
#include "common/plan/plan_codec.h"
#include "ops/op_spec.h"
#include "worker/data/stream/stream_dataset.h"
#include "worker/engine/device_kernels.h"
#include "worker/service/share_state.h"

namespace dt::worker {
namespace {

// For answers of others; the scheduler notices a dead one earlier.
constexpr Duration kTimeout = seconds(60);
// A server that comes back has this long to read its checkpoint and log; requests to it are sent
// again after kResendToReturning.
constexpr Duration kRecovery = std::chrono::minutes(15);
constexpr Duration kResendToReturning = seconds(1);

constexpr SpanLabel kMakeReady{Track::kTrain, "make ready"};
constexpr SpanLabel kEnterView{Track::kTrain, "enter a view"};
constexpr SpanLabel kConnect{Track::kTrain, "connections to the other workers", kWait};

Result<Plan> PlanIn(const StartMessage& start) {
  if (start.plans.size() != 1) {
    return Internal("the scheduler sent {} plans to this worker", start.plans.size());
  }
  return DecodePlan(std::as_bytes(std::span(start.plans.front().bytes)), TraitsOf);
}

bool IsOnAccelerator(const Value& value) { return value.device == Device::kGpu; }

}  // namespace

Status TrainStack::Start(const StartMessage& start) {
  const TimelineSpan span(options_.trace.timeline(), kMakeReady, kNoStep);
  DT_TRY(Plan plan, PlanIn(start));
  steps_before_ = start.steps_before;
  stripe_rows_ = start.stripe_rows;
  // Asynchronous workers have no values of their own.
  newcomer_ = !asynchronous() &&
              std::ranges::count(start.view.workers, options_.parts.link.welcome().id) == 0;
  DT_TRY_STATUS(Connect(start.view, plan.devices));
  DT_TRY_STATUS(OpenEngine(std::move(plan)));
  DT_TRY_STATUS(OpenClient(start.view));
  OpenTrainer(start.view);
  LogInfo("worker.started", {{"rank", rank_},
                             {"workers", start.view.workers.size()},
                             {"train_rows", options_.data.train->rows()},
                             {"dense_bytes", engine_->parameters().bytes()}});
  return OkStatus();
}

void TrainStack::BeginOrder(uint64_t number) {
  if (order_.number == number) return;
  if (order_.begun && asynchronous()) left_[order_.number] = std::move(order_);
  order_ = {.number = number};
  if (const auto left = left_.extract(number)) order_ = std::move(left.mapped());
}

void TrainStack::OnTrained(uint64_t samples) {
  samples_before_ += samples;
  // If it comes again, it is for what a lost worker has not done of it.
  if (asynchronous()) order_ = {};
}

void TrainStack::OnLoaded(Step step, Generation generation) {
  progress_ = {.step = step};
  left_.clear();
  trainer_->ForgetRows();
  client_->SetGeneration(generation);
}

// ------------------------------------------------------------ views

Status TrainStack::BeginView(const View& view, const ViewBeginsMessage& begins) {
  const TimelineSpan span(options_.trace.timeline(), kEnterView, kNoStep);
  DT_TRY_STATUS(LeaveView(view, begins.step));
  return EnterView(view, begins.newcomers);
}

// Keeps the values; everything else is of the old view. There is no trainer if the view before did
// not come about.
Status TrainStack::LeaveView(const View& next, Step complete) {
  if (client_ != nullptr) {
    client_->BeginView(next.number);
    client_->SetGeneration(next.generation);
  }
  if (trainer_ != nullptr) plan_ = engine_->plan();
  if (trainer_ != nullptr) {
    if (!asynchronous()) DT_TRY_STATUS(trainer_->Settle(complete));
    DT_TRY_STATUS(engine_->FetchParameters());
    values_ = std::move(engine_->parameters().arrays());
  }
  if (newcomer_) progress_ = {.step = complete};
  trainer_.reset();
  engine_.reset();
  other_engine_.reset();
  team_.reset();
  return OkStatus();
}

Status TrainStack::EnterView(const View& view, std::span<const ProcessId> newcomers) {
  DT_TRY_STATUS(Connect(view, plan_.devices));
  DT_TRY_STATUS(OpenEngine(plan_));
  Parameters& parameters = engine_->parameters();
  for (size_t i = 0; i < values_.size(); ++i) {
    std::ranges::copy(values_[i].values, parameters.arrays()[i].values.begin());
  }
  if (!newcomers.empty()) DT_TRY_STATUS(ShareState(view, newcomers));
  values_.clear();
  OpenTrainer(view);
  first_of_view_ = true;
  LogInfo("worker.view", {{"view", view.number.value()},
                          {"rank", rank_},
                          {"workers", view.workers.size()},
                          {"step", progress_.step}});
  return OkStatus();
}

// From the first worker that has the job's state to those that have just joined.
Status TrainStack::ShareState(const View& view, std::span<const ProcessId> newcomers) {
  RankGroup group;
  std::optional<uint32_t> from;
  for (uint32_t rank = 0; rank < view.workers.size(); ++rank) {
    const bool is_new = std::ranges::count(newcomers, view.workers[rank]) > 0;
    if (!is_new && from.has_value()) continue;
    if (!is_new) from = static_cast<uint32_t>(group.ranks.size());
    group.ranks.push_back(rank);
  }
  if (!from) return Internal("no worker of view {} has the job's state", view.number.value());
  if (std::ranges::count(group.ranks, rank_) == 0) return OkStatus();
  PassFailpoint(newcomer_ ? "take state" : "share state", view.number.value());
  const CollectiveCall call{.group = group, .name = "share state", .step = progress_.step};
  connecting_ = true;
  DT_TRY_STATUS(
      worker::ShareState({*team_->communicator, call, *from}, {.parameters = engine_->parameters(),
                                                               .tables = *tables_,
                                                               .order = order_,
                                                               .samples_before = samples_before_,
                                                               .now = options_.parts.clock.Now()}));
  connecting_ = false;
  newcomer_ = false;
  return OkStatus();
}

// ------------------------------------------------------------ parts

bool TrainStack::WaitsForServers() const {
  const bool log = job().checkpoint.durability == Durability::kLog;
  return (log || job().cluster.replicas > 1) && !options_.parts.options.one_process;
}

// Limit for answers of others. A server that keeps a log comes back, or others have its shards, or
// the scheduler ends the job.
Duration TrainStack::Timeout() const {
  return WaitsForServers() ? job().cluster.wait_for_server + kRecovery : kTimeout;
}

Status TrainStack::Connect(const View& view, uint32_t team_size) {
  const WorkerParts& parts = options_.parts;
  const std::vector<ProcessId>& workers = view.workers;
  const auto self = std::ranges::find(workers, parts.link.welcome().id);
  const bool joins_later = self == workers.end();
  const MeshLimits limits{.timeout = Timeout(),
                          .interrupted = options_.interrupted,
                          .awaits = [&parts](uint32_t rank, TimePoint since) {
                            parts.activity.AwaitPeer(parts.clock.Now(), rank, since);
                          }};
  parts.activity.BeginView(view);
  rank_ = joins_later ? 0 : static_cast<uint32_t>(self - workers.begin());
  // Asynchronous workers exchange nothing with one another.
  if (joins_later || workers.size() == 1 || asynchronous()) {
    connecting_ = false;
    team_.emplace(std::move(MakeMemoryMesh(1, limits).front()));
    return OkStatus();
  }
  connecting_ = true;
  const TimelineSpan span(options_.trace.timeline(), kConnect, kNoStep);
  DT_TRY(auto mesh, parts.connect(view, rank_, limits));
  connecting_ = false;
  team_.emplace(std::move(mesh), team_size);
  if (!parts.connect_cards) return OkStatus();
  team_->connect_cards = parts.connect_cards(view, rank_, WithCancel(*team_->mesh, limits));
  return OkStatus();
}

Status TrainStack::OpenEngine(Plan plan) {
  const WorkerOptions& own = options_.parts.options;
  const bool on_accelerator = std::ranges::any_of(plan.graph.values, IsOnAccelerator);
  Accelerator* accelerator = own.accelerator != nullptr ? own.accelerator : accelerator_.get();
  if (on_accelerator && accelerator == nullptr) {
    DT_TRY(accelerator_, OpenAccelerator(job().cluster, [this, &own] {
             return own.skip_delays.stop_requested() || !options_.interrupted().ok();
           }));
    accelerator = accelerator_.get();
  }
  if (tables_ == nullptr) {
    DT_TRY(tables_, WorkerTables::Create(plan, job(), steps_before_, accelerator));
  }
  const Engine::Options options{.pool = options_.pool,
                                .accelerator = accelerator,
                                .tables = tables_.get(),
                                .team = asynchronous() ? nullptr : &*team_,
                                .timeline = options_.trace.timeline(),
                                .steps_before = steps_before_,
                                .overlap = job().parallel.overlap,
                                .comm_thread = own.more_threads};
  const bool all_on_servers = std::ranges::all_of(
      plan.graph.tables, [](const TableUse& table) { return table.store == kNone; });
  // Without an accelerator, two steps at once would just share the processors, and each would see
  // older rows.
  const bool two_lanes = options.overlap && asynchronous() && on_accelerator;
  if (two_lanes && all_on_servers) {
    DT_TRY(other_engine_, Engine::Create(plan, options));
  }
  DT_TRY(engine_, Engine::Create(std::move(plan), options));
  return OkStatus();
}

Status TrainStack::OpenClient(const View& view) {
  const WorkerParts& parts = options_.parts;
  const auto unreachable = [this](bool waiting, const std::vector<ProcessId>& servers) {
    heartbeat_.waiting = waiting;
    heartbeat_.unreachable = servers;
    options_.parts.link.SetProgress(heartbeat_);
  };
  const auto newer_map = [&parts](MapVersion version) { return parts.latest.NewerThan(version); };
  DT_TRY(client_, PsClient::Open(view, {.network = &parts.data_network,
                                        .requests = RequestOptions(),
                                        .interrupted = options_.interrupted,
                                        .newer_map = newer_map,
                                        .unreachable = unreachable,
                                        .clock = &parts.clock}));
  return OkStatus();
}

RequestBook::Options TrainStack::RequestOptions() const {
  const Graph& graph = engine_->plan().graph;
  RequestBook::Options requests{.wire_tables = WireTables(graph, job().model.tables),
                                .timeout = Timeout(),
                                .lease = job().cluster.lease,
                                .timeline = options_.trace.timeline()};
  if (WaitsForServers()) requests.resend_after = kResendToReturning;
  for (size_t t = 0; t < graph.tables.size(); ++t) {
    const TableConfig& table = job().model.tables[requests.wire_tables[t]];
    // Otherwise the table is on this worker.
    const bool travels = graph.tables[t].store == kNone;
    requests.tables.push_back({travels ? table.dim : 0, table.wire});
  }
  auto wire = static_cast<uint32_t>(job().model.tables.size());
  for (const TableConfig& table : DenseTables(job())) {
    requests.wire_tables.push_back(wire++);
    requests.tables.push_back({table.dim, table.wire});
  }
  return requests;
}

// How long a change of the workers has kept steps from being done.
void TrainStack::NoteStep(Step step) {
  const TimePoint now = options_.parts.clock.Now();
  if (std::exchange(first_of_view_, false) && last_step_at_.has_value()) {
    LogInfo("worker.goes_on",
            {{"step", step}, {"seconds_without_steps", SecondsBetween(*last_step_at_, now)}});
  }
  last_step_at_ = now;
}

void TrainStack::OpenTrainer(const View& view) {
  const WorkerParts& parts = options_.parts;
  if (const StreamDataset* const stream = options_.data.train->stream()) stream->ForgetGathered();
  const auto report = [this](Step step, uint64_t samples) {
    NoteStep(step);
    if (options_.parts.options.on_step) options_.parts.options.on_step(step);
    heartbeat_.step = step;
    heartbeat_.samples = samples_before_ + samples;
    tables_->PutSizes(heartbeat_.tables);
    options_.parts.link.SetProgress(heartbeat_);
    options_.trace.StepsDone(step);
    if (const StreamDataset* const stream = options_.data.train->stream()) stream->OnApplied(step);
  };
  trainer_ = std::make_unique<Trainer>(
      Trainer::Options{.job = job(),
                       .data = options_.data,
                       .stripe_rows = stripe_rows_,
                       .client = *client_,
                       .engine = *engine_,
                       .other_engine = other_engine_.get(),
                       .team = *team_,
                       .self = parts.link.welcome().id,
                       .predictions_path = parts.options.predictions_path,
                       .rank = rank_,
                       .ranks = static_cast<uint32_t>(view.workers.size()),
                       .progress = progress_,
                       .order = order_,
                       .next_split = job().deals_on_request() ? options_.next_split : nullptr,
                       .interrupted = options_.interrupted,
                       .report = report,
                       .timeline = options_.trace.timeline(),
                       .clock = &parts.clock});
}

}  // namespace dt::worker
