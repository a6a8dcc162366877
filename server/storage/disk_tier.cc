#include "server/storage/disk_tier.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/text.h"

namespace dt::server {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr size_t kParts = 16;                   // Of the rows on disk.
constexpr uint64_t kPartOfRunBytes = kMiB / 2;  // Smaller files cost more than they hold.
constexpr size_t kRunsMax = 2;                  // Being written; more wait for them.
constexpr uint64_t kBucketsAtOnce = 512;        // Of one index, in one step of the clock's hand.
constexpr uint64_t kBucketsPerTurn = 32 << 10;  // Some milliseconds.
constexpr uint64_t kMemoryPerFilterKey = 128;   // 1.2 % of the memory, at first.
constexpr size_t kNowhereMax = 1 << 22;
constexpr Duration kDiskPatience = seconds(30);  // With a disk that takes nothing.
constexpr Duration kPoll = milliseconds(100);

std::vector<EmbeddingTable*> TablesOf(ShardSet& shards) {
  std::vector<EmbeddingTable*> tables;
  for (Shard& shard : shards.shards()) {
    for (uint32_t t = 0; t < shard.tables(); ++t) tables.push_back(&shard.table(t));
  }
  return tables;
}

// Where the disk's rows are cut into parts, each merged by itself: at shards, which are alike.
std::vector<std::string> CutsOf(const ShardSet& shards, uint64_t run_bytes) {
  const size_t count = shards.shards().size();
  const size_t parts = std::clamp<size_t>(run_bytes / kPartOfRunBytes, 1, std::min(kParts, count));
  std::vector<std::string> cuts;
  for (size_t part = 1; part < parts; ++part) {
    const ShardId first = shards.shards()[part * count / parts].id();
    cuts.emplace_back(RowKey(first, TableId(0), 0).text().substr(0, sizeof(first)));
  }
  return cuts;
}

uint64_t FilterHash(const EmbeddingTable& table, Key key) {
  return MixBits(key ^ MixBits(table.spec().id.value()));
}

}  // namespace

class DiskTier::Sink : public RowSink {
 public:
  explicit Sink(DiskTier& tier) : tier_(tier) {}
  std::span<std::byte> Add(EmbeddingTable& table, Key key) override {
    if (tier_.open_run_.bytes() >= tier_.run_bytes_) tier_.Seal();
    ++table.tier_counts().written;
    return tier_.open_run_.Add(table, key);
  }
  void Left(EmbeddingTable& table, Key key) override { tier_.NoteOnDisk(table, key); }

 private:
  DiskTier& tier_;
};

DiskTier::DiskTier(DiskTierOptions options, ShardSet& shards)
    : options_(std::move(options)),
      run_bytes_(std::clamp(options_.memory_bytes / 32, kMiB / 16, 32 * kMiB)),
      cache_bytes_(std::clamp(options_.memory_bytes / 16, kMiB, 512 * kMiB)),
      shards_(shards),
      tables_(TablesOf(shards)),
      sink_(std::make_unique<Sink>(*this)),
      gone_(tables_),
      filter_(std::max<uint64_t>(options_.memory_bytes / kMemoryPerFilterKey, 1024)) {
  std::ranges::copy_if(tables_, std::back_inserter(evictable_),
                       [](const EmbeddingTable* table) { return !table->spec().all_in_memory; });
  RowsDb::Options rows{.cache_bytes = cache_bytes_,
                       .open_files = options_.open_files,
                       .cuts = CutsOf(shards_, run_bytes_)};
  if (!gone_.empty()) {
    rows.useless = [this](auto key, auto row) { return gone_.IsGone(key, row); };
  }
  disk_ = std::make_unique<DiskThreads>(
      DiskThreads::Options{options_.folder, std::move(rows), options_.wake});
}

DiskTier::~DiskTier() {
  for (const auto& rows : shards_.rows()) rows->SaveFirstChanges(nullptr);
  disk_.reset();
}

uint64_t DiskTier::bytes() const {
  uint64_t bytes = open_run_.bytes() + filter_.bytes() + (disk_->db() ? cache_bytes_ : 0);
  for (const auto& run : runs_) bytes += run->bytes();
  return bytes;
}

uint64_t DiskTier::disk_bytes() const { return disk_->db() ? disk_->db()->bytes_on_disk() : 0; }

// ------------------------------------------------------------ coming back

