#include "scheduler/membership/worker_suspects.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>

namespace dt::scheduler {
namespace {

// A worker that is lost is noticed by its lease before the broken connections to it count.
constexpr int kBrokenLeases = 2;
// For workers that the others wait for. Longer than any step but the strangest takes, and shorter
// than the limit of the workers' own waits (train_stack.cc), after which they know less.
constexpr Duration kPatience = seconds(50);
constexpr int kPatienceLeases = 3;

Duration PatienceFor(Duration lease) { return std::max(kPatience, kPatienceLeases * lease); }

double InSeconds(Duration d) { return std::chrono::duration<double>(d).count(); }

struct Pair {
  ProcessId from, with;  // `with` is 0 if it is not known.
  bool broken = false;
  double seconds = 0;
};

class Pairs {
 public:
  Pairs(const Membership& members, const BegunView& view, TimePoint now, Duration lease)
      : members_(members), view_(view), now_(now), lease_(lease) {
    for (const ProcessId id : view.workers) Add(id);
  }
  const std::vector<Pair>& all() const { return all_; }

  // An asynchronous worker that works at one thing for long, when all others have reported and none
  // works.
  std::optional<Suspect> StandsStill() const {
    std::optional<Suspect> still;
    if (!view_.asynchronous || view_.workers.size() < 2) return still;
    for (const ProcessId id : view_.workers) {
      const HeartbeatMessage* const report = ReportOf(id);
      if (report == nullptr) return std::nullopt;
      const auto train = std::ranges::find(report->threads, "train", &ThreadReport::name);
      const bool works = train != report->threads.end() && !train->waits;
      if (!works) continue;
      if (still.has_value() || !train->in_step) return std::nullopt;
      if (train->seconds < InSeconds(PatienceFor(lease_))) return std::nullopt;
      still = {id, fmt::format("stands still: {} for {:.0f} s", train->doing, train->seconds)};
    }
    return still;
  }

 private:
  // Returns null if the worker is not heard, so that its lease decides, or has said nothing of this
  // view yet.
  const HeartbeatMessage* ReportOf(ProcessId id) const {
    const bool in_view = std::ranges::count(view_.workers, id) > 0;
    if (!in_view || members_.Find(id) == nullptr) return nullptr;
    const Presence& its = members_.presence(id);
    const bool heard = its.reported && now_ - its.heard <= lease_;
    return heard && its.report.peers.view == view_.number ? &its.report : nullptr;
  }

  void Add(ProcessId from) {
    const HeartbeatMessage* const report = ReportOf(from);
    if (report == nullptr) return;
    const PeerReport& its = report->peers;
    if (its.broken) {
      if (its.seconds >= kBrokenLeases * InSeconds(lease_)) {
        all_.push_back({from, its.awaited, true, its.seconds});
      }
    } else if (its.awaited != ProcessId() && its.seconds >= InSeconds(PatienceFor(lease_))) {
      const std::optional<ProcessId> end = EndOfWaits(from, its.awaited);
      if (end.has_value()) all_.push_back({from, *end, false, its.seconds});
    }
  }

  // Nothing if it is excused.
  std::optional<ProcessId> EndOfWaits(ProcessId from, ProcessId awaited) const {
    ProcessId at = awaited;
    for (size_t i = 0; i < view_.workers.size(); ++i) {
      const HeartbeatMessage* const report = ReportOf(at);
      if (report == nullptr || report->waiting) return std::nullopt;
      if (report->peers.broken || report->peers.awaited == ProcessId()) return at;
      at = report->peers.awaited;
      if (at == from) break;
    }
    return awaited;  // They wait for each other.
  }

  const Membership& members_;
  const BegunView& view_;
  const TimePoint now_;
  const Duration lease_;
  std::vector<Pair> all_;
};

std::string HowItIsInTheWay(const Membership& members, const std::vector<Pair>& pairs,
                            ProcessId id) {
  const auto name = [&](ProcessId of) {
    const Member* const member = members.Find(of);
    return member == nullptr ? "another worker" : member->Name();
  };
  const auto is_with = [id](const Pair& pair) { return pair.with == id; };
  const ptrdiff_t with = std::ranges::count_if(pairs, is_with);
  if (with > 1) return fmt::format("holds {} other workers up, which wait for it", with);
  const Pair& pair = *std::ranges::find_if(
      pairs, [&](const Pair& each) { return each.from == id || each.with == id; });
  if (!pair.broken) {
    return fmt::format("holds {} up, which has waited for it for {:.0f} s",
                       name(pair.with == id ? pair.from : pair.with), pair.seconds);
  }
  return fmt::format("and {} do not reach each other",
                     name(pair.with == id ? pair.from : pair.with));
}

}  // namespace

std::optional<Suspect> WorkerInTheWay(const Membership& members, const BegunView& view,
                                      TimePoint now, Duration lease) {
  const Pairs pairs(members, view, now, lease);
  struct Standing {
    size_t in_pairs = 0;
    bool silent = true;
  };
  std::map<ProcessId, Standing> standings;
  for (const Pair& pair : pairs.all()) {
    Standing& from = standings[pair.from];
    ++from.in_pairs;
    from.silent = false;
    if (pair.with != ProcessId()) ++standings[pair.with].in_pairs;
  }
  if (standings.empty()) return pairs.StandsStill();
  const auto worst = std::ranges::max_element(standings, {}, [](const auto& entry) {
    return std::tuple(entry.second.in_pairs, entry.second.silent, entry.first);
  });
  return Suspect{worst->first, HowItIsInTheWay(members, pairs.all(), worst->first)};
}

std::optional<Suspect> WorkerThatIsLate(const Membership& members,
                                        const std::set<ProcessId>& missing, TimePoint since,
                                        TimePoint now, Duration lease) {
  if (now - since < PatienceFor(lease)) return std::nullopt;
  for (const ProcessId id : missing) {
    const Member* const member = members.Find(id);
    if (member == nullptr || member->role() != Role::kWorker) continue;
    const Presence& its = members.presence(id);
    if (now - its.heard > lease || (its.reported && its.report.reading)) continue;
    return Suspect{id, fmt::format("has not answered for {:.0f} s that the workers change",
                                   InSeconds(now - since))};
  }
  return std::nullopt;
}

}  // namespace dt::scheduler
