#include "server/table/table_rows.h"

#include <array>
#include <cstring>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/philox.h"

namespace dt::server {
TableRows::TableRows(const TableSpec& spec)
    : spec_(spec),
      rounding_(StreamKey(spec.seed, HashString("rounding"), spec.id.value())),
      state_(spec.state()),
      values_bytes_(static_cast<uint32_t>(RowsBytes(spec.dtype, spec.dim, 1))),
      row_bytes_(values_bytes_ + state_ * uint32_t{sizeof(float)}),
      initial_(spec.init, spec.seed, spec.id),
      slabs_(row_bytes_),
      update_(spec.optimizer, update_info_) {
  if (spec.optimizer.scope == UpdateScope::kDense) missed_.emplace(spec.optimizer);
  DT_CHECK(spec.dtype == FloatFormat::kFp32 || spec.dtype == FloatFormat::kBf16);
}

uint64_t TableRows::RandomOf(Key key, Step step) const {
  return MixBits(MixBits(key ^ rounding_) + step);
}

// Writes the values of a row that was never pushed, as they are stored.
void TableRows::FillInitial(Key key, std::byte* row) const {
  if (spec_.dtype == FloatFormat::kFp32) {
    return initial_.Fill(key, {reinterpret_cast<float*>(row), spec_.dim});
  }
  std::array<float, kRowDimMax> room;  // Not initialised: most rows need little of it.
  const std::span<float> values(room.data(), spec_.dim);
  initial_.Fill(key, values);
  std::memset(row + values_bytes_ - 4, 0, 4);  // The padding is part of the record.
  RoundToBf16(RandomOf(key, RowHeader::kNever), values, row);
}

void TableRows::ReadValues(const std::byte* row, FloatFormat format, std::byte* out) const {
  if (format == spec_.dtype) {
    std::memcpy(out, row, RowBytes(format, spec_.dim));
    return;
  }
  std::array<float, kRowDimMax> room;
  const float* const values = FloatsOf(spec_.dtype, row, {room.data(), spec_.dim});
  EncodeRow(format, {values, spec_.dim}, out);
}

void TableRows::ReadMissed(const std::byte* row, MissedUpdates::Steps missed, FloatFormat format,
                           std::byte* out) const {
  std::array<float, kRowDimMax> room;  // Not initialised: most rows need little of it.
  const std::span<float> values(room.data(), spec_.dim);
  DecodeRow(spec_.dtype, row, values);
  missed_->ApplyToValues(missed, values, StateOf(row));
  EncodeRow(format, values, out);
}

void TableRows::ReadInitial(Key key, FloatFormat format, std::byte* out) const {
  alignas(float) std::array<std::byte, kRowDimMax * sizeof(float)> row;
  FillInitial(key, row.data());
  ReadValues(row.data(), format, out);
}

void TableRows::UpdateRounded(std::byte* row, const RowUpdate& update, const RowPush& push) const {
  std::array<float, kRowDimMax> room;
  const std::span<float> values(room.data(), spec_.dim);
  DecodeRow(spec_.dtype, row, values);
  UpdateValues(values, StateOf(row), update, push);
  RoundToBf16(RandomOf(push.key, push.step), values, row);
}

uint32_t TableRows::Add(Key key) {
  const uint32_t number = slabs_.Add();
  Renew(number, key);
  return number;
}

void TableRows::Renew(uint32_t number, Key key) {
  std::byte* const to = row(number);
  FillInitial(key, to);
  InitState(spec_.optimizer, StateOf(to));
  header(number) = {RowHeader::kNever, change_period_};
}

uint32_t TableRows::AddRecord(std::span<const std::byte> record, bool on_disk) {
  const uint32_t number = slabs_.Add();
  SetRecord(number, record, on_disk);
  return number;
}

void TableRows::SetRecord(uint32_t number, std::span<const std::byte> record, bool on_disk) {
  DT_CHECK(record.size() == record_bytes());
  std::memcpy(row(number), record.data(), row_bytes_);
  Step last_push = 0;
  std::memcpy(&last_push, record.data() + row_bytes_, sizeof(last_push));
  header(number) = {last_push, on_disk ? RowHeader::kOnDisk : change_period_};
}

void TableRows::CopyRecord(uint32_t number, std::span<std::byte> out) const {
  DT_CHECK(out.size() == record_bytes());
  std::memcpy(out.data(), row(number), row_bytes_);
  const Step last_push = header(number).last_push();
  std::memcpy(out.data() + row_bytes_, &last_push, sizeof(last_push));
}

const RowUpdate& TableRows::UpdateFor(const UpdateInfo& info) {
  UpdateInfo own = info;
  if (!spec_.scheduled) own.lr_scale = 1.0f;
  if (own != update_info_) {
    update_info_ = own;
    update_ = RowUpdate(spec_.optimizer, own);
  }
  return update_;
}

}  // namespace dt::server
