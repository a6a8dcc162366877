#include "server/service/server.h"

#include <algorithm>
#include <filesystem>
#include <poll.h>
#include <thread>

#include "common/base/check.h"
#include "common/base/host_name.h"
#include "common/base/log.h"
#include "common/base/open_files.h"
#include "common/control/control_link.h"
#include "common/net/zmq_endpoint.h"
#include "common/storage/place_below.h"
#include "server/log/log_keeper.h"
#include "server/service/executor.h"
#include "server/shard/checksum.h"

namespace dt::server {
namespace {

constexpr Duration kPoll = milliseconds(200);  // How soon a wait notices a stop.
constexpr Duration kSavingPoll = milliseconds(10);
constexpr Duration kSavePatience = seconds(60);
constexpr uint32_t kExecutorsMax = 64;
constexpr Duration kRebindPatience = seconds(5);
constexpr int kRebindPauseMs = 50;

// Of executor i: any free port, or the i-th from the one that was named.
std::string EndpointOf(const std::string& listen, uint32_t i) {
  if (i == 0) return listen;
  const size_t colon = listen.rfind(':');
  if (!listen.starts_with("tcp://") || colon < 6) return fmt::format("{}-{}", listen, i);
  const uint64_t port = std::strtoull(listen.c_str() + colon + 1, nullptr, 10);
  if (port == 0) return listen;
  return fmt::format("{}:{}", listen.substr(0, colon), port + i);
}

// What others connect to: "all addresses" is none.
std::string Advertised(const std::string& endpoint) {
  for (const std::string all : {"tcp://0.0.0.0:", "tcp://[::]:", "tcp://*:"}) {
    if (!endpoint.starts_with(all)) continue;
    return fmt::format("tcp://{}:{}", HostName(), endpoint.substr(all.size()));
  }
  return endpoint;
}

class ServerRole : public Server {
 public:
  explicit ServerRole(const ServerOptions& options)
      : options_(options), tables_(TableSpecsOf(options.job)) {}

  Status Bind() {
    if (options_.job.checkpoint.durability == Durability::kLog && !options_.one_process) {
      DT_TRY(LogKeeper keeper, LogKeeper::Open(options_.job, options_.listen, options_.id));
      keeper_.emplace(std::move(keeper));
    }
    DT_TRY(std::vector<std::unique_ptr<ServerSocket>> sockets, BindSockets());
    ExecutorOptions executor;
    for (const TableSpec& table : tables_) executor.tables.push_back({table.dim, table.wire});
    executor.memory_bytes_max = options_.job.cluster.server.memory_bytes;
    executor.memory_bytes = &memory_bytes_;
    std::vector<std::string> endpoints;
    for (auto& socket : sockets) {
      endpoints.push_back(socket->endpoint());
      executors_.push_back(std::make_unique<Executor>(executor, std::move(socket)));
    }
    return keeper_.has_value() ? keeper_->SetEndpoints(std::move(endpoints)) : OkStatus();
  }

  Status Run(std::stop_token stop) override {
    stop_ = stop;
    ControlLink::Options link;
    link.join.id = options_.id;
    if (keeper_.has_value()) {
      link.join.id = keeper_->id();
      link.join.server_token = keeper_->claim();
    }
    link.network = &options_.network;
    link.traffic = &DataNetwork();
    link.scheduler = options_.scheduler;
    link.join.role = Role::kServer;
    link.join.job_fingerprint = options_.job.fingerprint;
    link.scheduler_outage = options_.job.cluster.scheduler_outage;
    link.stop = stop;
    for (const auto& executor : executors_) {
      link.join.endpoints.push_back(Advertised(executor->endpoint()));
    }
    const Result<EndpointParts> parts = ParseEndpoint(link.join.endpoints.front());
    if (parts.ok()) link.join.address = parts->host;
    DT_TRY(link_, ControlLink::Open(link));
    // In one process with other roles the log is not this one's to name.
    if (options_.listen.starts_with("tcp://")) {
      SetLogProcess("server", link_->welcome().id.value());
    }
    if (keeper_.has_value()) keeper_->OnWelcome(link_->welcome().returned);
    const Status worked = Work();
    const bool told = link_->ended() && link_->end_status().code() != StatusCode::kUnavailable;
    if (told && keeper_.has_value()) keeper_->Remove();
    return EndRole(*link_, worked, stop);
  }

