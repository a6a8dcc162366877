// A job with a table that counts, exactly, how often each sample was trained.
//
// Every sample has a key of its own in the table `counts`, whose row moves by the same amount with
// every update: labels are 0, so that all gradients have one sign, and they are cut to one size.
#pragma once

#include <string>

#include "test/support/program.h"

namespace dt::test {

struct CountedJobOptions {
  std::string staleness = "0";
  int epochs = 1;
  std::string cluster;     // The YAML of `cluster`, in one line.
  std::string checkpoint;  // And of `checkpoint`.
};

// Writes the job and its data into the folder; returns the path of the job file.
std::string WriteCountedJob(const TempFolder& folder, const CountedJobOptions& options);

// Expects that the newest checkpoint of a run, which is the one at its end, has counted every
// sample once in every epoch. `text`: shown if it has not.
void ExpectCounts(const TempFolder& folder, const std::string& run, int epochs,
                  const std::string& text);

}  // namespace dt::test
