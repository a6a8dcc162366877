// A small real job for end-to-end tests: a few thousand libsvm rows with a pattern that can be
// learned, and a model with every part that could break equality of results (lookups, batch norm,
// dropout, clipping, Adam, L2 after gaps).
#pragma once

#include <string>
#include <vector>

#include "test/support/program.h"

namespace dt::test {

struct TinyJobOptions {
  std::string job = "tiny";
  uint32_t rows = 3000;
  uint32_t epochs = 2;
  uint32_t batch_size = 256, slices = 1;
  uint32_t servers = 1, workers = 1;
  std::string executors = "auto";  // Number of executors of each server, or "auto".
  std::string staleness = "0";
  std::string loss = "[{type: binary_cross_entropy, input: logit, label: label}]";
  std::string more;  // Further YAML at the top level.
};

// Writes train.libsvm, valid.libsvm and <job>.yaml into the folder; returns the path of the job
// file.
std::string WriteTinyJob(const TempFolder& folder, const TinyJobOptions& options);

// Folders of the complete checkpoints of a job, relative to `folder`, oldest first.
std::vector<std::string> CheckpointsOf(const TempFolder& folder, const std::string& job);
// The step in the name of a checkpoint's folder.
uint64_t StepOf(const std::string& checkpoint);

// The "checksum" object of a result file, as text; "" if the file or the object is absent.
std::string ChecksumOf(const TempFolder& folder, const std::string& result_file);
// A string at a JSON pointer of a result file ("/error/what"), "" if absent.
std::string TextAt(const TempFolder& folder, const std::string& result_file,
                   const std::string& pointer);
double NumberAt(const TempFolder& folder, const std::string& result_file,
                const std::string& pointer);

}  // namespace dt::test
