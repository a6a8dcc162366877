// From the files and flags of a job to one tree: overrides, environment, template.
#pragma once

#include <string>
#include <vector>

#include "common/config/reader/config_node.h"
#include "common/config/reader/problems.h"

namespace dt {

// The tree that the reader sees. `model.use` and `model.with` are replaced by the template's
// tables, graph and loss. Whatever is wrong goes to `problems`.
ConfigNode PrepareJob(const std::string& path, const std::vector<std::string>& overrides,
                      Problems& problems);

// Applies "a.b.c=value". Lists are entered by index or by the `name` of an item.
void ApplyOverride(const std::string& flag, ConfigNode& root, Problems& problems);

}  // namespace dt
