#include "test/sim/cluster/sim_server.h"

#include <filesystem>

#include "common/base/check.h"
#include "common/base/pause.h"
#include "common/control/packet.h"
#include "server/shard/checksum.h"
#include "server/table/table_specs.h"
#include "test/support/full_disk.h"

namespace dt::sim {
namespace {

constexpr Duration kCommandTurn = milliseconds(2);
constexpr Duration kWritingMax = milliseconds(400);  // For the rows of a checkpoint.
// The thread that talks with the scheduler is not that of an executor.
constexpr Duration kTellingMax = milliseconds(200);
constexpr Duration kLastWords = seconds(3);
constexpr uint64_t kSegmentHead = 64;  // At most: what a segment has before its first record.
constexpr Duration kDiskPause = std::chrono::microseconds(100);  // Real time.

uint64_t SizeOf(const std::string& path) {
  std::error_code none;
  const uintmax_t size = std::filesystem::file_size(path, none);
  return none ? 0 : size;
}

// The segment that an executor writes to: the last one.
std::string NewestSegment(const std::string& dir, uint32_t executor) {
  const std::string prefix = "log-" + std::to_string(executor) + "-";
  std::string newest;
  uint64_t number = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const uint64_t own = std::stoull(name.substr(prefix.size()));
    if (newest.empty() || own > number) newest = entry.path().string(), number = own;
  }
  return newest;
}

}  // namespace

std::string SimServer::EndpointOf(uint32_t server, uint32_t executor) {
  return "sim://" + std::to_string(server) + "/" + std::to_string(executor);
}

SimServer::SimServer(World& world, Wires& wires, Node node, uint64_t incarnation, Options options)
    : Process(world, wires, node, incarnation), options_(options) {
  if (options_.job.checkpoint.durability == Durability::kLog) OpenLog();
  server::ExecutorOptions executor;
  for (const server::TableSpec& table : server::TableSpecsOf(options_.job)) {
    executor.tables.push_back({table.dim, table.wire});
  }
  executor.lease = options_.job.cluster.lease;
  executor.memory_bytes_max = options_.job.cluster.server.memory_bytes;
  executor.memory_bytes = &memory_bytes_;
  executor.move_rate = options_.job.cluster.move_rate;
  for (uint32_t e = 0; e < options_.job.cluster.server.executors; ++e) {
    executors_.push_back(
        {EndpointOf(options_.number, e), std::make_unique<server::ExecutorCore>(executor, [] {})});
  }
  JoinMessage join;
  join.role = Role::kServer;
  join.incarnation = Incarnation(incarnation);
  join.wire_version = kWireVersion;
  join.pid = static_cast<int64_t>(incarnation);
  join.host = "sim";
  join.address = "sim";
  join.job_fingerprint = options_.job.fingerprint;
  join.id = ProcessId(options_.number);
  for (const Executor& each : executors_) join.endpoints.push_back(each.endpoint);
  if (keeper_.has_value()) {
    join.server_token = keeper_->server_token();
    const Status kept = keeper_->SetEndpoints(join.endpoints);
    DT_CHECK_MSG(kept.ok(), "{}", ToText(kept));
  }
  link_.emplace(world.Now(), LinkCore::Options{.join = std::move(join),
                                               .scheduler = kSchedulerAddress,
                                               .outage = options_.job.cluster.scheduler_outage,
                                               .progress = [this] { return Progress(); }});
  Listen();
  Later(kTick, [this] { Tick(); });
}

SimServer::~SimServer() { Kill(); }

std::string SimServer::Text() const {
  std::string text = fmt::format(
      "server, link: {}", link_->all_acknowledged() ? "all acknowledged" : "not all acknowledged");
  for (const server::ShardSet* const shards : shard_sets()) {
    text +=
        fmt::format(", {} (generation {})", shards->SlowestText(), shards->generation().value());
  }
  return text;
}

void SimServer::OpenLog() {
  Result<server::LogKeeper> keeper = server::LogKeeper::Open(
      options_.job, EndpointOf(options_.number, 0), ProcessId(options_.number));
  DT_CHECK_MSG(keeper.ok(), "{}", ToText(keeper.status()));
  DT_CHECK(keeper->id() == ProcessId(options_.number));
  keeper_.emplace(*std::move(keeper));
}

