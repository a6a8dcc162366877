// JSON that other programs may have written: reading never throws, has limits, and its errors name
// the file.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/base/status.h"

namespace dt {

using Json = nlohmann::ordered_json;

// Malformed, with `where`: it is not JSON, too large, or nested too deeply.
Result<Json> ParseJson(std::string_view text, std::string_view where);
Result<Json> ReadJsonFile(const std::string& path);

// The member of an object; null if there is no such member or `json` is no object.
const Json& MemberOf(const Json& json, std::string_view key);
// The member if it is a text, a finite number, or a whole number >= 0; otherwise `otherwise`, or 0.
std::string TextOf(const Json& json, std::string_view key, std::string_view otherwise = "");
double NumberOf(const Json& json, std::string_view key);
uint64_t CountOf(const Json& json, std::string_view key);

// The JSON as text that is safe to print: only printable ASCII and newlines.
std::string PrintableJson(const Json& json);

}  // namespace dt
