#include "scheduler/elastic/admission.h"

#include "common/base/log.h"

namespace dt::scheduler {
namespace {

constexpr Duration kRefusalLogs = seconds(1);  // At most one line per second about refused joins.

}  // namespace

void Admission::Join(TimePoint now, const JoinMessage& join) {
  const bool known = job_.members.Find(join.incarnation) != nullptr;
  const Result<const Member*> joined = job_.members.Join(now, join);
  if (!joined.ok()) return Refuse(now, join.incarnation, join.role, joined.status());
  const Member& member = **joined;
  Welcome(member);
  if (known) return;
  job_.out.AddEvent(now, fmt::format("{}_joined", NameOf(join.role)),
                    {{"id", int64_t{member.id.value()}}, {"host", join.host}});
  LogInfo("member.joined", {{"who", member.Name()}});
}

void Admission::Welcome(const Member& member) {
  const Duration lease = job_.options.job.cluster.lease;
  job_.out.Send(
      member, WelcomeMessage{member.id, job_.record.term, lease, member.returned, job_.record.run});
}

void Admission::Refuse(TimePoint now, Incarnation to, Role role, const Status& why) {
  job_.out.Send(to, RefusedMessage{why.code(), ProblemOf(why)});
  ++refused_;
  if (now < log_again_) return;
  log_again_ = now + kRefusalLogs;
  // A process that joins after the end of the job is harmless, hence no warning.
  const auto log = job_.record.phase == JobPhase::kEnded ? LogInfo : LogWarn;
  log("member.refused",
      {{"role", NameOf(role)}, {"why", ToText(why)}, {"refused_so_far", refused_}});
}

}  // namespace dt::scheduler
