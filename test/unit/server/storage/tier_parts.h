// Parts of the disk tier, with one table in two shards. A test adds the part that it tests, and
// passes on the results of the disk itself.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/check.h"
#include "server/shard/shard_set.h"
#include "server/storage/disk_threads.h"
#include "server/storage/expiry_filter.h"
#include "server/storage/rows_below.h"
#include "server/storage/tier_progress.h"
#include "test/support/push_maker.h"
#include "test/support/scratch_folder.h"
#include "test/support/tiered_shards.h"

namespace dt::server {

class TierParts {
 public:
  static constexpr uint32_t kDim = 32;

  explicit TierParts(uint64_t run_bytes = 4096) : run_bytes_(run_bytes) {}

  static std::vector<TableSpec> Tables() {
    TableSpec spec = test::SimpleTable("t", kDim);
    spec.init = {InitKind::kZeros, 0};
    return {spec};
  }

  ShardSet& shards() { return shards_; }
  EmbeddingTable& table() { return shards_.shards()[0].table(0); }
  RowKey row(Key key) { return table().RowKeyOf(key); }
  DiskThreads& disk() { return disk_; }
  RowsBelow& below() { return below_; }
  TierProgress& progress() { return progress_; }
  std::string path(const std::string& name) const { return temp_ / name; }

  // Takes a shard away, with its rows in memory.
  void Remove(ShardId shard) {
    shards_.Remove(shard);
    while (shards_.HasRowsToRemove()) shards_.RemoveRows();
  }
  // Pushes rows 0 … count - 1 of the first shard's table once each.
  void PushRows(Key count) {
    for (Key key = 0; key < count; ++key) PushRow(key, 1);
  }
  void PushRow(Key key, float gradient) {
    const std::vector<float> gradients(kDim, gradient);
    table().Push({&key, 1}, gradients, {.step = step_++});
  }
  // Adds a row that is on its way to disk and no longer in memory.
  void Send(Key key) { Send(table(), key); }
  void Send(EmbeddingTable& table, Key key) {
    const std::span<std::byte> record = below_.Add(table, key);
    std::ranges::fill(record, std::byte{0});
    below_.Left(table, key);
  }
  // Waits for the next result of the disk.
  DiskThreads::Done Next() {
    std::optional<DiskThreads::Done> done = disk_.Take(seconds(30));
    DT_CHECK(done.has_value());
    return *std::move(done);
  }
  // Waits until the disk has all runs.
  void WriteAll() {
    below_.Seal();
    while (!below_.runs().empty()) below_.OnWritten(Next().written);
  }

 private:
  const uint64_t run_bytes_;
  const test::ScratchFolder temp_;
  ShardSet shards_{test::SetOf(Tables(), 1, 2, test::AllShards(2))};
  ExpiryFilter expired_{shards_.tables(), 2};
  DiskThreads disk_{{temp_ / "rows", {.cache_bytes = 1 << 20}, [] {}}};
  RowsBelow below_{{.run_bytes = run_bytes_, .filter_keys = 1024}, shards_, expired_, disk_};
  TierProgress progress_;
  Step step_ = 1;
};

}  // namespace dt::server
