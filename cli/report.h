// The report page of a finished job: one HTML file with the result inside it, that needs no
// network.
#pragma once

#include <string>

#include "common/base/status.h"

namespace dt::cli {

// `result_json` is a result file. `truth_json` may be empty, or what `data generate` wrote: its
// test figures are shown beside the model's.
Result<std::string> RenderReport(const std::string& result_json, const std::string& truth_json);

}  // namespace dt::cli
