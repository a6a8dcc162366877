#include "worker/data/parquet/row_parts.h"

#include <algorithm>

namespace dt::worker {
namespace {

// What a part takes in memory. A batch of parts is in memory at once, one or two for each thread.
constexpr uint64_t kPartBytes = 8 << 20;
constexpr uint64_t kPartRowsMin = 256, kPartRowsMax = 1 << 20;
// The sizes of smaller row groups are taken to be like their neighbours', because asking for them
// takes long in files that have many.
constexpr uint64_t kMeasuredRows = 4096;

}  // namespace

uint64_t RowRuns::PartRows(uint32_t group, uint64_t rows) {
  if (row_bytes_ == 0 || rows >= kMeasuredRows) {
    row_bytes_ = std::max<uint64_t>(1, file_.DecodedBytes({group, 1}) / rows);
  }
  return std::clamp(kPartBytes / std::max(row_bytes_, record_bytes_), kPartRowsMin, kPartRowsMax);
}

// A row group of up to two parts is read at once. Smaller ones are joined.
bool RowRuns::Next(RowRun& out) {
  out = {};
  for (; next_group_ < groups_.first + groups_.count; ++next_group_) {
    const uint64_t rows = file_.rows_of(next_group_);
    if (rows == 0 && out.rows == 0) continue;
    const uint64_t part_rows = rows == 0 ? out.part_rows : PartRows(next_group_, rows);
    if (out.rows > 0 && out.rows + rows > part_rows) break;
    if (out.rows == 0) out.groups.first = next_group_;
    ++out.groups.count;
    out.rows += rows;
    out.part_rows = out.rows > 2 * part_rows ? part_rows : std::max(out.rows, part_rows);
  }
  rows_given_ += out.rows;
  return out.rows > 0;
}

std::string RunReader::PlaceOf(uint64_t row) const {
  uint32_t group = run_.groups.first;
  while (row >= file_.rows_of(group) && group + 1 < run_.groups.first + run_.groups.count) {
    row -= file_.rows_of(group);
    ++group;
  }
  return fmt::format("row group {}, row {}", group, row);
}

Status RunReader::ReadPart() {
  const bool is_large = run_.parts() > 1;
  if (rows_ == nullptr) {
    DT_TRY(rows_, file_.Read(run_.groups, run_.part_rows, is_large));
  }
  const uint64_t expected = std::min(run_.part_rows, run_.rows - parts_read_ * run_.part_rows);
  uint64_t rows = 0;
  while (rows < expected) {
    DT_TRY(OwnedBatch batch, rows_->Next());
    if (batch == nullptr) break;
    rows += batch->rows;
    parts_[parts_read_].push_back(std::move(batch));
  }
  if (rows != expected) {
    return Malformed("{}: {}: {} rows found, {} expected", file_.name(),
                     PlaceOf(parts_read_ * run_.part_rows), rows, expected);
  }
  if (++parts_read_ == run_.parts()) rows_ = nullptr;
  return OkStatus();
}

Result<std::vector<OwnedBatch>> RunReader::Take(uint64_t part, bool& was_last) {
  MutexLock lock(mutex_);
  was_last = --left_ == 0;
  while (parts_read_ <= part && failed_.ok()) failed_ = ReadPart();
  if (parts_read_ <= part) return failed_;
  return std::move(parts_[part]);
}

}  // namespace dt::worker
