#include "worker/data/derived_column.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/philox.h"

namespace dt::worker {
namespace {

constexpr uint64_t kSampledPurpose = 0x6461746173616d70;  // "datasamp"
constexpr uint32_t kAttempts = 8;

absl::flat_hash_map<Key, uint64_t> CountKeys(const KeyColumn& keys) {
  absl::flat_hash_map<Key, uint64_t> counts;
  for (uint64_t row = 0; row < keys.rows; ++row) ++counts[keys.At(row)];
  return counts;
}

}  // namespace

DerivedColumn::DerivedColumn(const ColumnSpec& spec, uint64_t seed, KeyColumn of)
    : seed_(seed),
      name_hash_(HashString(spec.name)),
      length_(spec.length),
      of_(of),
      uniform_(spec.transform == "sampled_uniform"),
      sampled_(spec.is_sampled()) {
  if (sampled_ && !uniform_) return;
  for (const auto& [key, count] : CountKeys(of)) {
    if (uniform_) {
      distinct_.push_back(key);
    } else {
      const double share = static_cast<double>(count) / static_cast<double>(of.rows);
      log_frequency_[key] = static_cast<float>(std::log(share));
    }
  }
  std::ranges::sort(distinct_);
}

Key DerivedColumn::Draw(uint64_t stream, uint64_t row, uint32_t number) const {
  const Key own = of_.At(row);
  const uint64_t candidates = uniform_ ? distinct_.size() : of_.rows;
  Key key = own;
  for (uint32_t attempt = 0; attempt < kAttempts && key == own; ++attempt) {
    const PhiloxBlock bits = Philox(stream, row, uint64_t{number} << 32 | attempt);
    // The high half of a 128-bit product is uniform below `candidates`; see epoch_order.cc.
    __extension__ using Wide = unsigned __int128;
    const uint64_t random = uint64_t{bits[1]} << 32 | bits[0];
    const auto at = static_cast<uint64_t>(Wide{random} * candidates >> 64);
    key = uniform_ ? distinct_[at] : of_.At(at);
  }
  return key;
}

void DerivedColumn::Fill(uint64_t epoch, std::span<const uint64_t> rows, BatchColumn& out) const {
  if (!sampled_) {
    DT_CHECK(out.floats.size() == rows.size());
    for (size_t i = 0; i < rows.size(); ++i) out.floats[i] = log_frequency_.at(of_.At(rows[i]));
    return;
  }
  DT_CHECK(out.keys.size() == rows.size() * length_);
  const uint64_t stream = StreamKey(seed_, kSampledPurpose, name_hash_, epoch);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (uint32_t n = 0; n < length_; ++n) out.keys[i * length_ + n] = Draw(stream, rows[i], n);
  }
}

}  // namespace dt::worker
