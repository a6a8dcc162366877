// Questions about one operator.
#pragma once

#include "scheduler/query/query_json.h"

namespace dt::scheduler {

// {"op"|"loops", "shapes", "attrs"?, "devices", "rank"?, and "strategy", "layouts" or "enumerate"}
Json AnswerNode(const Json& question);

}  // namespace dt::scheduler
