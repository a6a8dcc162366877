// The rows of one table in all shards of one executor. Owned by the executor's thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/rows/initial_rows.h"
#include "common/rows/missed_updates.h"
#include "ops/update/update.h"
#include "server/table/row_sink.h"
#include "server/table/row_slabs.h"
#include "server/table/table_spec.h"

namespace dt::server {

class TableRows {
 public:
  explicit TableRows(const TableSpec& spec);

  // Adds a row in the state before its first push; returns its number.
  uint32_t Add(Key key);
  // Returns the row to the state before its first push.
  void Renew(uint32_t number, Key key);
  // Adds a row from its record (CopyRecord). `on_disk`: the disk has the same record. REQUIRES:
  // record.size() == record_bytes().
  uint32_t AddRecord(std::span<const std::byte> record, bool on_disk = false);
  void SetRecord(uint32_t number, std::span<const std::byte> record, bool on_disk = false);
  void Remove(uint32_t number) { slabs_.Remove(number); }
  void Clear() { slabs_.Clear(); }

  // values f32 or bf16 [dim], padded to a multiple of 4 bytes | optimizer state f32 [state]
  std::byte* row(uint32_t number) { return slabs_.row(number); }
  const std::byte* row(uint32_t number) const { return slabs_.row(number); }
  RowHeader& header(uint32_t number) { return slabs_.header(number); }
  const RowHeader& header(uint32_t number) const { return slabs_.header(number); }

  // The form of a row in checkpoints and checksums: values, state, last push u64.
  uint32_t record_bytes() const { return row_bytes_ + uint32_t{sizeof(Step)}; }
  void CopyRecord(uint32_t number, std::span<std::byte> out) const;

  // Whether rows change in steps that do not push them (`scope: dense`): then ReadMissed is to be
  // used, not ReadValues.
  bool has_missed_updates() const { return missed_.has_value(); }
  // Read the values of a row, or of one that was never pushed, in `format`. For values stored as
  // bf16, initial values are rounded as updates are: a row reads the same before and after it is
  // made.
  void ReadValues(const std::byte* row, FloatFormat format, std::byte* out) const;
  void ReadInitial(Key key, FloatFormat format, std::byte* out) const;
  // As after these steps.
  void ReadMissed(const std::byte* row, MissedUpdates::Steps missed, FloatFormat format,
                  std::byte* out) const;
  // Updates a row once. Values stored as bf16 are rounded at random, by (seed, table, key, step,
  // column): on average a row becomes what fp32 would make of it.
  struct RowPush {
    Key key = 0;
    Step step = 0;
    RowHeader header;  // Before this push.
    const float* gradient = nullptr;
  };
  void Update(std::byte* row, const RowUpdate& update, const RowPush& push) const {
    if (spec_.dtype != FloatFormat::kFp32) return UpdateRounded(row, update, push);
    UpdateValues({reinterpret_cast<float*>(row), spec_.dim}, StateOf(row), update, push);
  }

  const TableSpec& spec() const { return spec_; }
  const InitialRows& initial() const { return initial_; }
  uint32_t state() const { return state_; }
  uint32_t values_bytes() const { return values_bytes_; }
  uint32_t row_bytes() const { return row_bytes_; }
  // Changes are marked with the current period; the next one begins when a checkpoint is cut.
  uint32_t change_period() const { return change_period_; }
  void BeginChangePeriod() { change_period_ = 3 - change_period_; }
  // While a checkpoint is being saved, `sink` gets rows of the previous period when they are about
  // to change. Null: no checkpoint is being saved.
  void SaveFirstChanges(RowSink* sink) { first_changes_ = sink; }
  RowSink* first_changes() const { return first_changes_; }

  uint32_t count() const { return slabs_.count(); }
  uint32_t free() const { return slabs_.free(); }
  uint64_t bytes() const { return slabs_.bytes(); }
  // The update for pushes with this step and lr_scale; valid until the next call with others.
  const RowUpdate& UpdateFor(const UpdateInfo& info);

 private:
  std::span<float> StateOf(std::byte* row) const {
    return {reinterpret_cast<float*>(row + values_bytes_), state_};
  }
  std::span<const float> StateOf(const std::byte* row) const {
    return {reinterpret_cast<const float*>(row + values_bytes_), state_};
  }
  void UpdateValues(std::span<float> values, std::span<float> state, const RowUpdate& update,
                    const RowPush& push) const {
    if (missed_.has_value()) {
      missed_->Apply({push.header.last_push() + 1, push.step}, values, state);
    }
    const uint64_t steps = missed_.has_value() ? 1 : push.header.StepsSinceUpdate(push.step);
    update.Apply(steps, values, state, {push.gradient, spec_.dim});
  }
  void UpdateRounded(std::byte* row, const RowUpdate& update, const RowPush& push) const;
  void FillInitial(Key key, std::byte* row) const;
  uint64_t RandomOf(Key key, Step step) const;

  const TableSpec spec_;
  const uint64_t rounding_;  // The stream of random numbers for rounding.
  const uint32_t state_;
  const uint32_t values_bytes_;
  const uint32_t row_bytes_;
  const InitialRows initial_;
  RowSlabs slabs_;
  uint32_t change_period_ = 1;
  RowSink* first_changes_ = nullptr;
  std::optional<MissedUpdates> missed_;
  UpdateInfo update_info_;
  RowUpdate update_;  // The update for update_info_.
};

}  // namespace dt::server
