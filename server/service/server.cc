#include "server/service/server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "common/base/host_name.h"
#include "common/base/log.h"
#include "common/base/pause.h"
#include "common/control/control_link.h"
#include "common/control/read_process_stats.h"
#include "common/control/role_loop.h"
#include "common/net/zmq_endpoint.h"
#include "server/log/log_keeper.h"
#include "server/service/executor.h"
#include "server/service/server_core.h"
#include "server/shard/checksum.h"
#include "server/table/table_specs.h"

namespace dt::server {
namespace {

constexpr Duration kPoll = milliseconds(200);  // A wait notices a stop within this time.
constexpr Duration kSavingPoll = milliseconds(10);
constexpr Duration kAnswerPoll = milliseconds(20);
constexpr Duration kRebindTimeout = seconds(5);
constexpr Duration kTurnTimeout = seconds(2);
constexpr Duration kRebindPause = milliseconds(50);

// The endpoint of executor i: any free port, or the i-th port from the given one on.
std::string EndpointOf(const std::string& listen, uint32_t i) {
  if (i == 0) return listen;
  const size_t colon = listen.rfind(':');
  if (!listen.starts_with("tcp://") || colon < 6) return fmt::format("{}-{}", listen, i);
  const uint64_t port = std::strtoull(listen.c_str() + colon + 1, nullptr, 10);
  if (port == 0) return listen;
  return fmt::format("{}:{}", listen.substr(0, colon), port + i);
}

void AddSizes(const ExecutorSizes& of, HeartbeatMessage& to) {
  if (to.tables.empty()) {
    to.tables = of.tables;
  } else if (!of.tables.empty()) {
    AddReports(to.tables, of.tables);
  }
  to.chains.kept_bytes += of.chains.kept_bytes;
  to.chains.copied_bytes += of.chains.copied_bytes;
  std::ranges::copy(of.chains.copies, std::back_inserter(to.chains.copies));
  std::ranges::copy(of.unreachable, std::back_inserter(to.unreachable));
}

// The endpoint that others connect to: "all addresses" is replaced by the host's name.
std::string Advertised(const std::string& endpoint) {
  for (const std::string all : {"tcp://0.0.0.0:", "tcp://[::]:", "tcp://*:"}) {
    if (!endpoint.starts_with(all)) continue;
    return fmt::format("tcp://{}:{}", HostName(), endpoint.substr(all.size()));
  }
  return endpoint;
}

class ServerRole : public Server {
 public:
  explicit ServerRole(const ServerOptions& options) : options_(options) {}

  Status Bind() {
    if (options_.job.checkpoint.durability == Durability::kLog && !options_.one_process) {
      DT_TRY(LogKeeper keeper, LogKeeper::Open(options_.job, options_.listen, options_.id));
      keeper_.emplace(std::move(keeper));
    }
    DT_TRY(std::vector<std::unique_ptr<ServerSocket>> sockets, BindSockets());
    ExecutorOptions executor;
    for (const TableSpec& table : TableSpecsOf(options_.job))
      executor.tables.push_back({table.dim, table.wire});
    executor.lease = options_.job.cluster.lease;
    executor.memory_bytes_max = options_.job.cluster.server.memory_bytes;
    executor.memory_bytes = &memory_bytes_;
    executor.move_rate = options_.job.cluster.move_rate / Executors();
    std::vector<std::string> endpoints;
    for (auto& socket : sockets) {
      endpoints.push_back(socket->endpoint());
      executors_.push_back(std::make_unique<Executor>(executor, std::move(socket), DataNetwork()));
    }
    return keeper_.has_value() ? keeper_->SetEndpoints(std::move(endpoints)) : OkStatus();
  }

