// Schema and documentation of the job file, made from the table of keys that its loader uses.
#pragma once

#include <string>
#include <string_view>

namespace dt {

// The JSON Schema of the job file (draft 2020-12), for editors.
std::string JobSchemaJson();
// The keys of a section as a table for docs/job-file.md.
std::string KeysMarkdown(std::string_view section);
// The optimizers as a table for docs/job-file.md: floats of state, numbers, and the optimizer that
// dense parameters use.
std::string OptimizersMarkdown();

}  // namespace dt
