#include "server/log/log_keeper.h"

#include "common/base/entropy.h"
#include "common/base/host_name.h"
#include "common/base/log.h"
#include "server/log/record_log_reader.h"

namespace dt::server {

Result<LogKeeper> LogKeeper::Open(const JobConfig& job, const std::string& listen, ProcessId id) {
  DT_TRY(ServerDir dir, ServerDir::Open(job, id));
  LogKeeper keeper(std::move(dir), job.checkpoint.log.sync);
  std::optional<ServerIdentity> identity = keeper.dir_.ReadIdentity(job);
  if (identity.has_value() && identity->listen == listen) {
    keeper.identity_ = *std::move(identity);
  } else {
    keeper.identity_ = {.job_fingerprint = job.fingerprint, .host = HostName(), .listen = listen};
    keeper.BecomeNewServer();
  }
  return keeper;
}

void LogKeeper::BecomeNewServer() {
  dir_.RemoveLog();
  identity_.endpoints.clear();
  while ((identity_.server_token = EntropyBits()) == 0) {
  }
}

Status LogKeeper::SetEndpoints(std::vector<std::string> endpoints) {
  if (identity_.endpoints == endpoints) return OkStatus();
  identity_.endpoints = std::move(endpoints);
  return dir_.SetIdentity(identity_);
}

void LogKeeper::OnWelcome(bool returned) {
  if (!returned) dir_.RemoveLog();
  LogInfo(returned ? "server.returned" : "server.log", {{"dir", dir_.path()}});
}

Result<std::vector<std::optional<LogLocation>>> LogKeeper::LocationsAtStart(
    size_t executors, Generation& generation) {
  DT_TRY(const std::optional<LogBase> base, dir_.ReadBase());
  if (base.has_value() && base->first_segments.size() != executors) {
    return DataLoss("{}/base.json is of {} executors; this server has {}", dir_.path(),
                    base->first_segments.size(), executors);
  }
  base_ = base.value_or(LogBase{generation, 0, "", {}});
  if (base.has_value() && kept_.has_value() && Continues(*kept_)) {
    base_.step = kept_->step;
    base_.folder = kept_->folder;
    base_.taken.reset();
  }
  generation = base_.generation;
  std::vector<std::optional<LogLocation>> locations;
  for (uint32_t i = 0; i < executors; ++i) {
    LogLocation location{.dir = dir_.path(), .executor = i, .sync = sync_, .base = {}};
    if (base.has_value()) {
      location.base =
          LogLocation::Base{base_.step, base_.folder, base_.first_segments[i], base_.taken};
    }
    locations.emplace_back(std::move(location));
  }
  if (!base.has_value()) dir_.RemoveLog();  // Left by a start that was not completed.
  return locations;
}

Status LogKeeper::OnStarted(std::vector<uint64_t> first_segments) {
  LogBase base = base_;
  base.first_segments = std::move(first_segments);
  return SetBase(std::move(base));
}

bool LogKeeper::Continues(const CheckpointCommittedMessage& kept) const {
  return kept.generation == base_.generation && kept.step >= base_.step;
}

Status LogKeeper::SetBase(LogBase base) {
  DT_TRY_STATUS(dir_.SetBase(base));
  base_ = std::move(base);
  for (uint32_t i = 0; i < base_.first_segments.size(); ++i) {
    RemoveSegments(dir_.path(), i, base_.first_segments[i]);
  }
  return OkStatus();
}

}  // namespace dt::server
