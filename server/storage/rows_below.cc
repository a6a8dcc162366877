#include "server/storage/rows_below.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace dt::server {
namespace {

constexpr size_t kNowhereMax = 1 << 22;

uint64_t FilterHash(const EmbeddingTable& table, Key key) {
  return MixBits(key ^ MixBits(table.spec().id.value()));
}

}  // namespace

RowsBelow::RowsBelow(const Options& options, ExpiryFilter& expired, DiskThreads& disk)
    : options_(options), expired_(expired), disk_(disk), filter_(options.filter_keys) {}

std::span<std::byte> RowsBelow::Add(EmbeddingTable& table, Key key) {
  if (open_run_.bytes() >= options_.run_bytes) Seal();
  ++table.tier_counts().written;
  return open_run_.Add(table, key);
}

void RowsBelow::Left(EmbeddingTable& table, Key key) {
  filter_.Add(FilterHash(table, key));
  if (!nowhere_.empty()) nowhere_.erase({&table, key});
  ++rows_;
  ++table.tier_counts().below;
}

void RowsBelow::NoteBack(EmbeddingTable& table) {
  --rows_;
  --table.tier_counts().below;
}

void RowsBelow::NoteNowhere(const EmbeddingTable& table, Key key) {
  if (nowhere_.size() >= kNowhereMax) nowhere_.clear();
  nowhere_.insert({&table, key});
}

std::span<const std::byte> RowsBelow::FindOnItsWay(const EmbeddingTable& table, Key key) const {
  std::span<const std::byte> record = open_run_.Find(table, key);
  for (auto run = runs_.rbegin(); record.empty() && run != runs_.rend(); ++run) {
    record = (*run)->Find(table, key);
  }
  return record;
}

bool RowsBelow::MayHave(const EmbeddingTable& table, Key key) const {
  return filter_.MayContain(FilterHash(table, key));
}

bool RowsBelow::IsNowhere(const EmbeddingTable& table, Key key) const {
  return nowhere_.contains({&table, key});
}

void RowsBelow::PrefetchFilter(const EmbeddingTable& table, Key key) const {
  filter_.Prefetch(FilterHash(table, key));
}

void RowsBelow::Seal() {
  if (open_run_.rows() == 0) return;
  if (!saving_) expired_.Update();
  runs_.push_back(std::make_shared<const RowRun>(std::exchange(open_run_, RowRun())));
  GiveRuns();
}

void RowsBelow::GiveRuns() {
  while (runs_wait() && disk_.TryWrite(runs_[given_])) ++given_;
}

void RowsBelow::OnWritten(const std::shared_ptr<const RowRun>& run) {
  DT_CHECK(runs_.front() == run);
  runs_.pop_front();
  --given_;
  GiveRuns();
}

uint64_t RowsBelow::bytes() const {
  uint64_t bytes = open_run_.bytes() + filter_.bytes();
  for (const auto& run : runs_) bytes += run->bytes();
  return bytes;
}

}  // namespace dt::server