 private:
  Network& DataNetwork() const {
    return options_.data_network != nullptr ? *options_.data_network : options_.network;
  }

  // A server that comes back is found at its old addresses; others may have them for a moment.
  Result<std::vector<std::unique_ptr<ServerSocket>>> BindSockets() {
    std::vector<std::string> endpoints;
    const uint32_t executors = options_.executors != 0 ? std::min(options_.executors, kExecutorsMax)
                                                       : ExecutorsOf(options_.job.cluster.server);
    for (uint32_t i = 0; i < executors; ++i) {
      endpoints.push_back(EndpointOf(options_.listen, i));
    }
    if (!keeper_.has_value() || keeper_->endpoints().empty()) return BindAll(endpoints);
    const TimePoint deadline = SystemClock().Now() + kRebindPatience;
    auto sockets = BindAll(keeper_->endpoints());
    while (!sockets.ok() && SystemClock().Now() < deadline) {
      poll(nullptr, 0, kRebindPauseMs);
      sockets = BindAll(keeper_->endpoints());
    }
    if (sockets.ok()) return sockets;
    LogWarn("server.begins_anew", {{"why", ToText(sockets.status())}});
    keeper_->BeginAnew();
    return BindAll(endpoints);
  }

  Result<std::vector<std::unique_ptr<ServerSocket>>> BindAll(
      const std::vector<std::string>& endpoints) {
    std::vector<std::unique_ptr<ServerSocket>> sockets;
    for (const std::string& endpoint : endpoints) {
      DT_TRY(sockets.emplace_back(), DataNetwork().Bind(endpoint));
    }
    return sockets;
  }

  // Ends with what stops the server; never OK.
  Status Work() {
    for (;;) {
      DT_TRY_STATUS(Interrupted());
      DT_TRY_STATUS(CheckSaving());
      Result<ControlMessage> message = link_->Receive(saving_.has_value() ? kSavingPoll : kPoll);
      NoteProgress();
      if (!message.ok()) {
        if (message.status().code() == StatusCode::kDeadlineExceeded) continue;
        return message.status();
      }
      if (const auto* start = std::get_if<StartMessage>(&*message)) {
        DT_TRY_STATUS(Start(*start));
        link_->Send(ReadyMessage{});
      } else if (const auto* order = std::get_if<OrderMessage>(&*message)) {
        DT_TRY_STATUS(CarryOut(*order));
      } else if (const auto* kept = std::get_if<CheckpointCommittedMessage>(&*message)) {
        DT_TRY_STATUS(Kept(*kept));
      } else {
        LogWarn("server.unexpected_message", {{"message", NameOf(*message)}});
      }
    }
  }

  // Not OK when nothing more is to be done: a stop, the job's end, an executor that failed.
  Status Interrupted() {
    if (stop_.stop_requested()) return Cancelled("stopped on request");
    if (link_->ended()) return Cancelled("the job has ended");
    for (const auto& executor : executors_) {
      if (const auto failure = executor->TakeFailure()) return *failure;
    }
    return OkStatus();
  }

  void NoteProgress() {
    if (!started_) return;
    HeartbeatMessage progress{.step = ~Step{0}};
    sizes_.resize(executors_.size());
    for (size_t i = 0; i < executors_.size(); ++i) {
      progress.step = std::min(progress.step, executors_[i]->clock());
      progress.log_bytes += executors_[i]->log_bytes();
      if (auto sizes = executors_[i]->TakeSizes()) sizes_[i] = *std::move(sizes);
    }
    if (progress.step == ~Step{0}) progress.step = 0;
    progress.tables = sizes_[0];
    for (size_t i = 1; i < sizes_.size() && !progress.tables.empty(); ++i) {
      if (!sizes_[i].empty()) AddReports(progress.tables, sizes_[i]);
    }
    link_->SetProgress(progress);
  }

