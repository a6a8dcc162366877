#include "common/schema/output_schema.h"

#include "common/base/check.h"
#include "common/schema/output_schemas.h"

namespace dt {

std::string_view OutputSchemaJson(std::string_view output) {
  if (output == "status") return kStatusSchema;
  if (output == "plan") return kPlanSchema;
  DT_CHECK(output == "manifest");
  return kManifestSchema;
}

}  // namespace dt
