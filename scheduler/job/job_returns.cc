// Returns to the last checkpoint, when something is lost that no living process has. The job begins
// again, as if it had just been started from that checkpoint: in a new generation, with all
// processes that join again, the same ones and others. What is sure of this scheduler's own
// decisions stays: what the user wants, the events, which processes were removed.
#include <algorithm>

#include "common/base/log.h"
#include "common/control/link_core.h"
#include "scheduler/job/job.h"

namespace dt::scheduler {
namespace {

using Expected = ReturnsRecord::Expected;
using Fate = ServerRecovery::Fate;

// Any number other than those of the runs before.
uint64_t NextRun(uint64_t run) { return run + 0x9E3779B97F4A7C15; }

bool Among(const std::vector<Expected>& expected, Role role) {
  return std::ranges::count(expected, role, &Expected::role) > 0;
}

}  // namespace

// A job that cannot even reach its next checkpoint ends at last.
bool Job::MayReturn() const {
  return options_.may_return && options_.goal == Goal::kTrain && !stopping() &&
         phase() != JobPhase::kEnded && record_.returns.in_a_row < options_.job.cluster.restarts;
}

std::vector<Expected> Job::ExpectedWithout(const ServerRecovery::Loss& loss) const {
  std::vector<Expected> expected;
  for (const Member& member : members_.members()) {
    if (member.draining) continue;
    Expected back{member.role(), member.join.host, member.join.pid};
    if (member.id == loss.id) {
      if (loss.fate == Fate::kUseless) continue;
      if (loss.fate == Fate::kReplaced) back.pid = 0;
    }
    expected.push_back(std::move(back));
  }
  return expected;
}

void Job::Return(TimePoint now, const ServerRecovery::Loss& loss) {
  const Member& lost = *members_.Find(loss.id);
  std::vector<Expected> expected = ExpectedWithout(loss);
  if (!Among(expected, Role::kServer) || !Among(expected, Role::kWorker)) {
    return FailLost(now, lost, loss.how);
  }
  if (!recovery_.IsGone(lost.id)) {
    out_.AddEvent(now, fmt::format("{}_lost", NameOf(lost.role())),
                  {{"id", int64_t{lost.id.value()}}, {"how", loss.how}});
  }
  BeginAgain(now, fmt::format("{} {}", lost.Name(), loss.how), std::move(expected));
}

void Job::BeginAgain(TimePoint now, const std::string& why, std::vector<Expected> expected) {
  const std::string& last =
      record_.last_checkpoint.empty() ? record_.resumed_from : record_.last_checkpoint;
  Result<std::optional<JobOptions::Checkpoint>> to =
      context_.environment.CheckpointToReturnTo(last, record_.returns.damaged);
  const Generation generation(record_.generation.value() + 1);
  Status ready = to.status();
  if (ready.ok()) ready = context_.environment.KeepGeneration(generation);
  if (!ready.ok()) return Fail(now, Prefixed(ready, why + ", and the job cannot begin again"));

  const Step step = to->has_value() ? (*to)->manifest.schedule.step : 0;
  out_.AddEvent(now, "returns", {{"step", static_cast<int64_t>(step)}, {"why", why}});
  LogWarn("job.returns_to_checkpoint",
          {{"step", step}, {"folder", to->has_value() ? (*to)->folder : "none"}, {"why", why}});
  const Status again = Again("the job returns to step {}: {}", step, why);
  JobRecord next{.generation = generation, .run = NextRun(record_.run)};
  next.gone = record_.gone;
  for (const Member& member : members_.members()) {
    next.gone.push_back({member.incarnation(), why, false, member.role(), true});
    out_.Send(member, StopMessage{again.code(), ProblemOf(again)});
  }
  next.wanted = record_.wanted;
  next.returns = record_.returns;
  ++next.returns.count;
  ++next.returns.in_a_row;
  next.returns.why = why;
  next.returns.expected = std::move(expected);
  if (to->has_value()) next.resumed_from = next.last_checkpoint = (*to)->folder;
  next.begins_from = record_.begins_from;
  next.stream_begins = record_.stream_begins;
  next.events = record_.events;
  record_.phase = JobPhase::kEnded;
  beginning_ = Beginning{std::move(next), *std::move(to), recovery_.TakeSuccessors()};
}

// While processes gather, another may take the place of one that is lost.
bool Job::Vacate(TimePoint now, const ServerRecovery::Loss& loss) {
  if (phase() != JobPhase::kGathering || loss.fate == Fate::kEnded || !options_.may_return) {
    return false;
  }
  const Member& lost = *members_.Find(loss.id);
  const std::string why = fmt::format("{} {}", lost.Name(), loss.how);
  LogWarn("job.waits_for_another", {{"why", why}});
  out_.AddEvent(now, fmt::format("{}_lost", NameOf(lost.role())),
                {{"id", int64_t{lost.id.value()}}, {"how", loss.how}});
  record_.gone.push_back({lost.incarnation(), why, false, lost.role(), true});
  DismissIfGone(lost.incarnation());
  recovery_.Forget(lost.id);
  members_.Remove(lost.id);
  JoinOrphans(now);
  return true;
}

// The job no longer waits for a process that its supervisor does not start again.
void Job::OnEndBeforeJoin(TimePoint now, const std::string& host, const ProcessEnd& end) {
  std::vector<Expected>& expected = record_.returns.expected;
  const auto found = std::ranges::find_if(
      expected, [&](const Expected& each) { return each.pid == end.pid && each.host == host; });
  const bool waited_for = record_.returns.count == 0 || found != expected.end();
  if (!waited_for) return;
  if (end.returns) {
    if (found != expected.end()) found->pid = 0;
    return;
  }
  if (found != expected.end()) {
    const Role role = found->role;
    expected.erase(found);
    if (Among(expected, role)) return;
  }
  Fail(now, WithHint(Unavailable("{} (pid {}) {}", end.name, end.pid, end.how),
                     record_.returns.count == 0 ? "it had not joined yet; see its log"
                                                : "it had not joined again yet; see its log"));
}

bool Job::ReturnFromDamaged(TimePoint now, const Member& from, const Status& why) {
  if (why.code() != StatusCode::kDataLoss || !MayReturn() || record_.returns.count == 0) {
    return false;
  }
  const bool loads = std::ranges::any_of(record_.orders.out, [](const OrdersOut::Out& out) {
    return std::holds_alternative<LoadOrder>(out.order.what);
  });
  if (!loads || record_.resumed_from.empty()) return false;
  record_.returns.damaged.insert(record_.resumed_from);
  // It is not the process that has failed: it joins again as the others do.
  BeginAgain(now, ToText(why), ExpectedWithout({from.id, "", Fate::kSilent}));
  return true;
}

bool Job::ReturnWithoutValues(TimePoint now, const Status& why) {
  if (why.code() != StatusCode::kUnavailable || !MayReturn()) return false;
  BeginAgain(now, ToText(why), ExpectedWithout({}));
  return true;
}

void Job::NoteReturned(TimePoint now) {
  if (record_.returns.count == 0) return;
  const double seconds = SecondsBetween(began_, now);
  out_.AddEvent(now, "returned", {{"seconds", seconds}});
  LogInfo("job.returned", {{"seconds", seconds}});
}

}  // namespace dt::scheduler