  Status Run(std::stop_token stop) override {
    stop_ = stop;
    ControlLink::Options link;
    link.join.id = options_.id;
    if (keeper_.has_value()) {
      link.join.id = keeper_->id();
      link.join.server_token = keeper_->server_token();
    }
    link.network = &options_.network;
    link.traffic = &DataNetwork();
    link.scheduler = options_.scheduler;
    link.join.role = Role::kServer;
    link.join.memory_bytes = options_.job.cluster.server.memory_bytes;
    link.join.job_fingerprint = options_.job.fingerprint;
    link.on_heartbeat = [this](HeartbeatMessage& heartbeat) {
      const TimePoint now = SystemClock().Now();
      heartbeat.threads.push_back({"main", "", SecondsBetween(turned_, now)});
      for (size_t i = 0; i < heartbeat.executors.size(); ++i) {
        heartbeat.executors[i] = executors_[i]->Report(now);
      }
    };
    link.scheduler_outage = options_.job.cluster.scheduler_outage;
    link.stop = stop;
    for (const auto& executor : executors_) {
      link.join.endpoints.push_back(Advertised(executor->endpoint()));
    }
    const Result<EndpointParts> parts = ParseEndpoint(link.join.endpoints.front());
    if (parts.ok()) link.join.address = parts->host;
    DT_TRY(link_, ControlLink::Open(link));
    // In one process with other roles, the log's name is not this role's to set.
    if (options_.listen.starts_with("tcp://")) {
      SetLogProcess("server", link_->welcome().id.value());
    }
    if (keeper_.has_value()) keeper_->OnWelcome(link_->welcome().returned);
    core_.emplace(
        ServerCore::Options{.job = options_.job,
                            .self = link_->welcome().id,
                            .executors = static_cast<uint32_t>(executors_.size()),
                            .frames = &DataNetwork().frames(),
                            .keeper = keeper_.has_value() ? &*keeper_ : nullptr,
                            .stats = [this] { return ReadProcessStats(&DataNetwork()); }});
    const Status worked = Work();
    const bool told = link_->ended() && link_->end_status().code() != StatusCode::kUnavailable;
    if (told && keeper_.has_value()) keeper_->Remove();
    const Status ended = EndRole(*link_, worked, stop);
    AbortIfHung();
    return ended;
  }

 private:
  Network& DataNetwork() const {
    return options_.data_network != nullptr ? *options_.data_network : options_.network;
  }

  uint32_t Executors() const {
    if (options_.executors != 0) return options_.executors;
    return ExecutorsOf(options_.job.cluster.server, options_.one_process);
  }

