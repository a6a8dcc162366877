// Attributes of a node: what the user wrote besides its name, operator and inputs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace dt {

using AttrValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>>;
using Attrs = std::map<std::string, AttrValue>;

}  // namespace dt
