#include "server/storage/evictor.h"

#include <algorithm>

namespace dt::server {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kBucketsAtOnce = 512;        // Buckets of one index per call of Evict.
constexpr uint64_t kBucketsPerTurn = 32 << 10;  // Takes some milliseconds.

}  // namespace

TierBudget::TierBudget(uint64_t bytes)
    : memory_bytes(bytes),
      run_bytes(std::clamp(bytes / 32, kMiB / 16, 32 * kMiB)),
      cache_bytes(std::clamp(bytes / 16, kMiB, 512 * kMiB)) {}

uint64_t Evictor::bytes_max() const {
  const uint64_t others = budget_.cache_bytes + (kRunsMax + 1) * budget_.run_bytes +
                          below_.filter_bytes() + shards_.held_bytes();
  // With the smallest budgets, `others` would take everything.
  return std::max(budget_.memory_bytes - std::min(others, budget_.memory_bytes),
                  budget_.memory_bytes / 2);
}

bool Evictor::IsFull(uint64_t tier_bytes) const {
  if (below_.runs().size() < kRunsMax) return false;
  const uint64_t slack = std::max(budget_.memory_bytes / 32, 32 * kMiB);
  return shards_.bytes() + tier_bytes >= budget_.memory_bytes + slack;
}

double Evictor::ShareToLeave() const {
  const uint64_t bytes = shards_.bytes(), most = bytes_max();
  const uint64_t margin = most / 50;
  if (bytes + margin <= most) return 0;
  return static_cast<double>(bytes + margin - most) /
         static_cast<double>(std::max<uint64_t>(bytes, 1));
}

// The tables whose rows may leave.
std::vector<EmbeddingTable*> Evictor::Evictable() {
  std::vector<EmbeddingTable*> evictable;
  for (Shard& shard : shards_.shards()) {
    for (uint32_t t = 0; t < shard.tables(); ++t) {
      if (!shard.table(t).spec().all_in_memory) evictable.push_back(&shard.table(t));
    }
  }
  return evictable;
}

// Memory given to a table's rows is never returned or shared, so eviction works table by table.
bool Evictor::HasRoom(const EmbeddingTable& table, double share) const {
  const TableRows& rows = table.rows_of_all();
  const double enough = share * (static_cast<double>(rows.count()) + rows.free());
  return rows.free() >= enough;
}

uint64_t Evictor::Sweep(EmbeddingTable& table) {
  // Rows changed after the cut must not get into the files of the checkpoint.
  const uint32_t keep_period = below_.saving() ? table.rows_of_all().change_period() : 0;
  table.Evict(kBucketsAtOnce, keep_period, below_);
  const uint64_t buckets = std::min(kBucketsAtOnce, table.index_buckets());
  swept_ += buckets;
  return buckets;
}

void Evictor::Work() {
  const double share = ShareToLeave();
  if (share == 0) return;
  const std::vector<EmbeddingTable*> evictable = Evictable();
  if (evictable.empty()) return;
  if (swept_at_ != progress_.count()) {
    swept_at_ = progress_.count();
    swept_ = 0;
  }
  uint64_t buckets = 0;
  for (const EmbeddingTable* table : evictable) buckets += table->index_buckets();
  const uint64_t turn = std::min(buckets, kBucketsPerTurn);
  // Requests that wait touch their rows at each progress, so their rows survive a round of the
  // hand.
  const uint64_t most_swept = progress_.awaited() ? buckets : ~uint64_t{0};
  size_t roomy = 0;  // Successive tables that have enough free rows.
  for (uint64_t swept = 0;
       swept < turn && swept_ < most_swept && below_.runs().size() < kRunsMax;) {
    EmbeddingTable& table = *evictable[hand_ = (hand_ + 1) % evictable.size()];
    if (HasRoom(table, share)) {
      if (++roomy == evictable.size()) break;
      continue;
    }
    roomy = 0;
    swept += Sweep(table);
  }
}

}  // namespace dt::server