void SimServer::Listen() {
  wires().Listen(AddressOf(incarnation()), node(),
                 [this](const std::string&, const Frames& message) {
                   WhenAwake([this, message] { OnPacket(message); });
                 });
  for (uint32_t e = 0; e < executors_.size(); ++e) {
    wires().Listen(executors_[e].endpoint, node(),
                   [this, e](const std::string& from, const Frames& message) {
                     WhenAwake([this, e, from, message] {
                       executors_[e].arrived.push_back({from, message});
                       PlanTurn(e, Duration::zero());
                     });
                   });
  }
}

void SimServer::OnKill() {
  wires().Forget(AddressOf(incarnation()));
  for (const Executor& executor : executors_) wires().Forget(executor.endpoint);
  core_.reset();
  executors_.clear();
  link_.reset();
  keeper_.reset();
}

std::vector<server::ShardSet*> SimServer::shard_sets() const {
  std::vector<server::ShardSet*> sets;
  for (const Executor& executor : executors_) {
    server::ShardSet* const shards = executor.core->state().shards();
    if (shards != nullptr) sets.push_back(shards);
  }
  return sets;
}

// ------------------------------------------------------------ the scheduler's messages

HeartbeatMessage SimServer::Progress() const {
  HeartbeatMessage progress;
  if (!core_.has_value() || !core_->started()) return progress;
  progress.step = ~Step{0};
  for (const Executor& executor : executors_) {
    progress.step = std::min(progress.step, executor.core->step());
    progress.log_bytes += executor.core->log_bytes();
    executor.core->state().AddTo(progress.chains);
    for (const ProcessId id : executor.core->state().links().silent()) {
      progress.unreachable.push_back(id);
    }
    progress.executors.push_back(
        {SecondsBetween(executor.turned, world().Now()), executor.core->doing()});
  }
  if (progress.step == ~Step{0}) progress.step = 0;
  return progress;
}

void SimServer::OnPacket(const Frames& message) {
  Result<Packet> packet = DecodePacket(message);
  DT_CHECK(packet.ok());
  link_->OnPacket(world().Now(), *std::move(packet));
  TakeFromLink();
}

void SimServer::TakeFromLink() {
  if (link_->welcome().has_value() && !core_.has_value()) {
    if (keeper_.has_value()) keeper_->OnWelcome(link_->welcome()->returned);
    core_.emplace(server::ServerCore::Options{.job = options_.job,
                                              .self = link_->welcome()->id,
                                              .executors = static_cast<uint32_t>(executors_.size()),
                                              .frames = &FramePool::Private(),
                                              .keeper = keeper_.has_value() ? &*keeper_ : nullptr});
  }
  for (ControlMessage& message : link_->TakeMessages()) {
    core_->OnMessage(world().Now(), std::move(message));
  }
  SendAll();
}

void SimServer::SendAll() {
  if (core_.has_value()) {
    if (const std::optional<ShardMap> map = core_->TakeMap()) {
      for (uint32_t e = 0; e < executors_.size(); ++e) {
        executors_[e].core->SetMap(world().Now(), *map);
        PlanTurn(e, Duration::zero());
      }
    }
    for (server::ServerCore::Command& command : core_->TakeCommands()) {
      executors_[command.executor].core->Post(std::move(command.command));
      executors_[command.executor].busy = true;
      PlanTurn(command.executor, Duration::zero());
    }
    for (ControlMessage& message : core_->TakeOutgoing()) link_->Send(std::move(message));
    if (!core_->failure().ok()) Fail(core_->failure());
  }
  link_->Tick(world().Now());
  for (const Packet& packet : link_->TakePackets()) {
    wires().Send(node(), AddressOf(incarnation()), kSchedulerAddress, EncodePacket(packet));
  }
}

void SimServer::Fail(const Status& why) {
  if (failed_at_.has_value()) return;
  failed_at_ = world().Now();
  link_->Send(FailedMessage{.code = why.code(), .problem = ProblemOf(why)});
}

// What the process holds stays to be looked at; only its addresses and its log go.
void SimServer::Tick() {
  TakeFromLink();
  if (!link_->welcome().has_value() && TriedLongEnough()) return Kill();
  const bool said = failed_at_.has_value() &&
                    (link_->all_acknowledged() || world().Now() - *failed_at_ > kLastWords);
  if (!link_->ended() && !said) return Later(kTick, [this] { Tick(); });
  const bool told = link_->ended() && link_->end_status().code() != StatusCode::kUnavailable;
  wires().Forget(AddressOf(incarnation()));
  for (const Executor& executor : executors_) wires().Forget(executor.endpoint);
  if (!told) return Kill();
  const bool again = link_->end_status().code() == StatusCode::kAborted;
  if (keeper_.has_value()) keeper_->Remove();
  keeper_.reset();
  End();
  if (again) JoinAgain();
}

