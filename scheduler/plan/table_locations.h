// Whether tables of `device: auto` are on servers or on the workers, and what that costs.
#pragma once

#include <map>
#include <set>
#include <string>

#include "common/graph/graph.h"
#include "scheduler/passes/plan_request.h"

namespace dt::scheduler {

struct TableLocations {
  std::set<std::string, std::less<>> on_worker;
  std::map<std::string, std::string, std::less<>> why;  // A few words for each table of `auto`.
};
TableLocations ChooseTableLocations(const PlanRequest& request);

// What tables take in each step besides the workers' computing, in seconds.
struct TableTimes {
  double servers = 0;      // Servers work: pulls, pushes, updates.
  double server_work = 0;  // The part of it that the servers' processors do one after the other.
  double exchange = 0;     // Workers tell one another gradients of rows.
};
TableTimes TimesOfTables(const Graph& graph, const PlanRequest& request);

}  // namespace dt::scheduler
