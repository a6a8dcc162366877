#include "worker/data/epoch_order.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"
#include "common/base/philox.h"

namespace dt::worker {
namespace {

// Streams of random numbers under the job's seed.
constexpr uint64_t kStartPurpose = 0x6461746173746172;    // "datastar"
constexpr uint64_t kWindowsPurpose = 0x6461746177696e64;  // "datawind"
constexpr uint64_t kRowsPurpose = 0x64617461726f7773;     // "datarows"

// Number `i` of the stream, in [0, bound): the high half of a 128-bit product (Lemire 2019, without
// the rejection: the bias is below bound / 2^64).
uint64_t Draw(uint64_t stream, uint64_t i, uint64_t bound) {
  const PhiloxBlock bits = Philox(stream, 0, i / 2);
  const size_t half = 2 * (i % 2);
  const uint64_t x = uint64_t{bits[half]} << 32 | bits[half + 1];
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(Wide{x} * bound >> 64);
}

// Durstenfeld's form of the Fisher-Yates shuffle.
template <class T>
void Shuffle(uint64_t stream, std::vector<T>& items) {
  for (uint64_t left = items.size(); left > 1; --left) {
    std::swap(items[left - 1], items[Draw(stream, left, left)]);
  }
}

}  // namespace

EpochOrder::EpochOrder(uint64_t seed, uint64_t epoch, uint64_t rows, uint64_t window)
    : seed_(seed),
      epoch_(epoch),
      rows_(rows),
      window_(std::min({window, rows, uint64_t{0xffffffff}})) {
  if (window_ == 0) return;
  start_ = Draw(StreamKey(seed_, kStartPurpose, epoch_), 0, rows_);
  window_order_.resize((rows_ + window_ - 1) / window_);
  std::iota(window_order_.begin(), window_order_.end(), uint64_t{0});
  Shuffle(StreamKey(seed_, kWindowsPurpose, epoch_), window_order_);
  const auto last = std::find(window_order_.begin(), window_order_.end(), window_order_.size() - 1);
  last_visit_ = static_cast<uint64_t>(last - window_order_.begin());
}

void EpochOrder::Materialise(uint64_t window_number) {
  if (held_ == window_number) return;
  const uint64_t begin = window_number * window_;
  permutation_.resize(std::min(window_, rows_ - begin));
  std::iota(permutation_.begin(), permutation_.end(), uint32_t{0});
  Shuffle(StreamKey(seed_, kRowsPurpose, epoch_, window_number), permutation_);
  held_ = window_number;
}

void EpochOrder::Rows(uint64_t begin, uint64_t end, std::vector<uint64_t>& out) {
  DT_CHECK(begin <= end && end <= rows_);
  if (window_ == 0) {
    for (uint64_t row = begin; row < end; ++row) out.push_back(row);
    return;
  }
  // All windows are full but the last one, which is visited as number `last_visit_`.
  const uint64_t last_size = rows_ - (window_order_.size() - 1) * window_;
  const uint64_t short_by = window_ - last_size;
  for (uint64_t at = begin; at < end;) {
    const bool after_last = at >= last_visit_ * window_ + last_size;
    const uint64_t shifted = after_last ? at + short_by : at;
    const uint64_t number = window_order_[shifted / window_];
    Materialise(number);
    const uint64_t inside = shifted % window_;
    const uint64_t count = std::min(end - at, permutation_.size() - inside);
    const uint64_t first = start_ + number * window_;
    for (uint64_t i = inside; i < inside + count; ++i) {
      const uint64_t row = first + permutation_[i];
      out.push_back(row < rows_ ? row : row - rows_);
    }
    at += count;
  }
}

SampleRange StepRange(uint64_t rows, uint32_t batch_size, uint64_t step_in_epoch) {
  DT_CHECK(batch_size > 0);
  const uint64_t steps = (rows + batch_size - 1) / batch_size;
  if (step_in_epoch >= steps) return {rows, rows};
  const uint64_t begin = step_in_epoch * batch_size;
  return {begin, std::min(rows, begin + batch_size)};
}

SampleRange SliceRange(SampleRange step, SliceIndex k, uint32_t n) {
  DT_CHECK(n > 0 && k < n);
  const uint64_t each = (step.size() + n - 1) / n;
  const uint64_t begin = std::min(step.end, step.begin + k * each);
  return {begin, std::min(step.end, begin + each)};
}

}  // namespace dt::worker
