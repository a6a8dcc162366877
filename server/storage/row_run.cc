#include "server/storage/row_run.h"

#include <algorithm>

namespace dt::server {

std::span<std::byte> RowRun::Add(const RowKey& row, uint32_t bytes) {
  const uint64_t at = records_.size();
  rows_.insert_or_assign(row, static_cast<uint32_t>(entries_.size()));
  entries_.push_back({row, bytes, at});
  records_.resize(at + bytes);
  return std::span(records_).subspan(at);
}

std::span<const std::byte> RowRun::Find(const RowKey& row) const {
  const auto it = rows_.find(row);
  return it == rows_.end() ? std::span<const std::byte>() : entries_[it->second].record(*this);
}

std::vector<RowRun::Entry> RowRun::Sorted() const {
  std::vector<Entry> entries;
  entries.reserve(rows_.size());
  if (rows_.size() == entries_.size()) {
    entries = entries_;
  } else {
    for (const auto& [row, entry] : rows_) entries.push_back(entries_[entry]);
  }
  std::ranges::sort(entries, {}, &Entry::key);
  return entries;
}

}  // namespace dt::server
