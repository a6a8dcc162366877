#include "common/rows/file_rows.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/ranges.h>

namespace dt {

Result<FileRows> FileRows::Open(const std::string& path, const std::string& table, uint32_t dim) {
  DT_TRY(ArrayReader reader, ArrayReader::Open(path));
  FileRows rows(std::move(reader));
  const auto find = [&](const char* what) {
    const ArrayReader::Array* const named =
        rows.reader_.Find(fmt::format("table.{}.{}", table, what));
    return named != nullptr ? named : rows.reader_.Find(what);
  };
  rows.keys_ = find("keys");
  rows.values_ = find("values");
  for (const auto& [array, what] : {std::pair(rows.keys_, "keys"), {rows.values_, "values"}}) {
    if (array != nullptr) continue;
    return WithWhere(Malformed("it has neither an array {} nor table.{}.{}", what, table, what),
                     path);
  }
  const std::vector<uint64_t>&keys = rows.keys_->shape, &values = rows.values_->shape;
  if (keys.size() == 1 && values == std::vector<uint64_t>{keys[0], dim}) return rows;
  return WithWhere(Malformed("keys have the shape [{}] and values [{}]; table {} needs [n] and "
                             "[n, {}]",
                             fmt::join(keys, ", "), fmt::join(values, ", "), table, dim),
                   path);
}

Status FileRows::ForEach(
    const std::function<bool(Key key)>& wanted,
    const std::function<Status(Key key, std::span<const float> values)>& visit) const {
  std::array<Key, 4096> keys;
  std::vector<float> values(values_->shape[1]);
  for (uint64_t first = 0; first < rows(); first += keys.size()) {
    const std::span<Key> some = std::span(keys).first(std::min(keys.size(), rows() - first));
    DT_TRY_STATUS(reader_.ReadKeys(*keys_, first, some));
    for (uint64_t i = 0; i < some.size(); ++i) {
      if (!wanted(some[i])) continue;
      DT_TRY_STATUS(reader_.ReadFloats(*values_, (first + i) * values.size(), values));
      DT_TRY_STATUS(visit(some[i], values));
    }
  }
  return OkStatus();
}

}  // namespace dt
