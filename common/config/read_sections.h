// The sections of a job file as values. Each takes what is right and reports the rest.
#pragma once

#include <string>

#include "common/config/job_config.h"
#include "common/config/map_reader.h"

namespace dt {

void ReadData(const MapReader& in, DataConfig& data);
void ReadOptimizer(const MapReader& in, DenseOptimizerConfig& optimizer);
// REQUIRES: data and optimizer are read: columns are named by nodes, tables inherit from the
// optimizer.
void ReadModel(const MapReader& in, const DataConfig& data, const OptimizerSpec& inherited,
               ModelConfig& model);
void ReadRun(const MapReader& root, JobConfig& job);

// The metrics of the schedule and of early_stop, which losses give: checked, or the first loss's
// first. REQUIRES: everything else is read.
void ReadMetrics(const MapReader& root, JobConfig& job);

// What no section can tell alone.
void CheckJob(const MapReader& root, const JobConfig& job);

// Sets fingerprint, resume_fingerprint and resume_text.
void FillFingerprints(JobConfig& job);

}  // namespace dt
