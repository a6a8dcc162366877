// The JSON Schemas (draft 2020-12) of what the program writes for other programs.
#pragma once

#include <string_view>

namespace dt {

// `output`: "status" (/status, `dovetail status --json`), "plan" (`dovetail plan --format json`) or
// "manifest" (manifest.json of a checkpoint). REQUIRES: one of these.
std::string_view OutputSchemaJson(std::string_view output);

}  // namespace dt
