// Reads the sections of a job file. Each function takes the values that are right and reports the
// others.
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
// Reads data.kafka.
void ReadStream(const MapReader& in, DataConfig& data);
// Makes the command of format pipe a stream, if train.until is forever.
void ReadCommandStream(const MapReader& root, DataConfig& data);
// Checks what else the job says against a stream. REQUIRES: everything else is read.
void CheckStream(const MapReader& root, const JobConfig& job);
// Gives the columns the constants that they need, from data.stats. REQUIRES: data is read.
void ReadConstants(const MapReader& in, DataConfig& data);
// For fingerprints: equal text means equal constants.
std::string ConstantsText(const ColumnSpec& column);
// The names of the data files, each followed by a comma. A name that contains an environment
// variable is kept as written.
struct FileNames {
  std::string train, valid, test;
};
FileNames ReadFileNames(const MapReader& data);
void ReadOptimizer(const MapReader& in, DenseOptimizerConfig& optimizer);
void ReadParallel(const MapReader& in, ParallelConfig& parallel);
// Checks that the workers can be divided into teams.
void CheckTeams(const MapReader& root, const JobConfig& job);
// A strategy, written as ((2,4),(4,1)) or as lists; nothing if it is absent, auto or wrong, which
// is then reported.
std::optional<Strategy> ReadStrategy(const MapReader& in, std::string_view key);
// Fills job.model. REQUIRES: data, optimizer and parallel are read, because nodes name columns,
// tables inherit from the optimizer, and the rules of parallel place them.
void ReadModel(const MapReader& in, JobConfig& job);
// `rules` give a device to tables that have none of their own.
TableConfig ReadTable(const std::string& name, const MapReader& in, const OptimizerSpec& inherited,
                      std::span<const PlaceRule> rules);
// Reads train, cluster, checkpoint and all other sections without a function of their own.
void ReadRun(const MapReader& root, JobConfig& job);

// Checks the metrics of the schedule and of early_stop against the losses; the default is the first
// metric of the first loss. REQUIRES: everything else is read.
void ReadMetrics(const MapReader& root, JobConfig& job);

// Checks rules that involve several sections.
void CheckJob(const MapReader& root, const JobConfig& job);

// Sets fingerprint, resume_fingerprint and resume_text. Only the names of the data files count,
// because directories differ between machines.
void FillFingerprints(const FileNames& names, JobConfig& job);

}  // namespace dt
