// The table of keys that the loader of job files uses, for others.
#pragma once

#include <string>
#include <string_view>

namespace dt {

// The JSON Schema of the job file (draft 2020-12), for editors.
std::string JobSchemaJson();
// A section's keys as a table for docs/job-file.md.
std::string KeysMarkdown(std::string_view section);
// The optimizers as a table for docs/job-file.md: floats of state, numbers, what dense parameters
// take.
std::string OptimizersMarkdown();

}  // namespace dt
