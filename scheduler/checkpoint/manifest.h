// manifest.json, the file that makes a checkpoint complete. It lists every file with size and
// digest, and contains a digest of its own content.
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
  ScheduleState schedule;   // schedule.step is the checkpoint's step.
  uint64_t train_rows = 0;  // 0: unknown.
  uint32_t slices = 1;
  Step steps_before = 0;  // See StartMessage.
  std::vector<std::string> tables;
  uint64_t resume_fingerprint = 0;
  std::string resume_text;
  std::string model = "{}";  // Made by ModelJson.
  std::string written;       // Wall-clock time.
  std::string order;  // Names the run and its order to save; no two checkpoints have the same.
  std::vector<CheckpointFile> files;
  DT_FIELDS(job, schedule, train_rows, slices, steps_before, tables, resume_fingerprint,
            resume_text, model, written, order, files)
};

std::string ManifestToJson(const Manifest& manifest);
// Errors: DataLoss, naming `where`, if the text is damaged; NotYet, if it has another format.
Result<Manifest> ManifestFromJson(const std::string& text, const std::string& where);

// Whether the job may resume from the checkpoint. Errors: Invalid, naming the keys that differ.
Status CheckSameJob(const Manifest& manifest, const JobConfig& job, const std::string& folder);
// Whether the job's model predicts the same as the saved one; keys that only training reads may
// differ. Errors: Invalid, naming the keys that differ.
Status CheckSameModel(const Manifest& manifest, const JobConfig& job, const std::string& folder);

}  // namespace dt::scheduler
