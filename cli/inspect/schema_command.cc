// `dovetail schema`: prints schemas for editors, and for programs that read this program's outputs.
#include "cli/commands.h"
#include "cli/outcome.h"
#include "common/schema/job_schema.h"
#include "common/schema/output_schema.h"

namespace dt::cli {

int RunSchema(const CommandLine& line) {
  if (line.schema == "job") {
    Print("{}\n", JobSchemaJson());
  } else {
    Print("{}", OutputSchemaJson(line.schema));
  }
  return 0;
}

}  // namespace dt::cli
