// The report page of a finished job: one HTML file with the result inside it, that needs no
// network.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/storage/json_file.h"

namespace dt::cli {

// `result` is what a result file holds. `truth` may be null, or what `data generate` wrote: its
// test figures are shown beside the model's.
Result<std::string> RenderReport(Json result, const Json& truth);

}  // namespace dt::cli
