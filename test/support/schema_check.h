// A small JSON Schema validator that covers the features used by this program's schemas.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dt::test {

class SchemaCheck {
 public:
  explicit SchemaCheck(std::string_view schema) : root_(nlohmann::json::parse(schema)) {}

  // Returns every difference between `value` and the schema. Schema keywords that are not
  // implemented here are reported too, so that nothing goes unchecked.
  std::vector<std::string> ProblemsOf(const nlohmann::json& value) const {
    return Problems(root_, value, "");
  }

 private:
  using Json = nlohmann::json;

  static bool IsOfType(const std::string& type, const Json& value) {
    return (type == "null" && value.is_null()) || (type == "string" && value.is_string()) ||
           (type == "boolean" && value.is_boolean()) || (type == "number" && value.is_number()) ||
           (type == "integer" && value.is_number_integer()) ||
           (type == "array" && value.is_array()) || (type == "object" && value.is_object());
  }

  std::vector<std::string> Problems(const Json& schema, const Json& value,
                                    const std::string& where) const {
    std::vector<std::string> found;
    for (const auto& [key, rule] : schema.items()) {
      if (key == "$ref") {
        const std::string name = rule.get<std::string>().substr(std::string("#/$defs/").size());
        Add(Problems(root_.at("$defs").at(name), value, where), found);
      } else if (key == "type") {
        CheckType(rule, value, where, found);
      } else if (key == "enum") {
        if (std::ranges::find(rule, value) == rule.end()) found.push_back(where + ": not in enum");
      } else if (key == "const") {
        if (value != rule) found.push_back(where + ": is not " + rule.dump());
      } else if (key == "minimum") {
        if (value.is_number() && value < rule) found.push_back(where + ": below the minimum");
      } else if (key == "items") {
        for (size_t i = 0; value.is_array() && i < value.size(); ++i) {
          Add(Problems(rule, value[i], fmt::format("{}/{}", where, i)), found);
        }
      } else if (key == "anyOf") {
        const bool any = std::ranges::any_of(
            rule, [&](const Json& one) { return Problems(one, value, where).empty(); });
        if (!any) found.push_back(where + ": none of anyOf: " + value.dump());
      } else if (key == "properties" || key == "required" || key == "additionalProperties") {
        continue;  // These are checked together below.
      } else if (key != "$schema" && key != "title" && key != "description" && key != "$defs") {
        found.push_back(where + ": the schema's " + key + " is not understood");
      }
    }
    if (value.is_object()) CheckMembers(schema, value, where, found);
    return found;
  }

  static void CheckType(const Json& rule, const Json& value, const std::string& where,
                        std::vector<std::string>& found) {
    const std::vector<Json> types =
        rule.is_array() ? rule.get<std::vector<Json>>() : std::vector<Json>{rule};
    const bool any = std::ranges::any_of(
        types, [&](const Json& type) { return IsOfType(type.get<std::string>(), value); });
    if (!any) found.push_back(where + ": is no " + rule.dump() + ": " + value.dump());
  }

  void CheckMembers(const Json& schema, const Json& value, const std::string& where,
                    std::vector<std::string>& found) const {
    const Json properties = schema.value("properties", Json::object());
    const Json others = schema.value("additionalProperties", Json(true));
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) {
        found.push_back(where + ": no " + name.get<std::string>());
      }
    }
    for (const auto& [name, member] : value.items()) {
      const std::string at = where + "/" + name;
      if (properties.contains(name)) {
        Add(Problems(properties.at(name), member, at), found);
      } else if (others.is_object()) {
        Add(Problems(others, member, at), found);
      } else if (others == false) {
        found.push_back(at + ": not in the schema");
      }
    }
  }

  static void Add(std::vector<std::string> more, std::vector<std::string>& to) {
    to.insert(to.end(), more.begin(), more.end());
  }

  const Json root_;
};

}  // namespace dt::test
