// A tensor as the devices of a layout hold it, in one thread: what redistribution does to it, step
// by step.
#pragma once

#include <map>
#include <vector>

#include "common/layout/redistribute.h"

namespace dt::test {

struct LocalTensor {
  Shape shape;
  std::vector<double> values;
  friend bool operator==(const LocalTensor&, const LocalTensor&) = default;
};

class HeldTensor {
 public:
  // A tensor with the values of `whole`. Partial axes get terms that add up to them, or whose
  // largest is each of them.
  HeldTensor(const Layout& layout, const Shape& shape, const std::vector<double>& whole);

  // Fails the test if a part does not have the shape that the step's layout says.
  void Apply(const RedistributionStep& step);
  const Layout& layout() const { return layout_; }
  const std::map<uint32_t, LocalTensor>& by_rank() const { return local_; }
  // Elements received by the rank that received most.
  double received() const;

 private:
  LocalTensor Reduced(const RankList& group) const;
  void Gather(const RedistributionStep& step, const RankList& group,
              std::map<uint32_t, LocalTensor>& after);
  void Exchange(const RedistributionStep& step, const RankList& group,
                std::map<uint32_t, LocalTensor>& after);
  void Split(const RedistributionStep& step, const RankList& group,
             std::map<uint32_t, LocalTensor>& after);
  void Reduce(const RedistributionStep& step, const RankList& group,
              std::map<uint32_t, LocalTensor>& after);
  void Send(const RedistributionStep& step, std::map<uint32_t, LocalTensor>& after);
  const LocalTensor& Of(DeviceIndex device) const { return local_.at(RankOf(layout_, device)); }

  Layout layout_;
  Shape shape_;  // Of the whole tensor.
  std::map<uint32_t, LocalTensor> local_;
  std::map<uint32_t, double> received_;
};

LocalTensor PartOf(const LocalTensor& of, size_t dim, const Range& range);
// Part `index` of `count` along a dimension.
LocalTensor EvenPartOf(const LocalTensor& of, size_t dim, int64_t count, int64_t index);
LocalTensor JoinedAlong(const std::vector<LocalTensor>& parts, size_t dim);

}  // namespace dt::test
