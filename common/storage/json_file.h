// JSON that others may have written: reading it throws nothing, is bounded, and names the file.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/base/status.h"

namespace dt {

using Json = nlohmann::ordered_json;

// Malformed, with `where` as the place: not JSON, too large, or nested too deep.
Result<Json> ParseJson(std::string_view text, std::string_view where);
Result<Json> ReadJsonFile(const std::string& path);

// The member of an object; null where there is no such member or it is no object.
const Json& MemberOf(const Json& json, std::string_view key);
// The member if it is a text, a finite number, a whole number >= 0; else `otherwise`, or 0.
std::string TextOf(const Json& json, std::string_view key, std::string_view otherwise = "");
double NumberOf(const Json& json, std::string_view key);
uint64_t CountOf(const Json& json, std::string_view key);

// The JSON as text that is safe to print: only printable ASCII and newlines.
std::string PrintableJson(const Json& json);

}  // namespace dt
