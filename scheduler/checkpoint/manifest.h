// manifest.json of a checkpoint: what makes it complete. It names every file with size and digest,
// and itself ends with the digest of what stands before.
#pragma once

#include <string>
#include <vector>

#include "common/cluster/checkpoint_file.h"
#include "common/config/job_config.h"
#include "scheduler/schedule/job_schedule.h"

namespace dt::scheduler {

inline constexpr uint32_t kManifestFormat = 3;

struct Manifest {
  std::string job;
  ScheduleState schedule;   // Its step is the checkpoint's.
  uint64_t train_rows = 0;  // 0: not known.
  uint32_t slices = 1;
  std::vector<std::string> tables;
  uint64_t resume_fingerprint = 0;
  std::string resume_text;
  std::string model = "{}";  // ModelJson.
  std::string written;       // Wall-clock time.
  std::vector<CheckpointFile> files;
  DT_FIELDS(job, schedule, train_rows, slices, tables, resume_fingerprint, resume_text, model,
            written, files)
};

std::string ManifestToJson(const Manifest& manifest);
// DataLoss naming `where` for anything that was not written so; NotYet for another format.
Result<Manifest> ManifestFromJson(const std::string& text, const std::string& where);

// Whether a job may go on from it: OK, or Invalid naming the keys that differ.
Status CheckSameJob(const Manifest& manifest, const JobConfig& job, const std::string& folder);
// Whether the job's model predicts with its parameters what the saved job's would: keys that only
// training reads may differ.
Status CheckSameModel(const Manifest& manifest, const JobConfig& job, const std::string& folder);

}  // namespace dt::scheduler
