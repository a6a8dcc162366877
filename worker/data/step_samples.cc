#include "worker/data/step_samples.h"

#include <algorithm>
#include <utility>

#include "common/base/philox.h"
#include "common/layout/owner.h"
#include "worker/data/epoch_order.h"
#include "worker/data/striped_dataset.h"

namespace dt::worker {
namespace {

constexpr uint64_t kStripePurpose = 0x6461746173747269;  // "datastri", under the job's seed.

class RowSamples : public StepSamples {
 public:
  RowSamples(const Options& options, uint64_t rows)
      : rows_(rows),
        batch_size_(options.batch_size),
        order_(options.seed, options.epoch, rows, options.window) {}

  uint32_t Count(uint64_t step) const override { return static_cast<uint32_t>(Of(step).size()); }
  void Take(uint64_t step, SliceIndex k, uint32_t n, std::vector<uint64_t>& rows,
            Batch& batch) override {
    const SampleRange slice = SliceRange(Of(step), k, n);
    order_.Rows(slice.begin, slice.end, rows);
    batch.samples = static_cast<uint32_t>(slice.size());
    batch.first_sample = slice.begin;
  }

 private:
  SampleRange Of(uint64_t step) const { return StepRange(rows_, batch_size_, step); }

  const uint64_t rows_;
  const uint32_t batch_size_;
  EpochOrder order_;
};

// Part `step` of `rows` that are spread evenly over `steps`.
SampleRange Spread(uint64_t rows, uint64_t step, uint64_t steps) {
  __extension__ using Wide = unsigned __int128;
  const auto at = [&](uint64_t i) {
    return static_cast<uint64_t>(Wide{std::min(i, steps)} * rows / steps);
  };
  return {at(step), at(step + 1)};
}

class StripeSamples : public StepSamples {
 public:
  StripeSamples(const Options& options, uint64_t steps, std::span<const uint64_t> rows)
      : steps_(steps) {
    uint64_t first = 0;
    for (uint32_t s = 0; s < rows.size(); ++s) {
      const uint64_t seed = StreamKey(options.seed, kStripePurpose, s);
      stripes_.push_back({rows[s], first, {seed, options.epoch, rows[s], options.window}});
      first += rows[s];
    }
  }

  uint32_t Count(uint64_t step) const override {
    uint64_t count = 0;
    for (const Stripe& stripe : stripes_) count += Of(stripe, step).size();
    return static_cast<uint32_t>(count);
  }
  void Take(uint64_t step, SliceIndex k, uint32_t n, std::vector<uint64_t>& rows,
            Batch& batch) override {
    const size_t before = rows.size();
    batch.first_sample = 0;
    bool first = true;
    for (uint32_t s = 0; s < stripes_.size(); ++s) {
      if (OwnerOf(s, stripes_.size(), n) != k) continue;
      const SampleRange range = Of(stripes_[s], step);
      if (std::exchange(first, false)) batch.first_sample = stripes_[s].first + range.begin;
      const size_t from = rows.size();
      stripes_[s].order.Rows(range.begin, range.end, rows);
      for (size_t i = from; i < rows.size(); ++i) rows[i] = StripeRow(s, rows[i]);
    }
    batch.samples = static_cast<uint32_t>(rows.size() - before);
  }

 private:
  struct Stripe {
    uint64_t rows = 0, first = 0;  // `first`: the rows of the stripes before.
    EpochOrder order;
  };
  // The positions in the stripe's order that a step has.
  SampleRange Of(const Stripe& stripe, uint64_t step) const {
    return Spread(stripe.rows, step, steps_);
  }

  const uint64_t steps_;
  std::vector<Stripe> stripes_;
};

class CutSamples : public StepSamples {
 public:
  CutSamples(const StreamCut& cut, SampleRange steps) : cut_(cut), steps_(steps) {}

  uint32_t Count(uint64_t step) const override {
    uint64_t count = 0;
    for (const uint64_t messages : cut_.count) count += Of(messages, step).size();
    return static_cast<uint32_t>(count);
  }
  void Take(uint64_t step, SliceIndex k, uint32_t n, std::vector<uint64_t>& rows,
            Batch& batch) override {
    const size_t before = rows.size();
    const size_t partitions = cut_.first.size();
    batch.first_sample = 0;
    for (uint32_t p = 0; p < partitions; ++p) {
      if (OwnerOf(p, partitions, n) != k) continue;
      const SampleRange range = Of(cut_.count[p], step);
      if (rows.size() == before) batch.first_sample = StripeRow(p, cut_.first[p] + range.begin);
      for (uint64_t i = range.begin; i < range.end; ++i) {
        rows.push_back(StripeRow(p, cut_.first[p] + i));
      }
    }
    batch.samples = static_cast<uint32_t>(rows.size() - before);
  }

 private:
  SampleRange Of(uint64_t messages, uint64_t step) const {
    return Spread(messages, step - steps_.begin, steps_.size());
  }

  const StreamCut cut_;
  const SampleRange steps_;
};

}  // namespace

std::unique_ptr<StepSamples> StepSamples::OfCut(const StreamCut& cut, SampleRange steps) {
  return std::make_unique<CutSamples>(cut, steps);
}

std::unique_ptr<StepSamples> StepSamples::OfStripes(const Options& options, uint64_t steps,
                                                    std::span<const uint64_t> rows) {
  return std::make_unique<StripeSamples>(options, steps, rows);
}

std::unique_ptr<StepSamples> StepSamples::OfRows(const Options& options, uint64_t rows) {
  return std::make_unique<RowSamples>(options, rows);
}

}  // namespace dt::worker
