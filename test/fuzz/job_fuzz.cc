// Any text gives a job or a list of problems; any job gives a valid plan, or a sentence that says
// why not.
#include <cstdint>
#include <span>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/config/load_job.h"
#include "common/plan/check_plan.h"
#include "ops/op_spec.h"
#include "scheduler/plan/plan.h"

namespace dt {
namespace {

void ExpectUserError(const Status& status) {
  if (status.ok()) return;
  DT_CHECK_MSG(ExitCodeOf(status) == 2, "{}", ToText(status));
  DT_CHECK(!MessageOf(status).empty());
}

void OneInput(std::span<const std::byte> bytes) {
  // The file exists in memory only.
  const int file = memfd_create("job", 0);
  DT_CHECK(file >= 0);
  const ssize_t written = write(file, bytes.data(), bytes.size());
  DT_CHECK(written == static_cast<ssize_t>(bytes.size()));
  const Result<JobConfig> job = LoadJob("/proc/self/fd/" + std::to_string(file), {});
  close(file);
  ExpectUserError(job.status());
  if (!job.ok()) return;
  const std::vector<ColumnSpec> columns = ConfiguredColumns(job->data);
  if (columns.empty()) return;
  const DeviceInfo accelerator{.kind = DeviceKind::kEmulated, .memory_bytes = 1 << 30};
  const Result<Plan> plan = scheduler::MakePlan({*job, columns, 2, accelerator});
  ExpectUserError(plan.status());
  if (plan.ok()) DT_CHECK(CheckPlan(*plan, TraitsOf).ok());
}

}  // namespace
}  // namespace dt

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dt::OneInput(std::as_bytes(std::span(data, size)));
  return 0;
}
