// Handles processes that end or fall silent. The loss of a worker ends the job. So does that of a
// server, unless it keeps a log: then the job waits until a process with its claim (the name of its
// directory) takes its place. A member that is present is never replaced, so that nobody who has
// learned its claim can displace it.
//
//   member ──ended, silent for a lease, stopped──▶ away ──another with its claim, Ready──▶ member
//                                                   └─wait_for_server──▶ failed
#include <algorithm>

#include "common/base/log.h"
#include "scheduler/service/job_state.h"

namespace dt::scheduler {

// A claimant is refused if the member is not away after this many leases. A member whose first
// heartbeat is still to come has two.
static constexpr int kClaimLeases = 3;

bool JobState::WaitsFor(const Member& member) const {
  return member.role() == Role::kServer && member.join.claim != 0;
}

void JobState::CheckLeases(TimePoint now) {
  const Member* lost = membership_.Lost(now);
  for (; lost != nullptr && WaitsFor(*lost); lost = membership_.Lost(now)) {
    SetAway(now, *lost,
            fmt::format("has not been heard of for {:.1f} s", SecondsBetween(lost->heard, now)));
  }
  Duration silence{};
  if (lost != nullptr) silence = now - lost->heard;
  for (const Member* server : membership_.OfRole(Role::kServer)) {
    if (lost != nullptr || !server->away_since.has_value()) continue;
    if (now - *server->away_since <= options_.job.cluster.wait_for_server) continue;
    lost = server;
    silence = now - server->heard;
  }
  if (lost == nullptr) return;
  FailLost(now, *lost,
           fmt::format("has not been heard of for {:.1f} s",
                       std::chrono::duration<double>(silence).count()));
}

// Whoever started the process has seen its end: no lease is waited for.
void JobState::OnProcessEnd(TimePoint now, const std::string& host, const ProcessEnd& end) {
  if (phase_ == JobPhase::kEnded) return;
  std::erase_if(claimants_, [&](const Claimant& claimant) {
    return claimant.join.pid == end.pid && claimant.join.host == host;
  });
  const Member* const member = membership_.FindProcess(host, end.pid);
  if (member == nullptr) {
    if (phase_ != JobPhase::kGathering || end.returns) return;
    return Fail(now, WithHint(Unavailable("{} (pid {}) {}", end.name, end.pid, end.how),
                              "it had not joined yet; see its log"));
  }
  if (WaitsFor(*member) && end.returns) return SetAway(now, *member, end.how);
  FailLost(now, *member, end.how);
}

void JobState::FailLost(TimePoint now, const Member& member, const std::string& how) {
  if (!lost_at_.contains(member.id)) {
    AddEvent(now, fmt::format("{}_lost", NameOf(member.role())),
             {{"id", int64_t{member.id.value()}}, {"how", how}});
  }
  const std::string resume = ResumeHint();
  Fail(now, WithHint(Unavailable("{} {}", member.Name(), how),
                     "see its log" + (resume.empty() ? "" : "; " + resume)));
}

void JobState::SetAway(TimePoint now, const Member& member, std::string_view why) {
  membership_.SetAway(now, member.id);
  if (lost_at_.try_emplace(member.id, now).second) {
    AddEvent(now, "server_lost", {{"id", int64_t{member.id.value()}}, {"how", std::string(why)}});
  }
  LogWarn(
      "job.waits_for_server",
      {{"who", member.Name()},
       {"why", why},
       {"seconds", std::chrono::duration<double>(options_.job.cluster.wait_for_server).count()}});
}

void JobState::NoteReturn(TimePoint now, const Member& member) {
  const auto lost = lost_at_.find(member.id);
  if (lost == lost_at_.end()) return;
  const double seconds = SecondsBetween(lost->second, now);
  lost_at_.erase(lost);
  AddEvent(now, "recovered", {{"id", int64_t{member.id.value()}}, {"seconds", seconds}});
  LogInfo("job.server_recovered", {{"who", member.Name()}, {"seconds", Rounded(seconds, 2)}});
}

void JobState::SettleClaims(TimePoint now) {
  for (Claimant& claimant : std::exchange(claimants_, {})) {
    const JoinMessage& join = claimant.join;
    const Member& member = *membership_.FindClaim(join.claim);
    Status refusal;
    if (member.away_since.has_value()) {
      refusal = TakeBack(now, member, join);
    } else if (now - claimant.since > kClaimLeases * options_.job.cluster.lease) {
      refusal = WithHint(Unavailable("{} lives, and has this directory", member.Name()),
                         "end it first, or give this server a cluster.server.dir of its own");
    } else {
      claimants_.push_back(std::move(claimant));
    }
    if (!refusal.ok()) Refuse(now, join.incarnation, join, refusal);
  }
}

Status JobState::TakeBack(TimePoint now, const Member& member, const JoinMessage& join) {
  const Incarnation before = member.incarnation();
  const std::string was = member.Name();
  DT_TRY_STATUS(membership_.Return(now, member.id, join));
  // Should it live still, it must not serve.
  const Status replaced = Unavailable("another process has taken the place of {}", was);
  outgoing_.push_back({before, StopMessage{replaced.code(), ProblemOf(replaced)}});
  outgoing_.push_back({before, RefusedMessage{replaced.code(), ProblemOf(replaced)}});
  if (lost_at_.try_emplace(member.id, now).second) {
    AddEvent(now, "server_lost", {{"id", int64_t{member.id.value()}}});
  }
  LogInfo("member.returned", {{"who", member.Name()}, {"was", was}});
  Send(member, WelcomeMessage{member.id, options_.term, options_.job.cluster.lease, true});
  if (phase_ < JobPhase::kStarting) {
    NoteReturn(now, member);
    return OkStatus();
  }
  ready_.erase(member.id);
  const Status save = LoseWriter(now, member.id);
  if (!save.ok()) Fail(now, save);
  if (kept_.has_value()) Send(member, *kept_);
  Send(member, start_);
  for (OrderMessage& order : board_.OutTo(member.id)) Send(member, std::move(order));
  return OkStatus();
}

// A process that has died leaves a checkpoint half written, whose cut nobody can make again.
Status JobState::LoseWriter(TimePoint now, ProcessId id) {
  if (writing_.has_value()) {
    if (writing_->servers.erase(id) == 0) return OkStatus();
    writing_->lost = true;
    return writing_->servers.empty() ? CommitSave(now) : OkStatus();
  }
  const auto saves = [this](ProcessId one) {
    return std::ranges::any_of(board_.OutTo(one), [](const OrderMessage& order) {
      return std::holds_alternative<SaveOrder>(order.what);
    });
  };
  // It has answered the order, and others have not.
  const bool cut = !saves(id) && std::ranges::any_of(membership_.members(), saves, &Member::id);
  if (cut && !saved_early_.contains(id)) writers_lost_.insert(id);
  return OkStatus();
}

// A log that is too long is cut by a checkpoint.
void JobState::TakeReport(TimePoint now, const Member& from, const HeartbeatMessage& report) {
  const uint64_t most = options_.job.checkpoint.log.max_bytes;
  if (report.log_bytes <= most || from.role() != Role::kServer || !course_.has_value()) return;
  // Being cut, or just cut, which its reports do not show yet.
  if (writing_.has_value() || now - kept_at_ < options_.job.cluster.lease) return;
  course_->RequestSave();
}

void JobState::TellKept(TimePoint now, Step step, const std::string& folder) {
  if (options_.job.checkpoint.durability != Durability::kLog) return;
  kept_ = KeptMessage{generation_, step, folder};
  kept_at_ = now;
  for (const Member* server : membership_.OfRole(Role::kServer)) Send(*server, *kept_);
}

}  // namespace dt::scheduler
