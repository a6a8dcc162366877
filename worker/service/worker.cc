#include "worker/service/worker.h"

#include "common/base/log.h"
#include "common/control/control_link.h"
#include "worker/engine/device_kernels.h"
#include "worker/service/control_rendezvous.h"
#include "worker/service/worker_core.h"

namespace dt::worker {
namespace {

// Begins the keys by which the workers of a view find each other.
std::string PrefixOf(std::string_view what, const View& view) {
  return fmt::format("{}/{}/{}", what, view.generation.value(), view.number.value());
}

class WorkerRole : public Worker {
 public:
  WorkerRole(const WorkerOptions& options, std::unique_ptr<LatestView> latest,
             std::unique_ptr<ControlLink> link, Status devices)
      : options_(options),
        latest_(std::move(latest)),
        link_(std::move(link)),
        devices_(std::move(devices)) {}

  Status Run(std::stop_token stop) override {
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
                      .latest = *latest_,
                      .data_network = options_.data_network != nullptr ? *options_.data_network
                                                                       : options_.network,
                      .connect = connect,
                      .connect_cards = connect_cards,
                      .devices = devices_},
                     std::move(stop));
  }

 private:
  const WorkerOptions options_;
  const std::unique_ptr<LatestView> latest_;  // The link's thread writes to it.
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
  auto latest = std::make_unique<LatestView>();
  link_options.on_map = [to = latest.get()](ShardMap map) { to->Set(std::move(map)); };
  link_options.on_view = [to = latest.get()](ViewNumber number) { to->Announce(number); };
  DT_TRY(auto link, ControlLink::Open(link_options));
  if (!options.one_process) SetLogProcess("worker", link->welcome().id.value());
  return std::make_unique<WorkerRole>(options, std::move(latest), std::move(link),
                                      std::move(absent));
}

}  // namespace dt::worker
