#include "server/storage/rows_below.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace dt::server {
namespace {

constexpr size_t kNowhereMax = 1 << 22;

uint64_t FilterHash(const RowKey& row) { return MixBits(row.key() ^ MixBits(row.table().value())); }

}  // namespace

RowsBelow::RowsBelow(const Options& options, const ShardSet& shards, ExpiryFilter& expired,
                     DiskThreads& disk)
    : options_(options),
      shards_(shards),
      expired_(expired),
      disk_(disk),
      filter_(options.filter_keys) {}

std::span<std::byte> RowsBelow::Add(EmbeddingTable& table, Key key) {
  if (open_run_.bytes() >= options_.run_bytes) Seal();
  ++table.tier_counts().written;
  return open_run_.Add(table.RowKeyOf(key), table.record_bytes());
}

void RowsBelow::Left(EmbeddingTable& table, Key key) {
  const RowKey row = table.RowKeyOf(key);
  filter_.Add(FilterHash(row));
  if (!nowhere_.empty()) nowhere_.erase(row);
  ++rows_;
  ++table.tier_counts().below;
}

void RowsBelow::NoteBack(EmbeddingTable& table) {
  --rows_;
  --table.tier_counts().below;
}

void RowsBelow::NoteNowhere(const RowKey& row) {
  if (nowhere_.size() >= kNowhereMax) nowhere_.clear();
  nowhere_.insert(row);
}

std::span<const std::byte> RowsBelow::FindOnItsWay(const RowKey& row) const {
  std::span<const std::byte> record = open_run_.Find(row);
  for (auto run = runs_.rbegin(); record.empty() && run != runs_.rend(); ++run) {
    record = (*run)->Find(row);
  }
  return record;
}

bool RowsBelow::MayHave(const RowKey& row) const { return filter_.MayContain(FilterHash(row)); }

void RowsBelow::PrefetchFilter(const RowKey& row) const { filter_.Prefetch(FilterHash(row)); }

void RowsBelow::Seal() {
  if (open_run_.rows() == 0) return;
  if (!saving_) expired_.Update(shards_);
  runs_.push_back(std::make_shared<const RowRun>(std::exchange(open_run_, RowRun())));
  GiveRuns();
}

void RowsBelow::GiveRuns() {
  while (runs_wait() && disk_.TryWrite(runs_[given_])) ++given_;
}

void RowsBelow::OnWritten(const std::shared_ptr<const RowRun>& run) {
  DT_CHECK(runs_.front() == run);
  runs_.pop_front();
  ++written_;
  --given_;
  GiveRuns();
}

uint64_t RowsBelow::bytes() const {
  uint64_t bytes = open_run_.bytes() + filter_.bytes();
  for (const auto& run : runs_) bytes += run->bytes();
  return bytes;
}

}  // namespace dt::server
