#include "server/table/table_rows.h"

#include <cstring>

#include "common/base/check.h"

namespace dt::server {
std::vector<TableSpec> TableSpecsOf(const JobConfig& job) {
  std::vector<TableSpec> specs;
  for (const TableConfig& t : job.model.tables) {
    specs.push_back(
        {t.name, t.id, t.dim, t.init, t.optimizer, t.scheduled, t.eval_default, job.seed, t.wire});
  }
  return specs;
}

TableRows::TableRows(const TableSpec& spec)
    : spec_(spec),
      state_(spec.state()),
      row_bytes_((spec.dim + state_) * uint32_t{sizeof(float)}),
      initial_(spec.init, spec.seed, spec.id),
      slabs_(row_bytes_),
      update_(spec.optimizer, update_info_) {}

uint32_t TableRows::Add(Key key) {
  const uint32_t number = slabs_.Add();
  float* const values = row(number);
  initial_.Fill(key, {values, spec_.dim});
  InitState(spec_.optimizer, {values + spec_.dim, state_});
  header(number) = {RowHeader::kNever, epoch_};
  return number;
}

uint32_t TableRows::AddRecord(std::span<const std::byte> record, bool on_disk) {
  DT_CHECK(record.size() == record_bytes());
  const uint32_t number = slabs_.Add();
  std::memcpy(row(number), record.data(), row_bytes_);
  Step last_push = 0;
  std::memcpy(&last_push, record.data() + row_bytes_, sizeof(last_push));
  header(number) = {last_push, on_disk ? RowHeader::kOnDisk : epoch_};
  return number;
}

void TableRows::CopyRecord(uint32_t number, std::span<std::byte> out) const {
  DT_CHECK(out.size() == record_bytes());
  std::memcpy(out.data(), row(number), row_bytes_);
  const Step last_push = header(number).last_push();
  std::memcpy(out.data() + row_bytes_, &last_push, sizeof(last_push));
}

const RowUpdate& TableRows::UpdateFor(const UpdateInfo& info) {
  UpdateInfo own = info;
  if (!spec_.scheduled) own.rate_scale = 1.0f;
  if (own != update_info_) {
    update_info_ = own;
    update_ = RowUpdate(spec_.optimizer, own);
  }
  return update_;
}

}  // namespace dt::server
