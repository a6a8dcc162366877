// Explains what a worker of a team holds and communicates.
#pragma once

#include <string>
#include <vector>

#include "common/plan/plan.h"

namespace dt::scheduler {

// A communication of a slice.
struct TeamCall {
  std::string node, op, of;  // `of`: the value.
  std::vector<uint32_t> group;
  double bytes = 0;     // Received by this worker, for a full slice.
  std::string read_by;  // The nodes that need it, with commas.
};

struct TeamReport {
  double held = 0, whole = 0;  // Elements of trained parameters: here, and in all.
  std::vector<TeamCall> calls;
  double exchanged = 0;  // Bytes of the step's sums that this worker gets from its own team.
};
TeamReport ReportOfTeam(const Plan& plan);

// Lines of text; none for a team of one.
std::string ExplainTeam(const Plan& plan);

}  // namespace dt::scheduler
