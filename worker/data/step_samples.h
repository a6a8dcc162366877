// Which samples a step of an epoch has, and each of its slices: a pure function of the job, the
// epoch, the step and the slice, so that any worker can compute the slice, and compute it again.
// Used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/cluster/stream_cut.h"
#include "worker/data/dataset.h"

namespace dt::worker {

class StepSamples {
 public:
  struct Options {
    uint64_t seed = 0, epoch = 0;
    uint64_t window = 0;  // DataConfig::shuffle_window.
    uint32_t batch_size = 1;
  };
  // The steps of an epoch over all rows of a data set: each has the next `batch_size` rows of the
  // epoch's order, and slice k of n the k-th part of them.
  static std::unique_ptr<StepSamples> OfRows(const Options& options, uint64_t rows);
  // The steps of an epoch over data that is cut into stripes with so many rows. In each of `steps`
  // steps a stripe gives the next part of its rows, in an order of its own; slice k of n has what
  // the stripes give that OwnerOf deals to it. Rows are those of a StripedDataset.
  static std::unique_ptr<StepSamples> OfStripes(const Options& options, uint64_t steps,
                                                std::span<const uint64_t> rows);
  // The steps of an order over messages of a stream, numbered within the epoch. In each of them a
  // partition gives the next part of its messages; slice k of n has what the partitions give that
  // OwnerOf deals to it. Rows are those of a StreamDataset.
  static std::unique_ptr<StepSamples> OfCut(const StreamCut& cut, SampleRange steps);
  virtual ~StepSamples() = default;

  // How many samples a step has, over all slices. `step` counts from the epoch's first one.
  virtual uint32_t Count(uint64_t step) const = 0;
  // Appends the rows of slice k of n, as Dataset::Gather takes them, and sets samples and
  // first_sample of `batch`.
  virtual void Take(uint64_t step, SliceIndex k, uint32_t n, std::vector<uint64_t>& rows,
                    Batch& batch) = 0;
};

}  // namespace dt::worker
