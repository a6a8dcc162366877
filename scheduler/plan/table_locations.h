// Decides whether tables of `device: auto` are on servers or on workers, and predicts what that
// costs.
#pragma once

#include <map>
#include <set>
#include <string>

#include "common/graph/graph.h"
#include "scheduler/passes/plan_request.h"

namespace dt::scheduler {

struct TableLocations {
  std::set<std::string, std::less<>> on_worker;
  // A few words for each table of `device: auto`.
  std::map<std::string, std::string, std::less<>> why;
};
TableLocations ChooseTableLocations(const PlanRequest& request);

// Seconds of each step that tables cost, besides the workers' computing.
struct TableTimes {
  double servers = 0;      // Pulls, pushes and updates on servers.
  double server_work = 0;  // The part of `servers` that needs the servers' processors.
  double exchange = 0;     // Exchange of row gradients among workers.
};
TableTimes TimesOfTables(const Graph& graph, const PlanRequest& request);

}  // namespace dt::scheduler