  // Every executor's answer; the first error of any.
  Result<std::vector<ExecutorAnswer>> AskAll(
      const std::function<std::unique_ptr<ExecutorCommand>(uint32_t executor)>& command) {
    for (uint32_t i = 0; i < executors_.size(); ++i) executors_[i]->Post(command(i));
    std::vector<ExecutorAnswer> answers;
    Status failed;
    for (const auto& executor : executors_) {
      std::optional<ExecutorAnswer> answer;
      while (!(answer = executor->Await(kPoll)).has_value()) DT_TRY_STATUS(Interrupted());
      failed.Update(answer->status);
      answers.push_back(*std::move(answer));
    }
    if (!failed.ok()) return failed;
    return answers;
  }

  Status Start(const StartMessage& start) {
    DT_TRY_STATUS(CheckShardMap(start.map));
    for (TableSpec& table : tables_) {
      table.on_worker = std::ranges::count(start.tables_on_worker, table.id) > 0;
    }
    const ProcessId self = link_->welcome().id;
    const ServerInfo* const info = start.map.FindServer(self);
    if (info == nullptr) LogWarn("server.without_shards", {{"id", self.value()}});
    Stamp stamp{start.generation, link_->welcome().term, start.map.version};
    std::vector<std::optional<LogPlace>> logs(executors_.size());
    if (keeper_.has_value()) {
      DT_TRY(logs, keeper_->PlacesAtStart(executors_.size(), stamp.generation));
    }
    DT_TRY(const auto answers, AskAll([&](uint32_t i) {
             ShardSetOptions shards;
             shards.tables = tables_;
             shards.slices = std::max(1u, start.slices);
             shards.shards_of_job = start.map.shards();
             shards.shards = ShardsOf(start.map, self, i, executors_.size());
             shards.stamp = stamp;
             if (options_.job.train.asynchronous()) {
               shards.async = AsyncOptions{options_.job.train.staleness, start.workers};
             }
             DiskTierOptions disk;
             disk.folder = ScratchParent();
             disk.memory_bytes = options_.job.cluster.server.memory_bytes / executors_.size();
             disk.open_files = OpenFilesMax() / 4 / executors_.size();
             return BeginCommand(std::move(shards), std::move(disk), logs[i]);
           }));
    if (keeper_.has_value()) {
      DT_TRY_STATUS(keeper_->OnStarted(FirstSegments(answers)));
    }
    started_ = true;
    LogInfo("server.started", {{"executors", answers.size()},
                               {"shards_of_job", start.map.shards()},
                               {"tables", tables_.size()}});
    return OkStatus();
  }

  Status CarryOut(const OrderMessage& order) {
    OrderDoneMessage done{.order = order.number, .result = LoadDone{}};
    if (const auto* save = std::get_if<SaveOrder>(&order.what)) {
      DT_TRY(done.result, Save(*save));
    } else if (const auto* load = std::get_if<LoadOrder>(&order.what)) {
      DT_TRY(done.result, Load(*load));
    } else if (std::holds_alternative<FinishOrder>(order.what)) {
      DT_TRY(done.result, Finish());
    } else {
      LogWarn("server.unexpected_order", {{"order", order.number}});
      return OkStatus();
    }
    link_->Send(std::move(done));
    return OkStatus();
  }

  Result<SaveDone> Save(const SaveOrder& order) {
    const ProcessId self = link_->welcome().id;
    DT_TRY(const std::string folder, PlaceBelow(options_.job.checkpoint.dir, order.name));
    const std::string own = fmt::format("{}/server-{}", folder, self.value());
    if (keeper_.has_value()) {  // This server's process before may have been killed while it saved.
      std::error_code absent;
      std::filesystem::remove_all(own, absent);
    }
    const Status cut = AskAll([&](uint32_t i) {
                         return SaveCommand(order.step, {folder, self, i}, kSavePatience);
                       }).status();
    if (!cut.ok()) return cut;
    saving_ = Saving{order.step, own, SystemClock().Now(), static_cast<uint32_t>(executors_.size()),
                     {},         {}};
    return SaveDone{.files = {}, .writing = true};
  }

