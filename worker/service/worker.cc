#include "worker/service/worker.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "common/base/log.h"
#include "common/base/pause.h"
#include "common/base/thread_name.h"
#include "common/control/control_link.h"
#include "worker/engine/device_kernels.h"
#include "worker/service/control_rendezvous.h"
#include "worker/service/worker_core.h"

namespace dt::worker {
namespace {

constexpr Duration kWatchEvery = seconds(1);
// A slice that is computed cannot be interrupted.
constexpr Duration kEndTimeout = seconds(30);

// Begins the keys by which the workers of a view find each other.
std::string PrefixOf(std::string_view what, const View& view) {
  return fmt::format("{}/{}/{}", what, view.generation.value(), view.number.value());
}

class WorkerRole : public Worker {
 public:
  struct Shared {
    LatestView latest;
    WorkerActivity activity;
  };
  WorkerRole(const WorkerOptions& options, std::unique_ptr<Shared> shared,
             std::unique_ptr<ControlLink> link, Status devices)
      : options_(options),
        shared_(std::move(shared)),
        link_(std::move(link)),
        devices_(std::move(devices)) {}

  Status Run(std::stop_token stop) override {
    const std::jthread watch([this](const std::stop_token& done) {
      NameThread("hang-watch");
      AbortIfHung(done);
    });
    const auto connect = [this](const View& view, uint32_t rank, const MeshLimits& limits) {
      ControlRendezvous rendezvous(*link_, limits.interrupted);
      return ConnectMesh(rendezvous, {.rank = rank,
                                      .size = static_cast<uint32_t>(view.workers.size()),
                                      .host = options_.host,
                                      .prefix = PrefixOf("mesh", view),
                                      .limits = limits});
    };
    const auto connect_cards = [this](const View& view, uint32_t rank, const MeshLimits& limits) {
      return [=, this, prefix = PrefixOf("cards", view)](std::span<const RankGroup> groups,
                                                         CudaAccelerator& card) {
        ControlRendezvous rendezvous(*link_, limits.interrupted);
        return ConnectNccl(groups, {.card = card,
                                    .rank = rank,
                                    .rendezvous = rendezvous,
                                    .prefix = prefix,
                                    .limits = limits});
      };
    };
    return RunWorker({.options = options_,
                      .link = *link_,
                      .latest = shared_->latest,
                      .activity = shared_->activity,
                      .data_network = options_.data_network != nullptr ? *options_.data_network
                                                                       : options_.network,
                      .connect = connect,
                      .connect_cards = connect_cards,
                      .devices = devices_},
                     std::move(stop));
  }

 private:
  // Its waits end with the link. A thread that hangs cannot be joined: the process aborts, and its
  // supervisor starts it again. One that does nothing any more only takes its time to end. `done`:
  // Run returns.
  void AbortIfHung(const std::stop_token& done) const {
    while (!options_.one_process && Pause(kWatchEvery, done)) {
      if (!link_->ended()) continue;
      if (!Pause(kEndTimeout, done)) return;
      HeartbeatMessage report;
      shared_->activity.AddTo(SystemClock().Now(), report);
      const auto train = std::ranges::find(report.threads, "train", &ThreadReport::name);
      if (train == report.threads.end()) continue;
      LogError("worker.hangs", {{"doing", train->doing}, {"seconds", train->seconds}});
      std::abort();
    }
  }

  const WorkerOptions options_;
  const std::unique_ptr<Shared> shared_;  // With the link's thread.
  const std::unique_ptr<ControlLink> link_;
  const Status devices_;  // OK if what cluster.devices asks for is there.
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
  // If the accelerator that was asked for is absent, the job ends; but the worker joins first, so
  // that the scheduler hears why.
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
  auto shared = std::make_unique<WorkerRole::Shared>();
  link_options.on_map = [to = shared.get()](ShardMap map) { to->latest.Set(std::move(map)); };
  link_options.on_view = [to = shared.get()](ViewNumber number) { to->latest.Announce(number); };
  link_options.on_heartbeat = [of = shared.get()](HeartbeatMessage& heartbeat) {
    of->activity.AddTo(SystemClock().Now(), heartbeat);
  };
  DT_TRY(auto link, ControlLink::Open(link_options));
  if (!options.one_process) SetLogProcess("worker", link->welcome().id.value());
  return std::make_unique<WorkerRole>(options, std::move(shared), std::move(link),
                                      std::move(absent));
}

}  // namespace dt::worker
