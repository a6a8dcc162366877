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
#include "common/net/socket.h"
#include "common/storage/files.h"
#include "worker/data/batch.h"
#include "worker/data/kept_columns.h"

namespace dt::worker {

// Sockets take no larger message; a 16th is left for what goes with the scores.
inline constexpr uint64_t kReportBytesMax = kPartBytesMax / 16 * 15;

class Scorer {
 public:
  // `predictions`: the CSV file to write, complete only after Finish; empty: none. The columns that
  // `data` keeps come first in it. `graph` outlives the scorer. `report_bytes_max`: limit for the
  // result as a message.
  static Result<Scorer> Open(const Graph& graph, const std::string& predictions,
                             const DataConfig& data, uint64_t report_bytes_max = kReportBytesMax);

  // `outputs`: by loss, as LossSpec::output, of the batch's own samples. Batches come in ascending
  // order. Errors: Unavailable, if an output is not finite or the file cannot be written; Invalid,
  // if there are too many scores for one message.
  Status Add(uint64_t number, const Batch& batch, std::span<const std::span<const float>> outputs);
  Result<EvaluateDone> Finish();

 private:
  Scorer(const Graph& graph, uint64_t report_bytes_max)
      : graph_(&graph),
        report_bytes_max_(report_bytes_max),
        scored_(graph.losses.size()),
        groups_(graph.losses.size()) {
    done_.losses.resize(graph.losses.size());
  }
  Status AddLoss(size_t loss, uint64_t number, const Batch& batch, std::span<const float> outputs);
  Status WriteLines(const Batch& batch, std::span<const std::span<const float>> outputs);

  const Graph* graph_;
  uint64_t report_bytes_max_, report_bytes_ = 0;
  std::unique_ptr<NewFile> file_;      // The file of predictions.
  std::unique_ptr<KeptColumns> kept_;  // Null: no columns are kept.
  std::string lines_;
  EvaluateDone done_;
  // By loss with an AUC: the score, as bits that sort like it, and the label as the lowest bit.
  std::vector<std::vector<uint64_t>> scored_;
  // The groups of losses with a group column, by loss, in the order of scored_.
  std::vector<std::vector<Key>> groups_;
};

}  // namespace dt::worker
