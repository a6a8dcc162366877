// Turns the outputs of evaluation batches into sums and scores, which the scheduler merges, and
// into predictions for people. Owned by the train thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/cluster/evaluation_result.h"
#include "common/graph/graph.h"
#include "common/storage/files.h"
#include "worker/data/batch.h"
#include "worker/data/kept_columns.h"

namespace dt::worker {

class Scorer {
 public:
  // `predictions`: the CSV file to write, complete only after Finish; empty: none. The columns that
  // `data` keeps come first in it. `graph` outlives the scorer.
  static Result<Scorer> Open(const Graph& graph, const std::string& predictions,
                             const DataConfig& data);

  // `outputs`: by loss, as LossSpec::output, of the batch's own samples. Batches come in ascending
  // order. Errors: Unavailable, if an output is not finite or the file cannot be written.
  Status Add(uint64_t number, const Batch& batch, std::span<const std::span<const float>> outputs);
  Result<EvaluateDone> Finish();

 private:
  explicit Scorer(const Graph& graph)
      : graph_(&graph), scored_(graph.losses.size()), groups_(graph.losses.size()) {
    done_.losses.resize(graph.losses.size());
  }
  Status AddLoss(size_t loss, uint64_t number, const Batch& batch, std::span<const float> outputs);
  Status WriteLines(const Batch& batch, std::span<const std::span<const float>> outputs);

  const Graph* graph_;
  std::unique_ptr<NewFile> file_;      // The file of predictions.
  std::unique_ptr<KeptColumns> kept_;  // Null: no columns are kept.
  std::string lines_;
  EvaluateDone done_;
  // By loss with an AUC: the score, as bits that sort like it, and the label as the lowest bit.
  std::vector<std::vector<uint64_t>> scored_;
  std::vector<std::vector<Key>> groups_;  // By loss with a group column, in the order of scored_.
};

}  // namespace dt::worker
