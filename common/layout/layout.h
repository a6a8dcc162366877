// How a tensor lies on devices: which part of it each device holds. Pure arithmetic, without
// devices, data or time.
//
// The devices form a matrix, row-major, its last axis fastest. A layout cuts each dimension of the
// tensor over some axes of the matrix. Along an axis that cuts no dimension, devices hold copies;
// along a partial axis, they hold terms of a sum. With the matrix (2, 3), a tensor [6, 4] whose
// first dimension is cut over axis 1:
//
//      device     0       1       2       3       4       5
//      rows      0 1     2 3     4 5     0 1     2 3     4 5
// so that devices 0 and 3, 1 and 4, 2 and 5 hold copies.
//
// A dimension of n positions over k devices gives ceil(n / k) to the first ones, and less or
// nothing to the last. If several axes cut it, each divides what the one before it left: 18 over 4
// and 2 is 3 2 | 3 2 | 3 2 | 2 1.
//
// Source: the tensor layouts of MindSpore (device matrix, tensor map), without their limits (powers
// of two, even parts, one axis for each dimension).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/fields.h"
#include "common/base/status.h"
#include "common/device/tensor.h"

namespace dt {

using AxisIndex = uint32_t;
using AxisList = std::vector<AxisIndex>;
// The number of a device in its matrix.
using DeviceIndex = uint32_t;
using DeviceMatrix = std::vector<uint32_t>;
// Distinct devices or ranks, in the order in which they act together.
using RankList = std::vector<uint32_t>;

// How the terms that devices hold along partial axes are joined.
enum class Join : uint8_t { kSum, kMean, kMax };

// A factor of a dimension.
struct CutFactor {
  // 0: as long as the other factors leave it, which only the first factor may be.
  int64_t size = 0;
  AxisList axes;  // The axes that cut it, the outer one first.
  // Lengths of the parts, if they are given and not equal: by coordinate on the only axis.
  std::vector<int64_t> parts;
  DT_FIELDS(size, axes, parts)
  friend bool operator==(const CutFactor&, const CutFactor&) = default;
};
// A dimension is the product of its factors, the outer one first. Without factors it is not cut.
// Most cut dimensions are one factor; a second one comes from merging dimensions: [heads, width]
// with cut heads, as one dimension, has the factors `heads` and `width`. If an inner factor is cut,
// a device holds several ranges of the dimension.
using CutDim = std::vector<CutFactor>;

struct Layout {
  DeviceMatrix matrix;
  std::vector<CutDim> dims;
  AxisList partial;  // Ascending.
  Join join = Join::kSum;
  RankList ranks;  // The rank of each device; empty if it is the device's number.
  DT_FIELDS(matrix, dims, partial, join, ranks)
  friend bool operator==(const Layout&, const Layout&) = default;
};

struct ShapedLayout {
  const Layout& layout;
  const Shape& shape;
};

struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};
// Ranges of one dimension, ascending, neither empty nor adjacent.
using Places = std::vector<Range>;
// By dimension: the positions that a device holds.
using Slice = std::vector<Places>;
// By dimension: one range.
using Box = std::vector<Range>;

// Errors: Invalid, if axes do not exist or are used twice, if factors or parts do not fit the
// dimension, or if the ranks are not one for each device. All other functions require a layout that
// fits the shape.
Status CheckLayout(const Layout& layout, const Shape& shape);

uint32_t DeviceCount(const DeviceMatrix& matrix);
std::vector<uint32_t> CoordinatesOf(const DeviceMatrix& matrix, DeviceIndex device);
uint32_t RankOf(const Layout& layout, DeviceIndex device);

// Part `index` of a range that is divided evenly, as above.
Range EvenPart(const Range& whole, int64_t parts, int64_t index);
// Part `index` of a range from 0 on that is divided into parts of these lengths.
Range GivenPart(std::span<const int64_t> lengths, size_t index);
Slice SliceOf(const Layout& layout, const Shape& shape, DeviceIndex device);
int64_t SizeOf(const Places& places);
Shape ShapeOf(const Slice& slice);
Shape LocalShape(const Layout& layout, const Shape& shape, DeviceIndex device);
// The extents of a dimension's factors.
Shape FactorsOf(const CutDim& dim, int64_t extent);

// The devices that agree with `device` on all axes but these; the first axis varies slowest.
RankList GroupOf(const DeviceMatrix& matrix, std::span<const AxisIndex> axes, DeviceIndex device);
// All such groups; each device is in one. Ordered by their first device.
std::vector<RankList> GroupsAlong(const DeviceMatrix& matrix, std::span<const AxisIndex> axes);
// The axes that neither cut a dimension nor are partial: devices along them hold copies.
AxisList CopyAxes(const Layout& layout);
// The devices that hold the same slice as this one, ascending.
RankList ReplicasOf(const Layout& layout, DeviceIndex device);

// A group for each device, said for all of them at once.
struct DeviceGroups {
  DeviceMatrix matrix;
  AxisList axes;   // Members differ along these; the first one varies slowest.
  AxisList first;  // Members are the first devices along these axes, as others need not be.
  friend bool operator==(const DeviceGroups&, const DeviceGroups&) = default;
};
RankList MembersOf(const DeviceGroups& groups, DeviceIndex device);
// The same groups over a matrix with as few axes as possible.
DeviceGroups Simplest(const DeviceGroups& groups);

// How the devices of a team hold a value of a slice together.
struct HeldTogether {
  DeviceGroups group;  // The devices with the same slice as this one, ascending.
  DeviceGroups terms;  // The members whose values are the terms of the sum, in their order.
  DeviceGroups parts;  // Devices with all parts of it, each part once.
};
HeldTogether HeldBy(const Layout& layout);

// Two layouts of a shape mean the same if their normal forms are equal: without axes of one device,
// and without factors where a plain cut gives the same slices.
Layout Normalised(Layout layout, const Shape& shape);

}  // namespace dt