// ------------------------------------------------------------ executors

void SimServer::PlanTurn(uint32_t executor, Duration delay) {
  if (std::exchange(executors_[executor].turn_planned, true)) return;
  Later(delay, [this, executor] {
    executors_[executor].turn_planned = false;
    Turn(executor);
  });
}

void SimServer::Turn(uint32_t e) {
  Executor& executor = executors_[e];
  if (executor.hangs) return;
  executor.turned = world().Now();
  server::ExecutorCore& core = *executor.core;
  WorkOnDisk(executor);
  core.BeginTurn(world().Now());
  for (PeerMessage& message : std::exchange(executor.arrived, {})) {
    core.OnMessage(world().Now(), std::move(message));
  }
  EndTurn(executor);
  if (!alive()) return;
  for (PeerMessage& message : core.outgoing()) {
    wires().Send(node(), executor.endpoint, message.peer, std::move(message.frames));
  }
  core.outgoing().clear();
  for (server::ChainLinks::Letter& letter : core.letters()) {
    wires().Send(node(), executor.endpoint, letter.endpoint, std::move(letter.frames));
  }
  core.letters().clear();
  for (const server::ShardCopies::Copied& each : core.TakeCopied()) {
    Later(world().UpTo(kTellingMax), [this, each] {
      link_->Send(ShardCopiedMessage{each.shard, each.to, each.since, each.generation});
    });
  }
  TakeResults(e);
  if (alive()) PlanTurn(e, executor.busy ? kCommandTurn : kTick);
}

// The threads of its disk work in real time. So that the seed alone decides what happens, they get
// no work of a checkpoint before the time at which it is to be written, and are waited for then: no
// turn ends meanwhile, as EndTurn may fill the disk for the log.
void SimServer::WorkOnDisk(Executor& executor) {
  server::ExecutorCore& core = *executor.core;
  const auto saving = [&] {
    return core.state().tier() != nullptr && core.state().tier()->saving() && core.failure().ok();
  };
  if (!saving()) {
    executor.saves_until.reset();
    return core.WorkOnDisk();
  }
  if (!executor.saves_until.has_value()) {
    executor.saves_until = world().Now() + world().UpTo(kWritingMax);
  }
  if (world().Now() < *executor.saves_until) return;
  while (saving()) {
    dt::Pause(kDiskPause);
    core.WorkOnDisk();
  }
}

void SimServer::EndTurn(Executor& executor) {
  const TimePoint now = world().Now();
  const auto index = static_cast<uint32_t>(&executor - executors_.data());
  if (executor.core->state().log() == nullptr) return executor.core->EndTurn(now);
  const uint64_t before = SizeOf(NewestSegment(keeper_->dir(), index));
  if (now < full_until_) {
    const test::FileSizeLimit full(before + room_left_);
    return executor.core->EndTurn(now);
  }
  executor.core->EndTurn(now);
  const bool wrote = SizeOf(NewestSegment(keeper_->dir(), index)) > before;
  if (dies_writing_ && wrote && before > lost_too_ + kSegmentHead) {
    TearLog(executor, before);
    Kill();
  }
}

void SimServer::TearLog(const Executor& executor, uint64_t bytes_before) {
  const auto index = static_cast<uint32_t>(&executor - executors_.data());
  const std::string segment = NewestSegment(keeper_->dir(), index);
  const uint64_t written = SizeOf(segment) - bytes_before;
  const uint64_t kept =
      lost_too_ == 0 ? bytes_before + world().Below(written + 1) : bytes_before - lost_too_;
  std::filesystem::resize_file(segment, kept);
}

void SimServer::TakeResults(uint32_t e) {
  server::ExecutorCore& core = *executors_[e].core;
  const TimePoint now = world().Now();
  if (auto answer = core.TakeAnswer()) {
    executors_[e].busy = false;
    core_->OnAnswer(now, e, *std::move(answer));
  }
  if (auto saved = core.TakeSaved()) TellSaved(e, *saved);
  if (!core.failure().ok()) Fail(core.failure());
  SendAll();
}

// Once all executors have begun to save.
void SimServer::TellSaved(uint32_t executor, const server::SavedRows& rows) {
  if (!core_->saving()) return Later(kTick, [=, this] { TellSaved(executor, rows); });
  core_->OnSaved(world().Now(), executor, rows);
  SendAll();
}

}  // namespace dt::sim
