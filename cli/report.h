// The report page of a finished job: one HTML file that contains the result and needs no network.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/storage/json_file.h"

namespace dt::cli {

// `result` is the content of a result file. `truth` is null or the output of `data generate`; its
// test metrics are shown next to the model's.
Result<std::string> RenderReport(Json result, const Json& truth);

}  // namespace dt::cli
