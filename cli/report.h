// The report page of a finished job: one HTML file with the result inside it, that needs no network.
#pragma once

#include <string>

#include "common/base/status.h"

namespace dt::cli {

// `result_json` is a result file; a "best_possible" object {auc, logloss} in it is shown beside the test.
Result<std::string> RenderReport(const std::string& result_json);

}  // namespace dt::cli
