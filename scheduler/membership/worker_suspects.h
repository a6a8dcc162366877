// Workers that hold the others up, though the scheduler hears them: two that cannot reach each
// other, or one that stands still.
//
// Each says in every heartbeat for whom it waits, and whether its connections are broken. From this
// follow pairs that do not get on; one of a pair leaves, and the others go on. A wait leads to
// another: if A waits for B, and B for C, then A and C are the pair. One that waits for servers is
// excused, and so are those that wait for it. Asynchronous workers do not wait for one another: one
// of them stands still when it is at one part of a step for long, and no other has any work. Pure
// functions of what the members have reported.
#pragma once

#include <optional>
#include <set>
#include <span>

#include "common/base/clock.h"
#include "scheduler/membership/membership.h"
#include "scheduler/membership/suspects.h"

namespace dt::scheduler {

// A view that has begun.
struct BegunView {
  ViewNumber number;
  std::span<const ProcessId> workers;
  bool asynchronous = false;
};

// The worker to leave is that of the most pairs. Of several, it is one that has noticed nothing
// itself, and then the one with the highest id. Nothing if all get on.
std::optional<Suspect> WorkerInTheWay(const Membership& members, const BegunView& view,
                                      TimePoint now, Duration lease);

// A view has been announced at `since`, and these processes have not reported. Returns a worker
// that is heard, and has had time enough; one that reads data may take as long as it does.
std::optional<Suspect> WorkerThatIsLate(const Membership& members,
                                        const std::set<ProcessId>& missing, TimePoint since,
                                        TimePoint now, Duration lease);

}  // namespace dt::scheduler
