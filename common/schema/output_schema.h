// The JSON Schemas (draft 2020-12) of the program's outputs for other programs.
#pragma once

#include <string_view>

namespace dt {

// `output` is "status" (/status, `dovetail status --json`), "plan" (`dovetail plan --format json`)
// or "manifest" (a checkpoint's manifest.json). REQUIRES: one of these.
std::string_view OutputSchemaJson(std::string_view output);

}  // namespace dt
