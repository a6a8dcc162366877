// Decodes any bytes as a plan. Also checks that a decoded plan passes CheckPlan, and that encoding
// it again gives a message that decodes to the same plan.
#include <cstdint>
#include <span>
#include <string>

#include "common/base/check.h"
#include "common/plan/check_plan.h"
#include "common/plan/plan_codec.h"
#include "ops/op_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dt::Result<dt::Plan> plan =
      dt::DecodePlan(std::as_bytes(std::span(data, size)), dt::TraitsOf);
  if (!plan.ok()) return 0;
  DT_CHECK(dt::CheckPlan(*plan, dt::TraitsOf).ok());
  const std::string bytes = dt::Encode(*plan);
  const dt::Result<dt::Plan> again = dt::DecodePlan(std::as_bytes(std::span(bytes)), dt::TraitsOf);
  DT_CHECK(again.ok());
  DT_CHECK(dt::Encode(*again) == bytes);
  return 0;
}
