#include "server/storage/disk_tier.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/rows/row_keys.h"

namespace dt::server {
namespace {

constexpr uint64_t kPartsMax = 16;               // Of a server's share, see CutsOf.
constexpr uint64_t kPartOfRunBytes = 512 << 10;  // Smaller files are not worth their overhead.
// The filter's first layer takes 1.2 % of the memory.
constexpr uint64_t kMemoryPerFilterKey = 128;
constexpr uint64_t kFilterKeysMin = 1024;
constexpr Duration kDiskTimeout = seconds(30);  // The disk may accept no writes for this long.
constexpr Duration kDiskWait = milliseconds(100);

// Where the rows on disk are cut into parts that are merged separately: at shards, which are alike.
// Shards come and go, so all shards of the job are cut, such that the share of one server, which is
// a range at first, has so many parts.
std::vector<std::string> CutsOf(const ShardSet& shards, uint64_t run_bytes) {
  const uint64_t count = shards.shards_of_job();
  const uint64_t servers = std::max<size_t>(1, shards.view().map.servers.size());
  const uint64_t parts =
      std::min(count, servers * std::clamp<uint64_t>(run_bytes / kPartOfRunBytes, 1, kPartsMax));
  std::vector<std::string> cuts;
  for (uint64_t part = 1; part < parts; ++part) {
    cuts.push_back(ShardKey(ShardId(static_cast<uint32_t>(part * count / parts))));
  }
  return cuts;
}

}  // namespace

DiskTier::DiskTier(const DiskTierOptions& options, ShardSet& shards)
    : budget_(options.memory_bytes),
      shards_(shards),
      expired_(shards.tables(), shards.shards_of_job()),
      disk_(DiskOptions(options)),
      below_({.run_bytes = budget_.run_bytes,
              .filter_keys = std::max(options.memory_bytes / kMemoryPerFilterKey, kFilterKeysMin)},
             shards, expired_, disk_),
      evictor_(budget_, shards, below_, progress_),
      fetcher_(shards, below_, disk_, progress_),
      saver_(shards, below_, disk_),
      removals_(below_, fetcher_, disk_) {}

DiskThreads::Options DiskTier::DiskOptions(const DiskTierOptions& options) const {
  RowsDb::Options rows{.cache_bytes = budget_.cache_bytes,
                       .open_files = options.open_files,
                       .cuts = CutsOf(shards_, budget_.run_bytes)};
  if (!expired_.empty()) {
    rows.useless = [this](auto key, auto row) { return expired_.HasExpired(key, row); };
  }
  return {options.folder, std::move(rows), options.wake};
}

uint64_t DiskTier::bytes() const {
  return below_.bytes() + (disk_.db() != nullptr ? budget_.cache_bytes : 0);
}

// ------------------------------------------------------------ for the shards

bool DiskTier::EnsureInMemory(std::span<const EmbeddingTable::KeyRun> runs) {
  return fetcher_.EnsureInMemory(runs);
}

bool DiskTier::EnsureWritable(std::span<const EmbeddingTable::KeyRun> runs) {
  if (!fetcher_.EnsureInMemory(runs)) return false;
  if (!evictor_.IsFull(bytes())) return true;
  behind_ = true;
  progress_.Await();
  return false;
}

void DiskTier::PutBelow(EmbeddingTable& table, Key key, std::span<const std::byte> record,
                        bool on_disk) {
  if (!on_disk) std::ranges::copy(record, below_.Add(table, key).begin());
  below_.Left(table, key);
}

// ------------------------------------------------------------ turns of the loop

void DiskTier::Work() {
  const uint64_t before = progress_.count();
  TakeDone(Duration::zero());
  CheckDisk();
  saver_.Work();
  removals_.Work();
  // After progress, requests that wait for rows go first.
  if (progress_.count() == before) evictor_.Work();
}

void DiskTier::TakeDone(Duration timeout) {
  for (;; timeout = Duration::zero()) {
    std::optional<DiskThreads::Done> done = disk_.Take(timeout);
    if (!done.has_value()) return;
    if (done->fetched != nullptr) {
      failure_.Update(fetcher_.OnFetched(*done->fetched));
    } else if (done->made != nullptr) {
      saver_.OnMade(std::move(done->made));
    } else if (done->removed.has_value()) {
      removals_.OnRemoved(*done->removed);
    } else {
      below_.OnWritten(done->written);
      if (std::exchange(behind_, false)) progress_.Note();
    }
  }
}

// A disk that cannot write, such as a full one, fails a checkpoint at once, and the server after
// kDiskTimeout.
void DiskTier::CheckDisk() {
  const Status problem = disk_.write_problem();
  const TimePoint now = SystemClock().Now();
  if (problem.ok()) {
    full_since_ = {};
  } else if (full_since_ == TimePoint{}) {
    full_since_ = now;
  } else {
    saver_.FailUnlessGiven(problem);
    if (now - full_since_ > kDiskTimeout) failure_.Update(problem);
  }
}

// ------------------------------------------------------------ for the tier as a whole

Status DiskTier::Adopt(const std::string& checkpoint) {
  std::vector<ShardId> held;
  for (const Shard& shard : shards_.shards()) held.push_back(shard.id());
  return disk_.Adopt(checkpoint, held);
}

void DiskTier::Remove(const Shard& shard) {
  DT_CHECK(!saving());
  uint64_t rows = 0;
  for (uint32_t t = 0; t < shard.tables(); ++t) rows += shard.table(t).tier_counts().below;
  removals_.Begin(shard.id(), rows);
}

Status DiskTier::WaitForWrites(size_t runs_left) {
  const TimePoint deadline = SystemClock().Now() + kDiskTimeout;
  while (below_.runs().size() > runs_left) {
    TakeDone(kDiskWait);
    if (SystemClock().Now() < deadline) continue;
    DT_TRY_STATUS(disk_.write_problem());
    return Timeout("{} rows were not written within {} s", below_.runs().front()->rows(),
                   std::chrono::duration_cast<seconds>(kDiskTimeout).count());
  }
  return OkStatus();
}

Status DiskTier::MakeRoom() {
  evictor_.Work();
  return WaitForWrites(Evictor::kRunsMax - 1);
}

uint64_t DiskTier::BeginReading() {
  below_.Seal();
  return below_.written() + below_.runs().size();
}

std::unique_ptr<RowsDb::Cursor> DiskTier::Read() const {
  return disk_.db() == nullptr ? nullptr : disk_.db()->Read();
}

Status DiskTier::VisitRowsBelow(const Visit& visit) {
  if (below_.rows() == 0) return OkStatus();
  below_.Seal();
  DT_TRY_STATUS(WaitForWrites(0));
  const std::unique_ptr<RowsDb::Cursor> at = disk_.db()->Read();
  DT_TRY_STATUS(at->Seek({}));
  while (at->valid()) {
    if (at->key().size() == RowKey::kBytes) {
      const RowKey key(at->key());
      const EmbeddingTable* const table = shards_.FindTable(key.shard(), key.table());
      if (table != nullptr && !table->Contains(key.key())) {
        visit(*table, key.key(), std::as_bytes(std::span(at->value())));
      }
    }
    DT_TRY_STATUS(at->Next());
  }
  return OkStatus();
}

}  // namespace dt::server
