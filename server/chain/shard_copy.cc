#include "server/chain/shard_copy.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "common/rows/row_key.h"
#include "common/rows/row_keys.h"
#include "server/chain/copy_rows.h"
#include "server/chain/record_message.h"

namespace dt::server {
namespace {

constexpr size_t kPartBytes = 256 << 10;
constexpr uint64_t kBucketsAtOnce = 256;
constexpr size_t kChangesAtOnce = 2048;
constexpr size_t kProgress = kChangesAtOnce / 2;  // Fewer rows are left after each part.
// The last part has at most so many changed rows. After kRoundsMax parts it has all of them: the
// shard changes faster than it is copied.
constexpr size_t kLastChanges = 512;
constexpr uint64_t kRoundsMax = 4096;

Frame FrameOf(const std::string& bytes) { return Frame::CopyOf(std::as_bytes(std::span(bytes))); }

}  // namespace

ShardCopy::ShardCopy(ShardId id, ShardSet& shards, DiskTier& tier)
    : id_(id), shards_(shards), tier_(tier), written_(tier.BeginReading()) {
  for (uint32_t t = 0; t < shard().tables(); ++t) {
    changes_.push_back(std::make_unique<absl::flat_hash_set<Key>>());
    shard().table(t).NoteChanges(changes_.back().get(), true);
  }
}

ShardCopy::~ShardCopy() {
  Shard* const here = shards_.Find(id_);
  if (here == nullptr) return;
  for (uint32_t t = 0; t < here->tables(); ++t) here->table(t).NoteChanges(nullptr);
}

Result<std::optional<CopyRequest>> ShardCopy::NextPart() {
  std::string rows;
  if (stage_ == Stage::kWriting) {
    if (tier_.runs_written() < written_) return std::optional<CopyRequest>();
    stage_ = Stage::kDisk;
    disk_ = tier_.Read();
    if (disk_ != nullptr) DT_TRY_STATUS(disk_->Seek(ShardKey(id_)));
  }
  if (stage_ == Stage::kDisk) DT_TRY_STATUS(ReadDisk(rows));
  if (stage_ == Stage::kMemory) ReadMemory(rows);
  if (stage_ == Stage::kChanges && rows.empty()) {
    if (!ReadChanges(rows)) return std::optional<CopyRequest>();
    if (changes_left() == 0) {
      stage_ = Stage::kEnded;
      return std::optional(End(std::move(rows)));
    }
  }
  CopyRequest part;
  part.rows = FrameOf(rows);
  return std::optional(std::move(part));
}

// A row that is in memory too has an older record here.
Status ShardCopy::ReadDisk(std::string& rows) {
  const std::string prefix = ShardKey(id_);
  while (disk_ != nullptr && disk_->valid() && disk_->key().starts_with(prefix)) {
    if (rows.size() >= kPartBytes) return OkStatus();
    if (disk_->key().size() == RowKey::kBytes) {
      const RowKey key(disk_->key());
      EmbeddingTable* const table = shards_.FindTable(id_, key.table());
      const auto record = std::as_bytes(std::span(disk_->value()));
      if (table != nullptr && !table->Contains(key.key()) && !table->IsExpired(record)) {
        const auto index = static_cast<uint32_t>(table - &shard().table(0));
        std::ranges::copy(
            record,
            AppendRow(index, key.key(), static_cast<uint32_t>(record.size()), rows).begin());
        ++rows_;
      }
    }
    DT_TRY_STATUS(disk_->Next());
  }
  disk_.reset();
  stage_ = Stage::kMemory;
  return OkStatus();
}

void ShardCopy::Append(uint32_t table, const KeyRow& row, std::string& to) {
  ++rows_;
  const EmbeddingTable& from = shard().table(table);
  from.CopyRecord(row, AppendRow(table, row.key, from.record_bytes(), to));
}

void ShardCopy::ReadMemory(std::string& rows) {
  std::vector<KeyRow> found;
  for (; table_ < shard().tables(); ++table_, position_ = 0) {
    while (position_ != KeyIndex::kEnd) {
      if (rows.size() >= kPartBytes) return;
      found.clear();
      position_ = shard().table(table_).Walk(position_, kBucketsAtOnce, found);
      for (const KeyRow& row : found) Append(table_, row, rows);
    }
  }
  // All rows are read once: only those that change have to be read again.
  for (uint32_t t = 0; t < shard().tables(); ++t) {
    shard().table(t).NoteChanges(changes_[t].get());
  }
  stage_ = Stage::kChanges;
}

size_t ShardCopy::changes_left() const {
  size_t left = 0;
  for (const auto& keys : changes_) left += keys->size();
  return left;
}

// Reads changed rows until the part is full; or all of them, if there are few.
bool ShardCopy::ReadChanges(std::string& rows) {
  ++rounds_;
  const bool all = changes_left() <= kLastChanges || rounds_ > kRoundsMax;
  size_t room = all ? std::numeric_limits<size_t>::max() : kChangesAtOnce;
  for (uint32_t t = 0; t < shard().tables() && room > 0; ++t) {
    EmbeddingTable& table = shard().table(t);
    absl::flat_hash_set<Key>& changes = *changes_[t];
    if (changes.empty()) continue;
    std::vector<Key> keys;
    for (auto at = changes.begin(); at != changes.end() && keys.size() < room; ++at) {
      keys.push_back(*at);
    }
    const EmbeddingTable::KeyRun run{&table, keys};
    if (!tier_.EnsureInMemory({&run, 1})) {
      if (all) rows.clear();
      return !rows.empty();
    }
    for (const Key key : keys) {
      const uint32_t row = table.FindRow(key);
      if (row != KeyIndex::kAbsent) Append(t, {key, row}, rows);
      if (!all) changes.erase(key);
    }
    room -= keys.size();
  }
  if (all) {
    for (const auto& changes : changes_) changes->clear();
  }
  const size_t left = changes_left();
  behind_ = left > fewest_left_ - std::min(fewest_left_, kProgress);
  if (!behind_) fewest_left_ = left;
  return true;
}

CopyRequest ShardCopy::End(std::string rows) const {
  CopyRequest last{.end = true};
  last.rows = FrameOf(rows);
  last.position = shard().position();
  const ClockState clock = shard().clock().state();
  last.now = clock.now;
  last.view = clock.view;
  last.turns = clock.turns;
  last.settled = clock.settled;
  last.applied = clock.applied;
  std::string lives;
  for (uint32_t t = 0; t < shard().tables(); ++t) {
    const std::string life = shard().table(t).LifeState();
    last.life_bytes.push_back(static_cast<uint32_t>(life.size()));
    lives += life;
  }
  last.lives = FrameOf(lives);
  std::vector<RecordBytes> held;
  for (const Contribution& each : clock.held) {
    held.push_back(Encode(id_, {.kind = RecordKind::kContribution, .contribution = each}));
  }
  RecordMessageWriter writer;
  for (const RecordBytes& record : held) writer.Add({}, record);
  RecordsRequest message = writer.Take(FramePool::Private());
  last.held = std::move(message.parts);
  last.heads = std::move(message.heads);
  last.keys = std::move(message.keys);
  last.gradients = std::move(message.gradients);
  return last;
}

}  // namespace dt::server
