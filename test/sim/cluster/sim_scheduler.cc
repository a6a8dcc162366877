#include "test/sim/cluster/sim_scheduler.h"

#include <filesystem>

#include "common/base/check.h"
#include "common/control/packet.h"
#include "scheduler/service/start_point.h"

namespace dt::sim {
namespace {

constexpr Duration kResendAfter = milliseconds(300);
constexpr Duration kPlanningMax = milliseconds(300);
constexpr Duration kEndTimeout = seconds(5);  // For all processes to hear of the end.

}  // namespace

SimScheduler::SimScheduler(World& world, Wires& wires, Node node, Options options)
    : Process(world, wires, node, 0),
      options_(options),
      router_(kResendAfter, [this](const PeerId& peer, const Packet& packet) {
        this->wires().Send(this->node(), kSchedulerAddress, peer, EncodePacket(packet));
      }) {
  router_.SetTerm(options.term);
  const Status opened = Open();
  DT_CHECK_MSG(opened.ok(), "{}", ToText(opened));
  wires.Listen(kSchedulerAddress, node, [this](const std::string&, const Frames& message) {
    WhenAwake([this, message] { OnMessage(message); });
  });
  Later(kTick, [this] { Tick(); });
}

Status SimScheduler::Open() {
  if (options_.disk.record.empty()) return BeginRun();
  DT_TRY(scheduler::JobRecord record, scheduler::DecodeJobRecord(options_.disk.record));
  return Continue(std::move(record));
}

Status SimScheduler::BeginRun() {
  const JobConfig& job = options_.job;
  DT_TRY(scheduler::StartPoint start,
         scheduler::StartOfRun(job, options_.resume ? "auto" : "never"));
  DT_TRY(checkpoints_, scheduler::CheckpointStore::Open(start.checkpoints));
  Generation& generation = options_.disk.generation;
  generation = Generation(generation.value() + 1);
  JobEnvironment& environment = *this;
  job_.emplace(scheduler::JobOptions{.job = job,
                                     .term = options_.term,
                                     .generation = generation,
                                     .checkpoint = std::move(start.checkpoint),
                                     .run = generation.value(),
                                     .may_return = options_.returns},
               environment, world().Now());
  return OkStatus();
}

Status SimScheduler::Continue(scheduler::JobRecord record) {
  DT_TRY(scheduler::StartPoint start, scheduler::StartWithin(options_.job, record));
  DT_TRY(checkpoints_, scheduler::CheckpointStore::Open(start.checkpoints));
  JobEnvironment& environment = *this;
  job_.emplace(scheduler::JobOptions{.job = options_.job,
                                     .term = options_.term,
                                     .generation = options_.disk.generation,
                                     .checkpoint = std::move(start.checkpoint),
                                     .may_return = options_.returns},
               environment, std::move(record), world().Now());
  if (job_->phase() == scheduler::JobPhase::kEnded) router_.Expect(job_->membership().members());
  return OkStatus();
}

// The record is on the disk before any process hears of the return, as in the real scheduler.
void SimScheduler::BeginAgainIfNeeded() {
  std::optional<scheduler::Job::Beginning> again = job_->TakeBeginning();
  if (!again.has_value()) return;
  const TimePoint now = world().Now();
  std::vector<scheduler::Outgoing> told = job_->TakeOutgoing();
  ++beginnings_;
  const Duration age = job_->AgeAt(now);
  Result<scheduler::StartPoint> start =
      scheduler::StartAgain(options_.job, std::move(again->checkpoint), again->record.begins_from);
  DT_CHECK(start.ok());
  Result<scheduler::CheckpointStore> opened = scheduler::CheckpointStore::Open(start->checkpoints);
  DT_CHECK(opened.ok());
  checkpoints_ = *std::move(opened);
  JobEnvironment& environment = *this;
  job_.emplace(scheduler::JobOptions{.job = options_.job,
                                     .term = options_.term,
                                     .generation = options_.disk.generation,
                                     .checkpoint = std::move(start->checkpoint),
                                     .age = age,
                                     .may_return = true},
               environment, std::move(again->record), now);
  options_.disk.record = scheduler::EncodeJobRecord(job_->record());
  if (dies_sending_) told.resize(world().Below(told.size() + 1));
  for (const scheduler::Outgoing& out : told) router_.Send(now, out.to, out.message);
  if (dies_sending_) return Kill();
  for (const JoinMessage& join : again->joins) job_->On(now, join.incarnation, join);
}

void SimScheduler::OnMessage(const Frames& message) {
  Result<Packet> packet =
      DecodePacket(message, [this](uint64_t session) { return router_.PayloadBytesMax(session); });
  DT_CHECK(packet.ok());
  const TimePoint now = world().Now();
  const std::string peer = AddressOf(packet->session);
  for (auto& arrived : router_.OnPacket(now, peer, *std::move(packet))) {
    job_->On(now, arrived.from, std::move(arrived.message));
    BeginAgainIfNeeded();
    if (!alive()) return;
  }
  SendAll();
}

// What messages follow from is on the disk before anybody hears of it.
void SimScheduler::SendAll() {
  if (!alive()) return;
  std::vector<scheduler::Outgoing> all = job_->TakeOutgoing();
  if (all.empty()) return;
  options_.disk.record = scheduler::EncodeJobRecord(job_->record());
  if (dies_sending_) all.resize(world().Below(all.size() + 1));
  for (const scheduler::Outgoing& out : all) router_.Send(world().Now(), out.to, out.message);
  if (dies_sending_) Kill();
}

void SimScheduler::Tick() {
  const TimePoint now = world().Now();
  job_->Tick(now);
  BeginAgainIfNeeded();
  if (!alive()) return;
  SendAll();
  if (!alive()) return;
  router_.Tick(now);
  if (job_->phase() == scheduler::JobPhase::kEnded) {
    if (!ended_.has_value()) ended_ = now;
    const Duration lease = options_.job.cluster.lease;
    if (router_.all_acknowledged(now - lease / 2) || now - *ended_ > kEndTimeout) {
      wires().Forget(kSchedulerAddress);
      return End();
    }
  }
  Later(kTick, [this] { Tick(); });
}

bool SimScheduler::Scale(Role role, uint32_t count) {
  const Status begun = job_->Scale(world().Now(), role, count);
  SendAll();
  return begun.ok();
}

bool SimScheduler::Drain(ProcessId server) {
  const Status begun = job_->Drain(world().Now(), server);
  SendAll();
  return begun.ok();
}

void SimScheduler::RequestStop() {
  job_->RequestStop(world().Now());
  SendAll();
}

// ------------------------------------------------------------ what the job asks for

void SimScheduler::StartPlanning(const scheduler::PlanInput&) {
  Later(world().UpTo(kPlanningMax), [this, beginnings = beginnings_] {
    if (beginnings != beginnings_) return;
    job_->On(world().Now(), scheduler::PlanMade{options_.plan});
    SendAll();
  });
}

Result<std::string> SimScheduler::BeginCheckpoint(Step step) {
  DT_TRY(const std::string folder, checkpoints_->Begin(step));
  return std::filesystem::path(folder).filename().string();
}

Result<std::string> SimScheduler::CommitCheckpoint(const scheduler::Manifest& manifest, bool best) {
  Result<std::string> folder = checkpoints_->Commit(manifest, best);
  if (dies_committing_) Kill();
  return folder;
}

Status SimScheduler::KeepGeneration(Generation generation) {
  options_.disk.generation = generation;
  return OkStatus();
}

}  // namespace dt::sim
