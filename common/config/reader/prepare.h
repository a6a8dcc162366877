// Builds one tree from the file and flags of a job: overrides, environment and template are
// applied.
#pragma once

#include <string>
#include <vector>

#include "common/config/reader/config_node.h"
#include "common/config/reader/problems.h"

namespace dt {

// Returns the tree for the reader, in which the template's tables, graph and loss replace
// `model.use` and `model.with`. Errors go to `problems`.
ConfigNode PrepareJob(const std::string& path, const std::vector<std::string>& overrides,
                      Problems& problems);

// Applies "a.b.c=value". A part of the path may be the index or the `name` of an item in a list.
void ApplyOverride(const std::string& flag, ConfigNode& root, Problems& problems);

}  // namespace dt
