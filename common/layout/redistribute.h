// How a tensor changes from one layout to another: a sequence of communications and local
// operations, which all ranks carry out one after the other.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/layout/layout.h"
#include "common/layout/transfer.h"

namespace dt {

enum class RedistributionKind : uint8_t {
  kSplit,          // Each device keeps its part of dimension `dim`.
  kAllGather,      // Joins the parts of `dim`.
  kAllToAll,       // Joins the parts of `from_dim`, and divides `dim`.
  kAllReduce,      // Joins the terms; every device has the result.
  kReduceScatter,  // Joins the terms; each device has its part of `dim`.
  kReshape,        // Local: the same elements in another shape.
  kSendRecv,       // Boxes go from rank to rank.
};
std::string_view NameOf(RedistributionKind kind);

struct RedistributionStep {
  RedistributionKind kind = RedistributionKind::kSplit;
  // Axes of after.matrix: the devices of a group differ along these, and act in this order.
  AxisList axes;
  size_t dim = 0, from_dim = 0;
  Layout after;       // The layout after this step.
  Shape shape;        // The shape of the whole tensor after this step.
  Transfer transfer;  // For kSendRecv.
};

struct Redistribution {
  std::vector<RedistributionStep> steps;  // Empty if nothing has to be done.
  int64_t bytes = 0;   // Received or sent, whichever is more, by the rank with the most of it.
  double seconds = 0;  // For people; no decision depends on it.
};

struct RedistributionOptions {
  bool all_to_all = true;  // False: AllGather and Split instead of AllToAll and SendRecv.
  int64_t element_bytes = 4;
  bool boxes = true;       // False: no SendRecv, where the steps serve for other extents too.
  double latency = 20e-6;  // Seconds for each communication.
  double bytes_per_second = 10e9;  // The rate of the slowest link.
};

// The sequence with the least bytes; among these the one with the fewest steps; among these the
// first in the order of dimensions. Never more bytes than joining the whole tensor and dividing it
// again, and the same for the same input. The shapes may differ if they have equally many elements:
// then the tensor is reshaped too. Parts of a sum are added in the order of their group.
//
// Costs, with n devices in a group and p elements on a device before the step (Thakur et al.,
// "Optimization of Collective Communication Operations in MPICH", 2005): AllReduce 2p(n-1)/n,
// ReduceScatter and AllToAll p(n-1)/n, AllGather and SendRecv the elements received.
//
// Errors: Invalid, if a layout does not fit its shape, if the new layout is partial where the old
// one is not, or if the shapes have different sizes.
Result<Redistribution> Redistribute(const ShapedLayout& from, const ShapedLayout& to,
                                    const RedistributionOptions& options);

}  // namespace dt
