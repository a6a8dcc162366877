#include "test/sim/cluster/sim_scheduler.h"

#include <filesystem>

#include "common/base/check.h"
#include "common/control/packet.h"

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

Result<std::optional<scheduler::JobOptions::Checkpoint>> SimScheduler::CheckpointToStartFrom()
    const {
  std::optional<scheduler::JobOptions::Checkpoint> from;
  if (!options_.resume) return from;
  const JobConfig& job = options_.job;
  DT_TRY(const std::optional<std::string> folder, scheduler::NewestCheckpoint(job.checkpoint.dir));
  if (!folder.has_value()) return from;
  DT_TRY(scheduler::Manifest manifest, scheduler::ReadManifest(*folder));
  DT_TRY_STATUS(scheduler::CheckSameJob(manifest, job, *folder));
  return {{{std::filesystem::canonical(*folder).string(), std::move(manifest)}}};
}

Status SimScheduler::Open() {
  if (!options_.disk.record.empty()) {
    DT_TRY(scheduler::JobRecord record,
           scheduler::DecodeJobRecord(std::as_bytes(std::span(options_.disk.record))));
    return Continue(std::move(record));
  }
  const JobConfig& job = options_.job;
  DT_TRY(std::optional<scheduler::JobOptions::Checkpoint> from, CheckpointToStartFrom());
  std::optional<scheduler::BestCheckpoint> best;
  std::optional<Step> resumed;
  if (from.has_value()) {
    DT_TRY(best, scheduler::BestOfResumed(from->folder, from->manifest));
    resumed = from->manifest.schedule.step;
  }
  DT_TRY(checkpoints_, scheduler::CheckpointStore::Open(
                           {job.checkpoint.dir, job.checkpoint.keep, resumed, std::move(best)}));
  Generation& generation = options_.disk.generation;
  generation = Generation(generation.value() + 1);
  const scheduler::JobOptions options{job, scheduler::Goal::kTrain, options_.term, generation,
                                      std::move(from)};
  JobEnvironment& environment = *this;
  job_.emplace(options, environment, world().Now());
  return OkStatus();
}

// The checkpoint to start from may be gone, once it is loaded and others have followed.
Status SimScheduler::Continue(scheduler::JobRecord record) {
  const JobConfig& job = options_.job;
  std::optional<scheduler::JobOptions::Checkpoint> from;
  if (!record.training.has_value() || !record.training->loaded) {
    DT_TRY(from, CheckpointToStartFrom());
  }
  const std::string& last =
      record.last_checkpoint.empty() ? record.resumed_from : record.last_checkpoint;
  std::optional<Step> newest;
  if (!last.empty()) {
    DT_TRY(const scheduler::Manifest manifest, scheduler::ReadManifest(last));
    newest = manifest.schedule.step;
  }
  DT_TRY(checkpoints_, scheduler::CheckpointStore::Open({.dir = job.checkpoint.dir,
                                                         .keep = job.checkpoint.keep,
                                                         .resumed = newest,
                                                         .best = {},
                                                         .continues = true}));
  const scheduler::JobOptions options{job, scheduler::Goal::kTrain, options_.term,
                                      options_.disk.generation, std::move(from)};
  JobEnvironment& environment = *this;
  job_.emplace(options, environment, std::move(record), world().Now());
  return OkStatus();
}

void SimScheduler::OnMessage(const Frames& message) {
  Result<Packet> packet =
      DecodePacket(message, [this](uint64_t session) { return router_.PayloadBytesMax(session); });
  DT_CHECK(packet.ok());
  const TimePoint now = world().Now();
  const std::string peer = AddressOf(packet->session);
  for (auto& arrived : router_.OnPacket(now, peer, *std::move(packet))) {
    job_->On(now, arrived.from, std::move(arrived.message));
  }
  SendAll();
}

// What messages follow from is on the disk before anybody hears of it.
void SimScheduler::SendAll() {
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

void SimScheduler::RequestStop() {
  job_->RequestStop(world().Now());
  SendAll();
}

// ------------------------------------------------------------ what the job asks for

void SimScheduler::StartPlanning(const scheduler::PlanInput&) {
  Later(world().UpTo(kPlanningMax), [this] {
    job_->On(world().Now(), scheduler::PlanMade{options_.plan});
    SendAll();
  });
}

Result<std::string> SimScheduler::BeginCheckpoint(Step step) {
  DT_TRY(const std::string folder, checkpoints_->Begin(step));
  return std::filesystem::path(folder).filename().string();
}

Result<std::string> SimScheduler::CommitCheckpoint(const scheduler::Manifest& manifest, bool best) {
  return checkpoints_->Commit(manifest, best);
}

Status SimScheduler::KeepGeneration(Generation generation) {
  options_.disk.generation = generation;
  return OkStatus();
}

}  // namespace dt::sim
