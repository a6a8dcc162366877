#include "scheduler/elastic/server_recovery.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/log.h"
#include "common/base/text.h"
#include "scheduler/membership/suspects.h"
#include "scheduler/shards/chains.h"

namespace dt::scheduler {
namespace {

// A successor is refused if the member is not away after this many leases. A member that has not
// sent a heartbeat yet has two leases.
constexpr int kSuccessorLeases = 3;

double InSeconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string Silence(TimePoint heard, TimePoint now) {
  return fmt::format("has not been heard of for {:.1f} s", SecondsBetween(heard, now));
}

}  // namespace

bool ServerRecovery::CanReplace(const Member& member) const {
  return member.role() == Role::kServer && member.join.server_token != 0;
}

bool ServerRecovery::MayComeBack(const Member& member, const Loss& loss) const {
  const bool expected = loss.fate == Fate::kSilent || loss.fate == Fate::kReplaced;
  return expected && CanReplace(member);
}

std::optional<ServerRecovery::Loss> ServerRecovery::CheckLeases(TimePoint now) const {
  const Member* const silent = job_.members.Lost(now);
  if (silent == nullptr) return AwayTooLong(now);
  const Presence& its = job_.members.presence(silent->id);
  const std::string how =
      Silence(its.heard, now) +
      (its.claimed_since.has_value() ? ", and another process has its addresses" : "");
  return Loss{silent->id, how, Fate::kSilent};
}

std::optional<ServerRecovery::Loss> ServerRecovery::AwayTooLong(TimePoint now) const {
  for (const Member* server : job_.members.OfRole(Role::kServer)) {
    const Presence& presence = job_.members.presence(server->id);
    if (!presence.away_since.has_value()) continue;
    if (now - *presence.away_since <= job_.options.job.cluster.wait_for_server) continue;
    return Loss{server->id, Silence(presence.heard, now)};
  }
  return std::nullopt;
}

std::optional<ServerRecovery::Loss> ServerRecovery::StartsTooLong(TimePoint now) {
  for (const Member* server : job_.members.OfRole(Role::kServer)) {
    if (server->ready || HasShards(job_.record.map, server->id)) {
      starting_since_.erase(server->id);
      continue;
    }
    const TimePoint since = starting_since_.try_emplace(server->id, now).first->second;
    if (now - since <= job_.options.job.cluster.wait_for_server) continue;
    return Loss{server->id, fmt::format("has not started in {:.1f} s", SecondsBetween(since, now))};
  }
  return std::nullopt;
}

// Those that complain may not have noticed yet that the server answers again.
std::optional<ServerRecovery::Loss> ServerRecovery::CheckSuspects(TimePoint now) {
  if (const std::optional<Loss> late = StartsTooLong(now)) return late;
  const ShardMap& map = job_.record.map;
  const Duration lease = job_.options.job.cluster.lease;
  const std::vector<Suspect> suspects = SuspectsOf(job_.members, map, now, lease);
  std::erase_if(suspected_since_, [&](const auto& entry) {
    return std::ranges::count(suspects, entry.first, &Suspect::id) == 0;
  });
  for (const Suspect& suspect : suspects) {
    if (!suspected_since_.try_emplace(suspect.id, now).second) continue;
    LogWarn("job.server_suspected",
            {{"who", job_.members.Find(suspect.id)->Name()}, {"why", suspect.how}});
  }
  const auto since = [&](const Suspect& suspect) { return suspected_since_.at(suspect.id); };
  for (const Suspect& suspect : Removable(suspects, map)) {
    if (now - since(suspect) >= lease / 2) return Loss{suspect.id, suspect.how};
  }
  for (const Suspect& suspect : suspects) {
    if (now - since(suspect) > job_.options.job.cluster.wait_for_server) {
      return Loss{suspect.id, suspect.how};
    }
  }
  return std::nullopt;
}

void ServerRecovery::NoteGone(TimePoint now, const Member& member, Outbox::Details details) {
  if (!gone_since_.try_emplace(member.id, now).second) return;
  details.insert(details.begin(), {"id", int64_t{member.id.value()}});
  job_.out.AddEvent(now, "server_lost", std::move(details));
}

void ServerRecovery::SetAway(TimePoint now, const Member& member, std::string_view why) {
  job_.members.SetAway(now, member.id);
  NoteGone(now, member, {{"how", std::string(why)}});
  LogWarn("job.waits_for_server",
          {{"who", member.Name()},
           {"why", why},
           {"seconds", InSeconds(job_.options.job.cluster.wait_for_server)}});
}

void ServerRecovery::OnRecovered(TimePoint now, const Member& member) {
  const auto gone = gone_since_.find(member.id);
  if (gone == gone_since_.end()) return;
  const double seconds = SecondsBetween(gone->second, now);
  gone_since_.erase(gone);
  job_.out.AddEvent(now, "recovered", {{"id", int64_t{member.id.value()}}, {"seconds", seconds}});
  LogInfo("job.server_recovered", {{"who", member.Name()}, {"seconds", Rounded(seconds, 2)}});
}

void ServerRecovery::AddSuccessor(TimePoint now, const JoinMessage& join) {
  const Member& member = *job_.members.FindToken(join.server_token);
  successors_.push_back({join, now, member.incarnation()});
}

void ServerRecovery::ForgetSuccessor(const std::string& host, int64_t pid) {
  std::erase_if(successors_, [&](const Successor& successor) {
    return successor.join.pid == pid && successor.join.host == host;
  });
}

std::vector<JoinMessage> ServerRecovery::TakeSuccessorsOfNobody() {
  std::vector<JoinMessage> joins;
  std::erase_if(successors_, [&](const Successor& successor) {
    const bool nobody = job_.members.FindToken(successor.join.server_token) == nullptr;
    if (nobody) joins.push_back(successor.join);
    return nobody;
  });
  return joins;
}

std::vector<JoinMessage> ServerRecovery::TakeSuccessors() {
  std::vector<JoinMessage> joins;
  for (const Successor& successor : std::exchange(successors_, {})) joins.push_back(successor.join);
  return joins;
}

std::vector<ProcessId> ServerRecovery::SettleSuccessors(TimePoint now) {
  std::vector<ProcessId> replaced;
  for (Successor& successor : std::exchange(successors_, {})) {
    const JoinMessage& join = successor.join;
    const Member& member = *job_.members.FindToken(join.server_token);
    // A successor before it may have got the place and died: then the wait begins again.
    if (std::exchange(successor.predecessor, member.incarnation()) != member.incarnation()) {
      successor.since = now;
    }
    Status refusal;
    if (job_.members.presence(member.id).away_since.has_value()) {
      refusal = Replace(now, member, join);
      if (refusal.ok()) replaced.push_back(member.id);
    } else if (now - successor.since > kSuccessorLeases * job_.options.job.cluster.lease) {
      refusal = WithHint(Unavailable("{} lives, and has this directory", member.Name()),
                         "end it first, or give this server a cluster.server.dir of its own");
    } else {
      successors_.push_back(std::move(successor));
    }
    if (!refusal.ok()) admission_.Refuse(now, join.incarnation, join.role, refusal);
  }
  return replaced;
}

Status ServerRecovery::Replace(TimePoint now, const Member& member, const JoinMessage& join) {
  const Incarnation before = member.incarnation();
  const std::string was = member.Name();
  DT_TRY_STATUS(job_.members.Return(now, member.id, join));
  // Should the old process still live, it must not serve.
  const Status replaced = Unavailable("another process has taken the place of {}", was);
  job_.out.Send(before, StopMessage{replaced.code(), ProblemOf(replaced)});
  job_.out.Send(before, RefusedMessage{replaced.code(), ProblemOf(replaced)});
  NoteGone(now, member, {});
  LogInfo("member.returned", {{"who", member.Name()}, {"was", was}});
  admission_.Welcome(member);
  return OkStatus();
}

void ServerRecovery::RefuseSuccessors(TimePoint now, const Status& why) {
  for (const Successor& successor : std::exchange(successors_, {})) {
    admission_.Refuse(now, successor.join.incarnation, successor.join.role, why);
  }
}

}  // namespace dt::scheduler
