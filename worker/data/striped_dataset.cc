#include "worker/data/striped_dataset.h"

#include "common/base/check.h"
#include "common/base/hash.h"
#include "worker/data/mapped_dataset.h"
#include "worker/data/split_source.h"

namespace dt::worker {
namespace {

template <class T>
void Append(const std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

void Append(const BatchColumn& from, BatchColumn& to) {
  const auto keys = static_cast<uint32_t>(to.keys.size());
  Append(from.floats, to.floats);
  Append(from.keys, to.keys);
  Append(from.weights, to.weights);
  for (size_t i = 0; i < from.offsets.size(); ++i) {
    if (i == 0 && !to.offsets.empty()) continue;
    to.offsets.push_back(keys + from.offsets[i]);
  }
}

void Append(const std::vector<BatchColumn>& from, std::vector<BatchColumn>& to) {
  to.resize(from.size());
  for (size_t c = 0; c < from.size(); ++c) Append(from[c], to[c]);
}

}  // namespace

StripedDataset::StripedDataset(const DataConfig& config, Split split, uint32_t stripes,
                               TaskPool& pool)
    : config_(config),
      split_(split),
      pool_(pool),
      count_(stripes),
      stripes_(stripes),
      columns_(ColumnsOf(config, split, ShapeOfStripes(config))) {}

Result<const Dataset*> StripedDataset::Stripe(uint32_t number) const {
  DT_CHECK(number < stripes());
  MutexLock lock(mutex_);
  std::unique_ptr<Dataset>& stripe = stripes_[number];
  if (stripe == nullptr) {
    DT_TRY(stripe, Dataset::OpenStripe(config_, split_, {number, stripes()}, pool_));
  }
  return stripe.get();
}

uint64_t StripedDataset::rows() const {
  MutexLock lock(mutex_);
  uint64_t rows = 0;
  for (const auto& stripe : stripes_) rows += stripe == nullptr ? 0 : stripe->rows();
  return rows;
}

uint64_t StripedDataset::fingerprint() const {
  MutexLock lock(mutex_);
  uint64_t all = 0;
  for (const auto& stripe : stripes_) {
    if (stripe != nullptr) all = CombinedHash(all, stripe->fingerprint());
  }
  return all;
}

Status StripedDataset::Gather(std::span<const uint64_t> rows, Batch& batch) const {
  if (rows.empty()) return EmptyDataset(columns_).Gather(rows, batch);
  std::vector<uint64_t> local;
  Batch whole;
  for (size_t first = 0; first < rows.size(); first += local.size()) {
    const uint32_t number = StripeOf(rows[first]);
    local.clear();
    for (size_t i = first; i < rows.size() && StripeOf(rows[i]) == number; ++i) {
      local.push_back(RowInStripe(rows[i]));
    }
    DT_TRY(const Dataset* const stripe, Stripe(number));
    DT_TRY_STATUS(stripe->Gather(local, batch));
    if (local.size() == rows.size()) return OkStatus();
    DT_CHECK(!batch.part.has_value());
    Append(batch.columns, whole.columns);
  }
  batch.columns = std::move(whole.columns);
  batch.samples = static_cast<uint32_t>(rows.size());
  return OkStatus();
}

}  // namespace dt::worker
