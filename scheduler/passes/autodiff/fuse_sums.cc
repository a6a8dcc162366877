#include "scheduler/passes/autodiff/fuse_sums.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

namespace dt::scheduler {
namespace {

constexpr double kAutoMin = 256 << 10, kAutoMax = 64 << 20;

double FullBytes(std::span<const SumToFuse> sums, const FusionConfig& fusion) {
  if (!fusion.begins.empty()) return std::numeric_limits<double>::infinity();
  if (!fusion.automatic()) return static_cast<double>(fusion.bytes);
  double all = 0;
  for (const SumToFuse& sum : sums) all += sum.bytes;
  return std::clamp(all / 8, kAutoMin, kAutoMax);
}

class Fuser {
 public:
  Fuser(std::span<const SumToFuse> sums, const FusionConfig& fusion)
      : sums_(sums), fusion_(fusion), full_(FullBytes(sums, fusion)), numbers_(sums.size()) {}

  std::vector<uint32_t> Run() {
    std::vector<size_t> order(sums_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [this](size_t i) { return sums_[i].producer; });
    for (const SumToFuse& sum : sums_) ++left_[KeyOf(sum)];
    for (uint32_t k = 0; k < order.size(); ++k) {
      if (std::ranges::find(fusion_.begins, k) != fusion_.begins.end()) CloseUnnumbered();
      Add(order[k]);
    }
    CloseAll();
    return std::move(numbers_);
  }

 private:
  struct Bucket {
    double bytes = 0;
    std::vector<size_t> sums;
  };

  // Only sums with equal keys can share a bucket.
  using Key = std::pair<uint32_t, Attrs>;
  static Key KeyOf(const SumToFuse& sum) { return {sum.fusion, sum.held}; }
  Key KeyOf(const Bucket& bucket) const { return KeyOf(sums_[bucket.sums.front()]); }

  // Behind all others, because its last gradient is the latest.
  void Add(size_t i) {
    const Key key = KeyOf(sums_[i]);
    const auto fits = [&](const Bucket& b) { return KeyOf(b) == key; };
    const auto open = std::ranges::find_if(open_, fits);
    if (open == open_.end()) {
      open_.emplace_back();
    } else {
      std::rotate(open, open + 1, open_.end());
    }
    Bucket& bucket = open_.back();
    bucket.bytes += sums_[i].bytes;
    bucket.sums.push_back(i);
    const bool is_last = --left_[key] == 0;
    if (key.first != 0 ? !is_last : bucket.bytes < full_) return;
    Close(bucket);
    open_.pop_back();
  }

  void Close(const Bucket& bucket) {
    for (const size_t i : bucket.sums) numbers_[i] = closed_;
    ++closed_;
  }
  void CloseUnnumbered() {
    const auto numbered = [this](const Bucket& bucket) { return KeyOf(bucket).first != 0; };
    for (const Bucket& bucket : open_) {
      if (!numbered(bucket)) Close(bucket);
    }
    std::erase_if(open_, std::not_fn(numbered));
  }
  void CloseAll() {
    for (const Bucket& bucket : open_) Close(bucket);
    open_.clear();
  }

  const std::span<const SumToFuse> sums_;
  const FusionConfig& fusion_;
  const double full_;
  std::vector<Bucket> open_;  // By their last gradients.
  uint32_t closed_ = 0;
  std::vector<uint32_t> numbers_;
  std::map<Key, size_t> left_;  // Sums that have not been added yet.
};

}  // namespace

std::vector<uint32_t> FuseSums(std::span<const SumToFuse> sums, const FusionConfig& fusion) {
  return Fuser(sums, fusion).Run();
}

}  // namespace dt::scheduler
