// `dovetail schema`: for editors.
#include <cstdio>

#include "cli/commands.h"
#include "common/schema/job_schema.h"

namespace dt::cli {

int RunSchema(const CommandLine&) {
  std::printf("%s\n", JobSchemaJson().c_str());
  return 0;
}

}  // namespace dt::cli
