// A data set in Criteo's format whose best possible result is known: labels are drawn from the
// probabilities of a planted model.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/runtime/task_pool.h"

namespace dt::worker {

struct GenerateOptions {
  uint64_t rows = 100000;
  uint64_t seed = 1;
  std::string out_dir;
  double vocabulary = 1.0;  // Factor on the number of distinct strings of the larger columns.
};

// The scores of the true probabilities on a split: only luck makes a model better than this.
struct SplitTruth {
  uint64_t rows = 0;
  double auc = 0;  // Not a number if all labels are equal.
  double logloss = 0;
};
struct GenerateTruth {
  SplitTruth train, valid, test;
};

// Writes train.tsv, valid.tsv, test.tsv (80, 10, 10 %) and truth.json {split: {auc, logloss}} into
// out_dir, and makes it if necessary. The files depend on rows, seed and vocabulary only, not on
// the number of threads. Any thread. Errors: Invalid for options out of range, Unavailable for a
// failing disk.
Result<GenerateTruth> GenerateCriteo(const GenerateOptions& options, TaskPool& pool);

}  // namespace dt::worker
