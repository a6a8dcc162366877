// The only code that uses yaml-cpp. Unlike the library, it refuses duplicate keys and limits the
// size to which aliases may expand.
#pragma once

#include <string>
#include <string_view>

#include "common/config/reader/config_node.h"
#include "common/config/reader/problems.h"

namespace dt {

// Parses one YAML document. Marks have `file` and lines that start at `first_line`; with first_line
// 0, for the value of a flag, all lines are 0. Problems go to `problems`; the result is then the
// part that could be read.
ConfigNode ParseYaml(const std::string& text, const std::string& file, int first_line,
                     Problems& problems);

// Reads and parses a file. If it is absent or unreadable, that is a problem at `asked_at`, under
// `path`.
ConfigNode ParseYamlFile(const std::string& file, const SourceMark& asked_at, std::string_view path,
                         Problems& problems);

}  // namespace dt
