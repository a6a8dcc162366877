#include "common/storage/json_file.h"

#include <algorithm>
#include <cmath>

#include "common/storage/files.h"

namespace dt {
namespace {

constexpr size_t kBytesMax = 16 << 20;
constexpr size_t kDepthMax = 64;  // The library copies and writes nested values recursively.

size_t DepthOf(std::string_view text) {
  size_t depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') ++i;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Result<Json> ParseJson(std::string_view text, std::string_view where) {
  if (text.size() > kBytesMax) {
    return WithWhere(
        Malformed("JSON of at most {} bytes expected, {} found", kBytesMax, text.size()), where);
  }
  if (const size_t depth = DepthOf(text); depth > kDepthMax) {
    return WithWhere(Malformed("JSON nested at most {} deep expected, {} found", kDepthMax, depth),
                     where);
  }
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return WithWhere(Malformed("this is not JSON, or not whole"), where);
  return json;
}

Result<Json> ReadJsonFile(const std::string& path) {
  DT_TRY(const std::string text, ReadWholeFile(path, kBytesMax));
  return ParseJson(text, path);
}

const Json& MemberOf(const Json& json, std::string_view key) {
  static const Json kNull;
  if (!json.is_object()) return kNull;
  const auto at = json.find(key);
  return at == json.end() ? kNull : *at;
}

std::string TextOf(const Json& json, std::string_view key, std::string_view otherwise) {
  const Json& member = MemberOf(json, key);
  return member.is_string() ? member.get<std::string>() : std::string(otherwise);
}

double NumberOf(const Json& json, std::string_view key) {
  const Json& member = MemberOf(json, key);
  const double value = member.is_number() ? member.get<double>() : 0.0;
  return std::isfinite(value) ? value : 0.0;
}

uint64_t CountOf(const Json& json, std::string_view key) {
  const Json& member = MemberOf(json, key);
  return member.is_number_unsigned() ? member.get<uint64_t>() : 0;
}

std::string PrintableJson(const Json& json) {
  return json.dump(2, ' ', true, Json::error_handler_t::replace);
}

}  // namespace dt
