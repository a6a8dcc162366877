#include "scheduler/service/find_run.h"

#include <algorithm>

#include "common/base/log.h"
#include "common/control/packet.h"
#include "common/wire/data.h"

namespace dt::scheduler {
namespace {

constexpr Duration kReceive = milliseconds(50);

// Whether a scheduler that shall listen at `listen`, where port 0 stands for any, may listen at
// `address`.
bool Allows(const std::string& listen, const std::string& address) {
  if (listen == address) return true;
  const size_t port = address.rfind(':');
  return port != std::string::npos && address.starts_with("tcp://") &&
         listen == address.substr(0, port) + ":0";
}

bool IsOf(const RunIdentity& run, const JobConfig& job) {
  return run.job_fingerprint == job.fingerprint && run.wire_version == kWireVersion;
}

// Whether a member sends anything. Drops what it sends, because members send again. False at once
// if the record has no members.
bool AnyMemberSpeaks(ServerSocket& socket, const JobRecord& record, Duration within) {
  const TimePoint deadline = SystemClock().Now() + within;
  while (!record.members.empty() && SystemClock().Now() < deadline) {
    const Result<PeerMessage> arrived = socket.Receive(kReceive);
    if (!arrived.ok()) continue;
    const Result<Packet> packet = DecodePacket(arrived->frames);
    if (!packet.ok()) continue;
    const bool known = std::ranges::any_of(record.members, [&](const Member& member) {
      return member.incarnation().value() == packet->session;
    });
    if (known) return true;
  }
  return false;
}

}  // namespace

Result<FoundRun> BindAndFindRun(const JobConfig& job, Network& network, const std::string& listen,
                                bool follows_killed, RunStore& runs) {
  FoundRun found;
  DT_TRY(found.run, runs.Unfinished());
  if (found.run.has_value() && IsOf(found.run->identity, job) &&
      Allows(listen, found.run->identity.address)) {
    Result<std::unique_ptr<ServerSocket>> socket = network.Bind(found.run->identity.address);
    const Status bound = socket.status();
    if (bound.ok()) found.socket = *std::move(socket);
    const JobRecord& record = found.run->record;
    if (found.socket != nullptr &&
        (follows_killed || AnyMemberSpeaks(*found.socket, record, job.cluster.lease))) {
      return found;
    }
    LogInfo("scheduler.run_is_over",
            {{"address", found.run->identity.address},
             {"why", bound.ok() ? "none of its processes speaks" : ToText(bound)}});
  }
  found.run.reset();
  if (found.socket == nullptr) {
    DT_TRY(found.socket, network.Bind(listen));
  }
  return found;
}

}  // namespace dt::scheduler