bool DiskTier::Resident(std::span<const EmbeddingTable::KeyRun> runs) {
  if (rows_below_ == 0) return true;
  absent_.clear();
  EmbeddingTable::FindAbsent(runs, absent_);
  uint64_t until = 0;
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < absent_.size(); ++i) {
    if (i + kAhead < absent_.size()) {
      filter_.Prefetch(FilterHash(*absent_[i + kAhead].table, absent_[i + kAhead].key));
    }
    const auto [table, key] = absent_[i];
    if (const auto wanted = wanted_.find(Place{table, key}); wanted != wanted_.end()) {
      until = std::max(until, wanted->second);
      continue;
    }
    if (!filter_.MayContain(FilterHash(*table, key))) continue;
    // Slices may name a key each: it came back a moment ago.
    if (table->Contains(key) || Reinstall(*table, key) || nowhere_.contains(Place{table, key}))
      continue;
    Want(*table, key);
    until = fetches_begun_ + 1;
  }
  if (fetch_ != nullptr) {
    ++fetches_begun_;
    disk_->Fetch(std::move(fetch_));
  }
  if (until == 0) return true;
  awaited_.insert(until);
  waiting_ = true;
  return false;
}

bool DiskTier::Writable(std::span<const EmbeddingTable::KeyRun> runs) {
  if (!Resident(runs)) return false;
  const uint64_t slack = std::max(options_.memory_bytes / 32, 32 * kMiB);
  const bool behind = runs_.size() >= kRunsMax;
  if (!behind || shards_.bytes() + bytes() < options_.memory_bytes + slack) return true;
  waiting_ = behind_ = true;
  return false;
}

// From a run that is not on disk yet, but will be: the row need not be written again.
bool DiskTier::Reinstall(EmbeddingTable& table, Key key) {
  std::span<const std::byte> record = open_run_.Find(table, key);
  for (auto run = runs_.rbegin(); record.empty() && run != runs_.rend(); ++run) {
    record = (*run)->Find(table, key);
  }
  if (record.empty()) return false;
  if (table.IsGone(record)) return true;  // As on disk, see Install.
  const Status restored = table.Restore(key, record, true);
  DT_CHECK_MSG(restored.ok(), "{}", ToText(restored));
  NoteBack(table);
  return true;
}

void DiskTier::Want(EmbeddingTable& table, Key key) {
  wanted_.emplace(Place{&table, key}, fetches_begun_ + 1);
  if (fetch_ == nullptr) fetch_ = std::make_unique<RowFetch>();
  fetch_->rows.push_back({&table, key});
}

void DiskTier::Install(RowFetch& fetch) {
  failure_.Update(fetch.status);
  if (nowhere_.size() > kNowhereMax) nowhere_.clear();
  for (const RowFetch::Row& row : fetch.rows) {
    wanted_.erase(Place{row.table, row.key});
    // A row that is gone may have been removed from memory and never counted here; those that were
    // counted stay so. Hence rows_below_ is never too low.
    if (row.record.empty() || row.table->IsGone(row.record)) {
      nowhere_.insert(Place{row.table, row.key});
      continue;
    }
    const Status restored = row.table->Restore(row.key, row.record, true);
    if (!restored.ok()) failure_.Update(DataLoss("{}", MessageOf(restored)));
    ++row.table->tier_counts().fetched;
    NoteBack(*row.table);
  }
}

// ------------------------------------------------------------ leaving

void DiskTier::Work() {
  const uint64_t before = progress_;
  TakeDone(Duration::zero());
  const Status problem = disk_->write_problem();
  if (problem.ok()) {
    full_since_ = {};
  } else if (full_since_ == TimePoint{}) {
    full_since_ = SystemClock().Now();
  } else if (save_ != nullptr && save_->task != nullptr && !save_->asked) {
    save_->task->status = problem;
    saved_ = std::move(save_->task);
  } else if (SystemClock().Now() - full_since_ > kDiskPatience) {
    failure_.Update(problem);
  }
  if (save_ != nullptr) SaveSome();
  if (progress_ == before) Evict();  // Else whoever waits for rows goes first.
}

void DiskTier::TakeDone(Duration patience) {
  for (;; patience = Duration::zero()) {
    std::optional<DiskThreads::Done> done = disk_->Take(patience);
    if (!done.has_value()) return;
    if (done->fetched != nullptr) {
      Install(*done->fetched);
      if (awaited_.erase(++fetches_done_) != 0) NoteProgress();
    } else if (done->made != nullptr) {
      EndSave(std::move(done->made));
    } else {
      DT_CHECK(runs_.front() == done->written);
      runs_.pop_front();
      if (std::exchange(behind_, false)) NoteProgress();
    }
  }
}

// Whoever waits looks at all of its rows again: not more often than it may help.
void DiskTier::NoteProgress() {
  ++progress_;
  swept_ = 0;
  waiting_ = false;
}

uint64_t DiskTier::bytes_max() const {
  const uint64_t others =
      cache_bytes_ + (kRunsMax + 1) * run_bytes_ + filter_.bytes() + shards_.held_bytes();
  // With the smallest budgets the rest takes it all.
  return std::max(options_.memory_bytes - std::min(others, options_.memory_bytes),
                  options_.memory_bytes / 2);
}