  // The rows of a save are written while requests go on.
  Status CheckSaving() {
    if (!saving_.has_value()) return OkStatus();
    for (const auto& executor : executors_) {
      std::optional<SavedRows> saved = executor->TakeSaved();
      if (!saved.has_value()) continue;
      saving_->status.Update(saved->status);
      std::ranges::move(saved->files, std::back_inserter(saving_->files));
      --saving_->executors_left;
    }
    if (saving_->executors_left > 0) return OkStatus();
    if (!saving_->status.ok()) {
      std::error_code ignored;
      std::filesystem::remove_all(saving_->folder, ignored);
      return saving_->status;
    }
    LogInfo("server.saved", {{"step", saving_->step},
                             {"seconds", SecondsBetween(saving_->begun, SystemClock().Now())}});
    link_->Send(RowsWrittenMessage{saving_->step, std::move(saving_->files)});
    saving_.reset();
    return OkStatus();
  }

  Result<LoadDone> Load(const LoadOrder& order) {
    DT_TRY(const auto answers, AskAll([&](uint32_t) {
             return LoadCommand(order.folder, order.step, order.generation);
           }));
    if (keeper_.has_value()) {
      DT_TRY_STATUS(
          keeper_->SetBase({order.generation, order.step, order.folder, FirstSegments(answers)}));
    }
    LogInfo("server.loaded", {{"step", order.step}, {"generation", order.generation.value()}});
    return LoadDone{};
  }

  // A checkpoint is complete: the log is cut.
  Status Kept(const CheckpointCommittedMessage& kept) {
    if (!keeper_.has_value()) return OkStatus();
    if (!started_) {
      keeper_->KeepForStart(kept);
      return OkStatus();
    }
    if (!keeper_->Continues(kept)) return OkStatus();
    DT_TRY(const auto answers, AskAll([&](uint32_t) { return CutCommand(kept.step); }));
    const Status cut =
        keeper_->SetBase({kept.generation, kept.step, kept.folder, FirstSegments(answers)});
    if (!cut.ok())
      LogWarn("server.log_not_cut", {{"problem", ToText(cut)}});  // The next checkpoint cuts it.
    return OkStatus();
  }

  // The folder in which executors make their folders for rows on disk.
  std::string ScratchParent() const {
    return keeper_.has_value() ? keeper_->dir() : options_.job.cluster.server.dir;
  }

  static std::vector<uint64_t> FirstSegments(const std::vector<ExecutorAnswer>& answers) {
    std::vector<uint64_t> firsts;
    for (const ExecutorAnswer& answer : answers) firsts.push_back(answer.first_segment);
    return firsts;
  }

  Result<FinishDone> Finish() {
    DT_TRY(const auto answers, AskAll([](uint32_t) { return ReportCommand(); }));
    FinishDone done;
    done.tables = answers[0].tables;
    for (size_t i = 1; i < answers.size(); ++i) AddReports(done.tables, answers[i].tables);
    done.stats = ReadProcessStats(&DataNetwork());
    return done;
  }

  const ServerOptions options_;
  std::vector<TableSpec> tables_;
  std::optional<LogKeeper> keeper_;  // Where a log is kept.
  std::atomic<uint64_t> memory_bytes_ = 0;
  std::vector<std::unique_ptr<Executor>> executors_;
  std::stop_token stop_;
  std::unique_ptr<ControlLink> link_;
  bool started_ = false;
  struct Saving {
    Step step = 0;
    std::string folder;  // This server's folder in the checkpoint.
    TimePoint begun{};
    uint32_t executors_left = 0;
    std::vector<CheckpointFile> files;
    Status status;
  };
  std::optional<Saving> saving_;                 // Rows of a checkpoint are being written.
  std::vector<std::vector<TableReport>> sizes_;  // By executor: its last.
};

}  // namespace

uint32_t ExecutorsOf(const ServerConfig& config) {
  if (config.executors != 0) return std::min(config.executors, kExecutorsMax);
  return std::clamp(std::thread::hardware_concurrency() / 2, 1u, 4u);
}

Result<std::unique_ptr<Server>> Server::Open(const ServerOptions& options) {
  auto server = std::make_unique<ServerRole>(options);
  DT_TRY_STATUS(server->Bind());
  return server;
}

}  // namespace dt::server
