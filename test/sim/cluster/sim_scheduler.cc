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
  const Status opened = Open();
  DT_CHECK_MSG(opened.ok(), "{}", ToText(opened));
  wires.Listen(kSchedulerAddress, node, [this](const std::string&, const Frames& message) {
    WhenAwake([this, message] { OnMessage(message); });
  });
  Later(kTick, [this] { Tick(); });
}

Status SimScheduler::Open() {
  const JobConfig& job = options_.job;
  std::optional<scheduler::JobOptions::Checkpoint> from;
  std::optional<scheduler::BestCheckpoint> best;
  std::optional<std::string> folder;
  if (options_.resume) {
    DT_TRY(folder, scheduler::NewestCheckpoint(job.checkpoint.dir));
  }
  if (folder.has_value()) {
    DT_TRY(scheduler::Manifest manifest, scheduler::ReadManifest(*folder));
    DT_TRY_STATUS(scheduler::CheckSameJob(manifest, job, *folder));
    DT_TRY(best, scheduler::BestOfResumed(*folder, manifest));
    from = {std::filesystem::canonical(*folder).string(), std::move(manifest)};
  }
  std::optional<Step> resumed;
  if (from.has_value()) resumed = from->manifest.schedule.step;
  DT_TRY(checkpoints_, scheduler::CheckpointStore::Open(
                           {job.checkpoint.dir, job.checkpoint.keep, resumed, std::move(best)}));
  options_.generation = Generation(options_.generation.value() + 1);
  const scheduler::JobOptions options{job, scheduler::Goal::kTrain, options_.term,
                                      options_.generation, std::move(from)};
  JobEnvironment& environment = *this;
  job_.emplace(options, environment, world().Now());
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

void SimScheduler::SendAll() {
  for (const scheduler::Outgoing& out : job_->TakeOutgoing()) {
    router_.Send(world().Now(), out.to, out.message);
  }
}

void SimScheduler::Tick() {
  const TimePoint now = world().Now();
  job_->Tick(now);
  SendAll();
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
  options_.generation = generation;
  return OkStatus();
}

}  // namespace dt::sim
