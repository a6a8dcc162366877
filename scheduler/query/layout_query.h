// Questions about layouts alone.
#pragma once

#include "scheduler/query/query_json.h"

namespace dt::scheduler {

// {"from", "to", "shape", "to_shape"?, "all_to_all"?} → {"operators", "bytes", "seconds"}
Json AnswerRedistribution(const Json& question);
// {"layout", "shape", "rank"} → {"offset", "size", "axis_groups", "replicas"}; also "boxes" if the
// rank holds several.
Json AnswerSlice(const Json& question);
// {"load": {"from", "to", "shape", "rank"}} → {"ranks"}
Json AnswerLoad(const Json& question);

}  // namespace dt::scheduler
