// Questions about a small graph.
#pragma once

#include "scheduler/query/query_json.h"

namespace dt::scheduler {

// {"graph": {"values", "nodes"}, "devices", "rank"?, "optimizer"?, "all_to_all"?}
//   → {"nodes", "redistributions", "parameters"}
Json AnswerGraph(const Json& question);

}  // namespace dt::scheduler