// The memory that rows have got they keep: each table must have free places of its own.
void DiskTier::Evict() {
  const uint64_t bytes = shards_.bytes(), most = bytes_max();
  const uint64_t margin = most / 50;
  if (bytes + margin <= most || evictable_.empty()) return;
  const double share = static_cast<double>(bytes + margin - most) /
                       static_cast<double>(std::max<uint64_t>(bytes, 1));
  uint64_t buckets = 0;
  for (const EmbeddingTable* table : evictable_) buckets += table->index_buckets();
  const uint64_t turn = std::min(buckets, kBucketsPerTurn);
  // Requests that wait touch their rows at each progress: these survive a round of the hand.
  const uint64_t most_swept = waiting_ ? buckets : ~uint64_t{0};
  size_t content = 0;  // Tables in a row that have enough free places.
  for (uint64_t swept = 0; swept < turn && swept_ < most_swept && runs_.size() < kRunsMax;) {
    EmbeddingTable& table = *evictable_[hand_ = (hand_ + 1) % evictable_.size()];
    const TableRows& rows = table.rows_of_all();
    const double enough = share * (static_cast<double>(rows.count()) + rows.free());
    if (rows.free() >= enough) {
      if (++content == evictable_.size()) break;
      continue;
    }
    content = 0;
    table.Evict(kBucketsAtOnce, save_ != nullptr ? rows.epoch() : 0, *sink_);
    const uint64_t now = std::min(kBucketsAtOnce, table.index_buckets());
    swept += now;
    swept_ += now;
  }
}

void DiskTier::NoteOnDisk(EmbeddingTable& table, Key key) {
  filter_.Add(FilterHash(table, key));
  if (!nowhere_.empty()) nowhere_.erase(Place{&table, key});
  ++rows_below_;
  ++table.tier_counts().below;
}

void DiskTier::PutBelow(EmbeddingTable& table, Key key, std::span<const std::byte> record,
                        bool on_disk) {
  if (!on_disk) std::ranges::copy(record, sink_->Add(table, key).begin());
  NoteOnDisk(table, key);
}

void DiskTier::NoteBack(EmbeddingTable& table) {
  --rows_below_;
  --table.tier_counts().below;
}

void DiskTier::Seal() {
  if (open_run_.rows() == 0) return;
  if (save_ == nullptr) gone_.Update();
  runs_.push_back(std::make_shared<const RowRun>(std::exchange(open_run_, RowRun())));
  disk_->Write(runs_.back());
}

// ------------------------------------------------------------ checkpoints

void DiskTier::BeginSave(std::unique_ptr<CheckpointTask> task) {
  if (save_ != nullptr) {
    task->status = Unavailable("the rows of the checkpoint before are not on disk yet");
    saved_ = std::move(task);
    return;
  }
  save_ = std::make_unique<Save>();
  save_->task = std::move(task);
  for (const auto& rows : shards_.rows()) {
    save_->epoch = rows->epoch();
    rows->BeginEpoch();
    rows->SaveFirstChanges(sink_.get());
  }
}

// Goes on when the checkpoint has failed, until no change of the epoch is left.
void DiskTier::SaveSome() {
  for (uint64_t walked = 0; walked < kBucketsPerTurn / 4 && !save_->walked;) {
    if (runs_.size() >= kRunsMax) return;
    if (save_->table == tables_.size()) {
      Seal();
      save_->walked = true;
      break;
    }
    save_->at = tables_[save_->table]->SaveChanged(save_->at, kBucketsAtOnce, save_->epoch, *sink_);
    walked += kBucketsAtOnce;
    if (save_->at == KeyIndex::kEnd) save_->at = 0, ++save_->table;
  }
  if (!save_->walked || save_->asked) return;
  save_->asked = true;
  if (save_->task != nullptr) {
    disk_->Make(std::move(save_->task));
  } else {
    EndSave(nullptr);
  }
}

void DiskTier::EndSave(std::unique_ptr<CheckpointTask> task) {
  for (const auto& rows : shards_.rows()) rows->SaveFirstChanges(nullptr);
  if (task != nullptr) saved_ = std::move(task);
  save_.reset();
}

// ------------------------------------------------------------ as a whole

Status DiskTier::Adopt(const std::string& checkpoint) { return disk_->Adopt(checkpoint); }

Status DiskTier::WaitForWrites(size_t runs_left) {
  const TimePoint deadline = SystemClock().Now() + kDiskPatience;
  while (runs_.size() > runs_left) {
    TakeDone(kPoll);
    if (SystemClock().Now() < deadline) continue;
    DT_TRY_STATUS(disk_->write_problem());
    return Timeout("{} rows were not written within {} s", runs_.front()->rows(),
                   std::chrono::duration_cast<seconds>(kDiskPatience).count());
  }
  return OkStatus();
}

Status DiskTier::MakeRoom() {
  Evict();
  return WaitForWrites(kRunsMax - 1);
}

Status DiskTier::VisitRowsBelow(const Visit& visit) {
  if (rows_below_ == 0) return OkStatus();
  Seal();
  DT_TRY_STATUS(WaitForWrites(0));
  const std::unique_ptr<RowsDb::Cursor> at = disk_->db()->Read();
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
