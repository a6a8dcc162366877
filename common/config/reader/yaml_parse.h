// The only user of yaml-cpp. Unlike the library, refuses duplicate keys, and bounds what aliases
// may grow to.
#pragma once

#include <string>
#include <string_view>

#include "common/config/reader/config_node.h"
#include "common/config/reader/problems.h"

namespace dt {

// One YAML document. Marks carry `file` and lines from `first_line` on; with first_line 0 all marks
// have line 0 (the value of a flag). Problems go to `problems`; the node is then what could be
// read.
ConfigNode ParseYaml(const std::string& text, const std::string& file, int first_line,
                     Problems& problems);

// Reads and parses a file. An absent or unreadable file is a problem at `asked_at`, under `path`.
ConfigNode ParseYamlFile(const std::string& file, const SourceMark& asked_at, std::string_view path,
                         Problems& problems);

}  // namespace dt
