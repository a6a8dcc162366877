#include "server/storage/saver.h"

#include "common/base/check.h"
#include "server/storage/evictor.h"

namespace dt::server {
namespace {

constexpr uint64_t kBucketsAtOnce = 512;       // Buckets of one index per call.
constexpr uint64_t kBucketsPerTurn = 8 << 10;  // Takes some milliseconds.

}  // namespace

Saver::~Saver() {
  for (const auto& rows : shards_.rows()) rows->SaveFirstChanges(nullptr);
}

void Saver::Begin(std::unique_ptr<CheckpointTask> task) {
  if (saving()) {
    task->status = Unavailable("the rows of the checkpoint before are not on disk yet");
    saved_ = std::move(task);
    return;
  }
  task_ = std::move(task);
  stage_ = Stage::kWalking;
  walked_shards_.clear();
  for (const Shard& shard : shards_.shards()) walked_shards_.push_back(shard.id());
  shard_ = 0;
  table_ = 0;
  position_ = 0;
  below_.SetSaving(true);
  for (const auto& rows : shards_.rows()) {
    change_period_ = rows->change_period();
    rows->BeginChangePeriod();
    rows->SaveFirstChanges(&below_);
  }
}

void Saver::Work() {
  if (stage_ == Stage::kWalking) Walk();
  if (stage_ == Stage::kWalked) Give();
}

EmbeddingTable* Saver::Table() {
  for (; shard_ < walked_shards_.size(); ++shard_, table_ = 0) {
    Shard* const shard = shards_.Find(walked_shards_[shard_]);
    DT_CHECK(shard != nullptr);
    if (table_ < shard->tables()) return &shard->table(table_);
  }
  return nullptr;
}

void Saver::Walk() {
  for (uint64_t walked = 0; walked < kBucketsPerTurn; walked += kBucketsAtOnce) {
    if (below_.runs().size() >= Evictor::kRunsMax) return;
    EmbeddingTable* const table = Table();
    if (table == nullptr) {
      below_.Seal();
      stage_ = Stage::kWalked;
      return;
    }
    position_ = table->SaveChanged(position_, kBucketsAtOnce, change_period_, below_);
    if (position_ != KeyIndex::kEnd) continue;
    position_ = 0;
    ++table_;
  }
}

// The checkpoint consists of what the disk was given before it.
void Saver::Give() {
  if (task_ == nullptr) return End();
  if (!below_.runs_wait() && disk_.TryMake(task_)) stage_ = Stage::kGiven;
}

void Saver::FailUnlessGiven(const Status& problem) {
  if (task_ == nullptr) return;
  task_->status = problem;
  saved_ = std::move(task_);
}

void Saver::OnMade(std::unique_ptr<CheckpointTask> task) {
  saved_ = std::move(task);
  End();
}

void Saver::End() {
  for (const auto& rows : shards_.rows()) rows->SaveFirstChanges(nullptr);
  below_.SetSaving(false);
  stage_ = Stage::kIdle;
}

}  // namespace dt::server
