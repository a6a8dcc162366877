#include "worker/tables/worker_table.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/rows/row_record.h"
#include "ops/update/update.h"

namespace dt::worker {
namespace {

constexpr uint32_t kRoomMin = 1024;
constexpr uint64_t kRowsMax = std::numeric_limits<uint32_t>::max();
constexpr size_t kRestoredAtOnce = size_t{4} << 20;  // Floats.

}  // namespace

WorkerTable::WorkerTable(const Options& options)
    : table_(options.table),
      width_(table_.dim + StateFloats(table_.optimizer, table_.dim)),
      updated_(options.updated),
      on_accelerator_(options.accelerator != nullptr),
      initial_(table_.init, options.seed, table_.id) {}

Result<std::unique_ptr<WorkerTable>> WorkerTable::Create(const Options& options) {
  auto table = std::make_unique<WorkerTable>(options);
  DT_TRY(table->memory_, MakeRowMemory(table->width_, options.accelerator));
  const auto room = static_cast<uint32_t>(std::min(options.expected_rows, kRowsMax));
  DT_TRY_STATUS(table->MakeRoom(std::max(kRoomMin, room), 0));
  return table;
}

// Doubles the room, unless only what is needed fits.
Status WorkerTable::MakeRoom(uint32_t needed, uint32_t used) {
  if (needed <= memory_->room()) return OkStatus();
  const auto twice = static_cast<uint32_t>(std::min(kRowsMax, uint64_t{2} * memory_->room()));
  if (twice > needed && memory_->Resize(twice, used).ok()) return OkStatus();
  Status resized = memory_->Resize(needed, used);
  if (resized.ok()) return resized;
  const uint64_t row_bytes = width_ * sizeof(float);
  return WithHint(Unavailable("table {} on {} needs room for {} rows of {} bytes, {} together: {}",
                              table_.name, on_accelerator_ ? "gpu" : "cpu", needed, row_bytes,
                              BytesText(needed * row_bytes), MessageOf(resized)),
                  fmt::format("set model.tables.{}.device to {}, or lower its dim", table_.name,
                              on_accelerator_ ? "cpu or ps" : "ps"));
}

// ------------------------------------------------------------ a slice

Status WorkerTable::Bind(std::span<const Key> keys, Step step, LookupFor purpose) {
  const bool training = purpose == LookupFor::kTrain;
  touched_ += keys.size();
  DT_TRY_STATUS(Find(keys, !training && table_.eval_default == EvalDefault::kZeros));
  if (training && updated_) {
    FindStepsSinceUpdate(step);
    MakeRows();
  }
  return OkStatus();
}

Status WorkerTable::BindStep(std::span<const Key> keys, Step step) {
  DT_TRY_STATUS(Find(keys, false));
  FindStepsSinceUpdate(step);
  bound_ = true;
  return OkStatus();
}

void WorkerTable::BeginUpdate() {
  if (std::exchange(bound_, false)) MakeRows();
}

// Keys without a row get one after the last row: of zeros, or with initial values.
Status WorkerTable::Find(std::span<const Key> keys, bool zeros) {
  const uint32_t before = rows();
  if (before + keys.size() > kRowsMax) {
    return Unavailable("table {} has more than 2^32 rows", table_.name);
  }
  FindRows(keys);
  steps_since_update_.clear();
  const auto needed = before + static_cast<uint32_t>(fresh_.size());
  DT_TRY_STATUS(MakeRoom(needed, before));
  FillFresh(zeros);
  return memory_->Write(before, fresh_rows_);
}

void WorkerTable::MakeRows() {
  for (const Key key : fresh_) {
    numbers_of_.emplace(key, rows());
    keys_.push_back(key);
  }
  const auto known = static_cast<uint32_t>(last_update_.size());
  last_update_.resize(keys_.size());
  for (const uint32_t number : numbers_) {
    Step& last = last_update_[number];
    last = number >= known ? step_ : std::max(last, step_);
  }
}

void WorkerTable::FindRows(std::span<const Key> keys) {
  fresh_.clear();
  numbers_.resize(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto at = numbers_of_.find(keys[i]);
    const bool known = at != numbers_of_.end();
    numbers_[i] = known ? at->second : rows() + static_cast<uint32_t>(fresh_.size());
    if (!known) fresh_.push_back(keys[i]);
  }
}

void WorkerTable::FillFresh(bool zeros) {
  fresh_rows_.assign(fresh_.size() * width_, 0.0f);
  for (size_t i = 0; i < fresh_.size() && !zeros; ++i) {
    const std::span<float> row = std::span(fresh_rows_).subspan(i * width_, width_);
    initial_.Fill(fresh_[i], row.first(table_.dim));
    InitState(table_.optimizer, row.subspan(table_.dim));
  }
}

// The rows are updated once in this step. For a row that had no update, steps count from before
// step 0.
void WorkerTable::FindStepsSinceUpdate(Step step) {
  const auto known = static_cast<uint32_t>(last_update_.size());
  step_ = step;
  steps_since_update_.resize(numbers_.size());
  for (size_t i = 0; i < numbers_.size(); ++i) {
    const Step last = numbers_[i] < known ? last_update_[numbers_[i]] : 0;
    const Step steps_since_update = numbers_[i] >= known ? step + 1 : step > last ? step - last : 1;
    steps_since_update_[i] = static_cast<uint32_t>(
        std::min<Step>(steps_since_update, std::numeric_limits<uint32_t>::max()));
  }
}

TableView WorkerTable::view() const {
  return {memory_->data(), memory_->room(), numbers_, steps_since_update_};
}

// ------------------------------------------------------------ all rows

Status WorkerTable::VisitRows(std::span<const uint32_t> numbers, const Visit& visit) {
  std::vector<float> copy;
  DT_TRY(const std::span<const float> all, memory_->Look(rows(), copy));
  const size_t row_bytes = width_ * sizeof(float);
  std::vector<std::byte> record(record_bytes());
  for (const uint32_t number : numbers) {
    std::memcpy(record.data(), all.data() + size_t{number} * width_, row_bytes);
    std::memcpy(record.data() + row_bytes, &last_update_[number], sizeof(Step));
    DT_TRY_STATUS(visit(keys_[number], record));
  }
  return OkStatus();
}

void WorkerTable::PutSizes(TableReport& sizes) const {
  sizes.name = table_.name;
  sizes.rows = sizes.rows_in_memory = rows();
  sizes.bytes = bytes();
  sizes.rows_touched = touched_;
}

Result<TableReport> WorkerTable::Report() {
  TableReport report;
  PutSizes(report);
  report.rows = report.bytes = 0;  // AddRow counts them.
  std::vector<uint32_t> numbers(rows());
  std::iota(numbers.begin(), numbers.end(), 0u);
  DT_TRY_STATUS(VisitRows(numbers, [&](Key key, std::span<const std::byte> record) {
    AddRow(table_.id, key, record, report);
    return OkStatus();
  }));
  return report;
}

void WorkerTable::Clear() {
  numbers_of_.clear();
  keys_.clear();
  last_update_.clear();
  fresh_rows_.clear();
}

Status WorkerTable::Restore(Key key, std::span<const std::byte> record) {
  const size_t row_bytes = width_ * sizeof(float);
  if (record.size() != record_bytes()) {
    return DataLoss("a row of table {} has {} bytes instead of {}", table_.name, record.size(),
                    record_bytes());
  }
  if (!numbers_of_.emplace(key, rows()).second) {
    return DataLoss("key {} of table {} is there twice", key, table_.name);
  }
  keys_.push_back(key);
  std::memcpy(&last_update_.emplace_back(), record.data() + row_bytes, sizeof(Step));
  const size_t at = fresh_rows_.size();
  fresh_rows_.resize(at + width_);
  std::memcpy(fresh_rows_.data() + at, record.data(), row_bytes);
  return fresh_rows_.size() < kRestoredAtOnce ? OkStatus() : FinishRestore();
}

Status WorkerTable::FinishRestore() {
  const auto first = rows() - static_cast<uint32_t>(fresh_rows_.size() / width_);
  DT_TRY_STATUS(MakeRoom(rows(), first));
  DT_TRY_STATUS(memory_->Write(first, fresh_rows_));
  fresh_rows_.clear();
  return OkStatus();
}

}  // namespace dt::worker
