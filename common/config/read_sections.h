// The sections of a job file as values. Each takes what is right and reports the rest.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/config/reader/map_reader.h"

namespace dt {

// The files that a key lists, in order; globs are replaced by their matches.
std::vector<std::string> ReadFiles(const MapReader& in, std::string_view name);

void ReadData(const MapReader& in, DataConfig& data);
// The names of the data files, each with a comma behind it. One that the environment completes is
// as it is written.
struct FileNames {
  std::string train, valid, test;
};
FileNames ReadFileNames(const MapReader& data);
void ReadOptimizer(const MapReader& in, DenseOptimizerConfig& optimizer);
void ReadParallel(const MapReader& in, ParallelConfig& parallel);
// Fills job.model. REQUIRES: data, optimizer and parallel are read, because nodes name columns,
// tables inherit from the optimizer, and the rules of parallel place them.
void ReadModel(const MapReader& in, JobConfig& job);
// `rules` place tables that have no device of their own.
TableConfig ReadTable(const std::string& name, const MapReader& in, const OptimizerSpec& inherited,
                      std::span<const PlaceRule> rules);
// Reads the sections train, cluster, checkpoint and all others not named above.
void ReadRun(const MapReader& root, JobConfig& job);

// The metrics of the schedule and of early_stop, which losses give: checked, or the first loss's
// first. REQUIRES: everything else is read.
void ReadMetrics(const MapReader& root, JobConfig& job);

// What no section can tell alone.
void CheckJob(const MapReader& root, const JobConfig& job);

// Sets fingerprint, resume_fingerprint and resume_text. Of the data files it takes the names:
// directories differ between machines.
void FillFingerprints(const FileNames& names, JobConfig& job);

}  // namespace dt