  // A server that comes back must have its old addresses; others may hold them for a moment.
  Result<std::vector<std::unique_ptr<ServerSocket>>> BindSockets() {
    std::vector<std::string> endpoints;
    for (uint32_t i = 0; i < Executors(); ++i) {
      endpoints.push_back(EndpointOf(options_.listen, i));
    }
    if (!keeper_.has_value() || keeper_->endpoints().empty()) return BindAll(endpoints);
    Result<std::vector<std::unique_ptr<ServerSocket>>> sockets;
    const auto bound = [&] {
      sockets = BindAll(keeper_->endpoints());
      return sockets.ok();
    };
    if (PollUntil(SystemClock().Now() + kRebindTimeout, kRebindPause, bound)) return sockets;
    LogWarn("server.begins_anew", {{"why", ToText(sockets.status())}});
    keeper_->BecomeNewServer();
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

  // Returns why the server stops; never OK.
  Status Work() {
    return RunRole(*link_, {.turn = [this] { return Turn(); },
                            .until_next_turn = [this] { return UntilNextTurn(); },
                            .take =
                                [this](ControlMessage message) {
                                  core_->OnMessage(SystemClock().Now(), std::move(message));
                                  return SendAll();
                                }});
  }

  // Not OK if nothing more is to be done: after a stop, the job's end, or an executor's failure.
  Status Turn() {
    turned_ = SystemClock().Now();
    if (stop_.stop_requested()) return Cancelled("stopped on request");
    if (link_->ended()) return Cancelled("the job has ended");
    for (const auto& executor : executors_) {
      if (const auto failure = executor->TakeFailure()) return *failure;
    }
    TakeFromExecutors();
    NoteProgress();
    return SendAll();
  }

  Duration UntilNextTurn() const {
    // The turn itself waits for the answer.
    if (core_->awaited().has_value()) return Duration::zero();
    return core_->saving() ? kSavingPoll : kPoll;
  }

  // A thread that hangs cannot be joined: the process aborts, and its supervisor starts it again.
  // If the whole process was stopped for a while, its executors get the time for a turn.
  void AbortIfHung() const {
    if (options_.one_process) return;
    const double lease = std::chrono::duration<double>(options_.job.cluster.lease).count();
    const TimePoint deadline = SystemClock().Now() + kTurnTimeout;
    for (size_t i = 0; i < executors_.size(); ++i) {
      ExecutorReport report;
      const auto turns = [&] {
        report = executors_[i]->Report(SystemClock().Now());
        return report.turn_age <= lease || !report.doing.empty();
      };
      if (PollUntil(deadline, kAnswerPoll, turns)) continue;
      LogError("server.executor_hangs", {{"executor", i}, {"seconds", report.turn_age}});
      std::abort();
    }
  }

  void TakeFromExecutors() {
    for (const auto& executor : executors_) {
      while (const auto copied = executor->TakeCopied()) {
        for (const ShardCopies::Copied& each : *copied) {
          link_->Send(ShardCopiedMessage{each.shard, each.to, each.since, each.generation});
        }
      }
    }
    if (const auto awaited = core_->awaited()) {
      if (auto answer = executors_[*awaited]->Await(kAnswerPoll)) {
        core_->OnAnswer(SystemClock().Now(), *awaited, *std::move(answer));
      }
    }
    for (uint32_t i = 0; i < executors_.size() && core_->saving(); ++i) {
      if (auto saved = executors_[i]->TakeSaved()) {
        core_->OnSaved(SystemClock().Now(), i, *std::move(saved));
      }
    }
  }

  Status SendAll() {
    if (const std::optional<ShardMap> map = core_->TakeMap()) {
      for (const auto& executor : executors_) executor->SetMap(*map);
    }
    for (ServerCore::Command& command : core_->TakeCommands()) {
      executors_[command.executor]->Post(std::move(command.command));
    }
    for (ControlMessage& message : core_->TakeOutgoing()) link_->Send(std::move(message));
    return core_->failure();
  }

  void NoteProgress() {
    if (!core_->started()) return;
    HeartbeatMessage progress{.step = ~Step{0}};
    sizes_.resize(executors_.size());
    for (size_t i = 0; i < executors_.size(); ++i) {
      progress.step = std::min(progress.step, executors_[i]->step());
      progress.log_bytes += executors_[i]->log_bytes();
      progress.executors.push_back(executors_[i]->Report(SystemClock().Now()));
      if (auto sizes = executors_[i]->TakeSizes()) sizes_[i] = *std::move(sizes);
    }
    if (progress.step == ~Step{0}) progress.step = 0;
    for (const ExecutorSizes& each : sizes_) AddSizes(each, progress);
    TellOfDisk(progress);
    link_->SetProgress(progress);
  }

  // Training becomes several times slower then, for a reason that nothing else shows.
  void TellOfDisk(const HeartbeatMessage& progress) {
    for (const TableReport& table : progress.tables) {
      if (table.rows_on_disk == 0 || told_of_disk_) continue;
      told_of_disk_ = true;
      LogWarn("server.rows_to_disk",
              {{"table", table.name},
               {"why", fmt::format("rows fill the {} MiB of cluster.server.memory",
                                   options_.job.cluster.server.memory_bytes >> 20)},
               {"hint", "training is slower now; give servers more memory, or more servers"}});
    }
  }

  const ServerOptions options_;
  std::optional<LogKeeper> keeper_;  // Set if a log is kept.
  std::atomic<uint64_t> memory_bytes_ = 0;
  std::vector<std::unique_ptr<Executor>> executors_;
  std::stop_token stop_;
  std::atomic<TimePoint> turned_ = SystemClock().Now();  // The main thread's last turn.
  std::unique_ptr<ControlLink> link_;
  std::optional<ServerCore> core_;
  std::vector<ExecutorSizes> sizes_;  // The last from each executor.
  bool told_of_disk_ = false;
};

}  // namespace

uint32_t ExecutorsOf(const ServerConfig& config, bool one_process) {
  if (config.executors != 0) return config.executors;
  const uint32_t processors = std::thread::hardware_concurrency();
  return std::clamp(one_process ? processors : processors / 2, 1u, 4u);
}

Result<std::unique_ptr<Server>> Server::Open(const ServerOptions& options) {
  auto server = std::make_unique<ServerRole>(options);
  DT_TRY_STATUS(server->Bind());
  return server;
}

}  // namespace dt::server
