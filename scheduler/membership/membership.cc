#include "scheduler/membership/membership.h"

#include <algorithm>

namespace dt::scheduler {

std::string Member::Name() const {
  return fmt::format("{} {} (pid {} on {})", NameOf(role()), id.value(), join.pid, join.host);
}

const DeviceInfo* Member::accelerator() const {
  const auto found = std::ranges::find_if(
      join.devices, [](const DeviceInfo& device) { return device.kind != DeviceKind::kCpu; });
  return found == join.devices.end() ? nullptr : &*found;
}

Membership::Membership(const MembershipNeeds& needs, std::list<Member>& members, TimePoint now)
    : needs_(needs), servers_max_(needs.servers), workers_max_(needs.workers), members_(members) {
  for (const Member& member : members_) presence_[member.id].heard = now;
}

Status Membership::CheckSameJob(const JoinMessage& join) const {
  if (join.wire_version != needs_.wire_version) {
    return WithHint(Invalid("this {} speaks version {} of the messages, the scheduler version {}",
                            NameOf(join.role), join.wire_version, needs_.wire_version),
                    "start all processes of a job from one build");
  }
  if (join.job_fingerprint != needs_.job_fingerprint) {
    return WithHint(
        Invalid("this {} was started with another job than the scheduler", NameOf(join.role)),
        "start all processes with the same job file and the same --set");
  }
  if (join.run != 0 && join.run != needs_.run) {
    return Invalid("this {} is of an earlier run of the job", NameOf(join.role));
  }
  return OkStatus();
}

Status Membership::CheckJoin(const JoinMessage& join) const {
  if (join.role != Role::kServer && join.role != Role::kWorker) {
    return Invalid("a {} cannot join a job", NameOf(join.role));
  }
  DT_TRY_STATUS(CheckSameJob(join));
  const uint32_t wanted = join.role == Role::kServer ? servers_max_ : workers_max_;
  if (OfRole(join.role).size() >= wanted) {
    return WithHint(Invalid("the job already has its {} {}{}", wanted, NameOf(join.role),
                            wanted == 1 ? "" : "s"),
                    fmt::format("cluster.{}s says how many it has", NameOf(join.role)));
  }
  if (join.role == Role::kServer && join.endpoints.empty()) {
    return Invalid("this server names no endpoint");
  }
  return OkStatus();
}

Result<const Member*> Membership::Join(TimePoint now, const JoinMessage& join) {
  if (const Member* known = Find(join.incarnation)) return known;
  DT_TRY_STATUS(CheckJoin(join));
  const ProcessId id = NumberFor(join);
  const auto next = std::ranges::find_if(members_, [&](const Member& m) { return m.id > id; });
  presence_[id].heard = now;
  return &*members_.insert(next, Member{id, join});
}

// REQUIRES: a number of the role is free.
ProcessId Membership::NumberFor(const JoinMessage& join) const {
  const bool serves = join.role == Role::kServer;
  const uint32_t first = serves ? 1 : needs_.servers + 1;
  const auto fits = [&](ProcessId id) {
    const bool first_workers =
        id.value() > needs_.servers && id.value() <= needs_.servers + needs_.workers;
    return id.value() >= first && !(serves && first_workers) && Find(id) == nullptr;
  };
  if (fits(join.id)) return join.id;
  ProcessId number(first);
  while (!fits(number)) number = ProcessId(number.value() + 1);
  return number;
}

const Member* Membership::FindToken(uint64_t token) const {
  const auto found = std::ranges::find_if(
      members_, [&](const Member& m) { return token != 0 && m.join.server_token == token; });
  return found == members_.end() ? nullptr : &*found;
}

Status Membership::Return(TimePoint now, ProcessId id, const JoinMessage& join) {
  DT_TRY_STATUS(CheckSameJob(join));
  Member& member = *FindMutable(id);
  if (join.role != member.role() || join.endpoints != member.join.endpoints) {
    return WithHint(Invalid("{} has come back at other addresses", member.Name()),
                    "start it as before, with the same --listen");
  }
  member.join = join;
  member.ready = false;
  member.returned = true;
  Presence& presence = presence_[id];
  presence.heard = now;
  presence.reported = false;
  presence.away_since.reset();
  presence.claimed_since.reset();
  return OkStatus();
}

void Membership::Remove(ProcessId id) {
  std::erase_if(members_, [&](const Member& member) { return member.id == id; });
  presence_.erase(id);
}

const Member* Membership::FindClaimed(const JoinMessage& join) const {
  const auto found = std::ranges::find_if(members_, [&](const Member& m) {
    return join.role == Role::kServer && m.role() == Role::kServer &&
           m.incarnation() != join.incarnation && m.join.host == join.host &&
           m.join.endpoints == join.endpoints;
  });
  return found == members_.end() ? nullptr : &*found;
}

void Membership::SetClaimed(TimePoint now, ProcessId id) {
  Presence& presence = presence_[id];
  if (!presence.claimed_since.has_value()) presence.claimed_since = now;
}

void Membership::SetAway(TimePoint now, ProcessId id) { presence_[id].away_since = now; }

const Member* Membership::Find(Incarnation incarnation) const {
  const auto found = std::ranges::find(members_, incarnation, &Member::incarnation);
  return found == members_.end() ? nullptr : &*found;
}

Member* Membership::FindMutable(ProcessId id) {
  const auto found = std::ranges::find(members_, id, &Member::id);
  return found == members_.end() ? nullptr : &*found;
}

const Member* Membership::Find(ProcessId id) const {
  const auto found = std::ranges::find(members_, id, &Member::id);
  return found == members_.end() ? nullptr : &*found;
}

const Member* Membership::FindProcess(const std::string& host, int64_t pid) const {
  const auto found = std::ranges::find_if(
      members_, [&](const Member& m) { return m.join.pid == pid && m.join.host == host; });
  return found == members_.end() ? nullptr : &*found;
}

void Membership::Heard(TimePoint now, Incarnation from) {
  const Member* const member = Find(from);
  if (member == nullptr) return;
  Presence& presence = presence_[member->id];
  presence.heard = std::max(presence.heard, now);
  presence.away_since.reset();
  presence.claimed_since.reset();
}

void Membership::Report(Incarnation from, const HeartbeatMessage& report) {
  const Member* const member = Find(from);
  if (member == nullptr) return;
  Presence& presence = presence_[member->id];
  presence.report = report;
  presence.reported = true;
}

bool Membership::complete() const {
  return OfRole(Role::kServer).size() == needs_.servers &&
         OfRole(Role::kWorker).size() == needs_.workers;
}

std::string Membership::Present() const {
  return fmt::format("{} of {} server{} and {} of {} worker{}", OfRole(Role::kServer).size(),
                     needs_.servers, needs_.servers == 1 ? "" : "s", OfRole(Role::kWorker).size(),
                     needs_.workers, needs_.workers == 1 ? "" : "s");
}

const Member* Membership::Lost(TimePoint now) const {
  const Member* lost = nullptr;
  for (const Member& member : members_) {
    const Presence& its = presence(member.id);
    if (its.away_since.has_value()) continue;
    const bool claimed =
        its.claimed_since.has_value() && now - *its.claimed_since > needs_.lease / 2;
    if (!claimed && now - its.heard <= needs_.lease * (its.reported ? 1 : 2)) continue;
    if (lost == nullptr || its.heard < presence(lost->id).heard) lost = &member;
  }
  return lost;
}

MachineMembers Membership::OnFullestMachine() const {
  std::map<std::string_view, MachineMembers> machines;
  MachineMembers fullest;
  for (const Member& member : members_) {
    MachineMembers& there = machines[member.join.host];
    ++(member.role() == Role::kServer ? there.servers : there.workers);
    if (there.servers + there.workers > fullest.servers + fullest.workers) fullest = there;
  }
  return fullest;
}

void Membership::ExtendLeases(TimePoint now, Duration by) {
  for (auto& [id, its] : presence_) {
    its.heard = std::min(now, its.heard + by);
    if (its.claimed_since.has_value()) its.claimed_since = std::min(now, *its.claimed_since + by);
  }
}

std::vector<const Member*> Membership::OfRole(Role role) const {
  std::vector<const Member*> found;
  for (const Member& member : members_) {
    if (member.role() == role) found.push_back(&member);
  }
  return found;
}

}  // namespace dt::scheduler
