// Matches what a job has with the checkpoint of another job that it begins with: tables and dense
// parameters, by name and shape.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/cluster/taken_parts.h"
#include "common/config/job_config.h"
#include "common/plan/plan.h"
#include "scheduler/checkpoint/manifest.h"

namespace dt::scheduler {

// A dense parameter, or a part of its optimizer's state, over all workers of a team.
struct WholeArray {
  std::string name;
  Shape shape;
  bool state = false;  // Of the optimizer.
  friend bool operator==(const WholeArray&, const WholeArray&) = default;
};
// Those of the plans of a team's workers, in the order of the plans.
std::vector<WholeArray> WholeArraysOf(std::span<const Plan> plans);

struct Taken {
  TakenParts parts;
  Step steps_before = 0;            // See StartMessage.
  std::vector<std::string> report;  // For people: what is kept, new, dropped; a line each.
};

// What the job takes from the checkpoint in `folder`, and from the files that it names. `folder`
// may be "" if only files are meant. Reads headers and dense parameters, not the rows. Errors:
// those of the files; Invalid, if a table has another dim there, or nothing matches.
Result<Taken> TakenFrom(const JobConfig& job, std::span<const WholeArray> arrays,
                        const std::string& folder);

}  // namespace dt::scheduler
