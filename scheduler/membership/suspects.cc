#include "scheduler/membership/suspects.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

namespace dt::scheduler {
namespace {

// Whether `from` sends requests, or records, to `to`. A worker that does not wait for servers has
// nothing to say; it may wait for other workers.
bool TalksTo(const Member& from, bool waiting, ProcessId to, const ShardMap& map) {
  return std::ranges::any_of(map.chains, [&](const Chain& chain) {
    if (from.role() == Role::kWorker) {
      return waiting && (chain.head() == to || chain.tail() == to);
    }
    const auto at = std::ranges::find(chain.members, to);
    return at != chain.members.end() && at != chain.members.begin() && *(at - 1) == from.id;
  });
}

std::optional<std::string> HowItHangs(const HeartbeatMessage& report, Duration lease) {
  const double limit = std::chrono::duration<double>(lease).count();
  for (size_t e = 0; e < report.executors.size(); ++e) {
    const ExecutorReport& executor = report.executors[e];
    if (!executor.doing.empty() || executor.turn_age <= limit) continue;
    return fmt::format("hangs: its executor {} has not turned for {:.1f} s", e, executor.turn_age);
  }
  return std::nullopt;
}

// It says why it does not answer.
bool IsExcused(const HeartbeatMessage& report, Duration lease) {
  const double limit = std::chrono::duration<double>(lease).count() / 2;
  return std::ranges::any_of(report.executors, [&](const ExecutorReport& executor) {
    return !executor.doing.empty() && executor.turn_age > limit;
  });
}

}  // namespace

std::vector<Suspect> SuspectsOf(const Membership& members, const ShardMap& map, TimePoint now,
                                Duration lease) {
  const auto is_heard = [&](const Member& member) {
    const Presence& its = members.presence(member.id);
    return its.reported && now - its.heard <= lease;
  };
  std::vector<Suspect> suspects;
  for (const Member* const server : members.OfRole(Role::kServer)) {
    if (!is_heard(*server)) continue;  // Its lease decides.
    if (auto how = HowItHangs(members.presence(server->id).report, lease)) {
      suspects.push_back({server->id, *std::move(how)});
      continue;
    }
    if (IsExcused(members.presence(server->id).report, lease)) continue;
    size_t talking = 0, complaining = 0;
    for (const Member& other : members.members()) {
      const HeartbeatMessage& its = members.presence(other.id).report;
      if (!TalksTo(other, its.waiting, server->id, map)) continue;
      ++talking;
      if (is_heard(other) && std::ranges::count(its.unreachable, server->id) != 0) ++complaining;
    }
    if (complaining < 2 || 2 * complaining <= talking) continue;
    suspects.push_back(
        {server->id, fmt::format("does not answer {} of the {} processes that talk to it",
                                 complaining, talking)});
  }
  return suspects;
}

std::vector<Suspect> Removable(const std::vector<Suspect>& suspects, const ShardMap& map) {
  const auto is_suspect = [&](ProcessId id) {
    return std::ranges::count(suspects, id, &Suspect::id) != 0;
  };
  std::vector<Suspect> removable;
  std::ranges::copy_if(suspects, std::back_inserter(removable), [&](const Suspect& suspect) {
    return std::ranges::none_of(map.chains, [&](const Chain& chain) {
      return chain.Has(suspect.id) && std::ranges::all_of(chain.members, is_suspect);
    });
  });
  return removable;
}

}  // namespace dt::scheduler
