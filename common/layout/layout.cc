#include "common/layout/layout.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"

namespace dt {
namespace {

int64_t ProductOf(const DeviceMatrix& matrix, const AxisList& axes) {
  int64_t product = 1;
  for (const AxisIndex axis : axes) product *= matrix[axis];
  return product;
}

bool IsCut(const CutDim& dim) {
  return std::ranges::any_of(dim, [](const CutFactor& f) { return !f.axes.empty(); });
}

Status CheckFactor(const Layout& layout, const CutFactor& factor, int64_t extent) {
  if (factor.parts.empty()) return OkStatus();
  if (factor.axes.size() != 1 || factor.parts.size() != layout.matrix[factor.axes[0]]) {
    return Invalid("{} lengths of parts are given, which are not one for each device of an axis",
                   factor.parts.size());
  }
  int64_t sum = 0;
  for (const int64_t part : factor.parts) {
    if (part < 0) return Invalid("the length of a part is {}", part);
    sum += part;
  }
  if (sum == extent) return OkStatus();
  return Invalid("the lengths of the parts add up to {}, and the dimension is {}", sum, extent);
}

Status CheckDim(const Layout& layout, const CutDim& dim, int64_t extent) {
  int64_t inner = 1;
  for (size_t f = 0; f < dim.size(); ++f) {
    if (dim[f].size < 0 || (dim[f].size == 0 && f > 0)) {
      return Invalid("a factor of a dimension has size {}", dim[f].size);
    }
    inner *= std::max<int64_t>(1, dim[f].size);
  }
  if (dim.empty()) return OkStatus();
  if (dim[0].size == 0 ? extent % inner != 0 : extent != inner) {
    return Invalid("a dimension of {} is no product with the factor {}", extent, inner);
  }
  const Shape factors = FactorsOf(dim, extent);
  for (size_t f = 0; f < dim.size(); ++f) {
    DT_TRY_STATUS(CheckFactor(layout, dim[f], factors[f]));
  }
  return OkStatus();
}

Status CheckAxes(const Layout& layout) {
  std::vector<int> uses(layout.matrix.size(), 0);
  const auto use = [&](const AxisList& axes) {
    return std::ranges::all_of(axes,
                               [&](AxisIndex a) { return a < uses.size() && ++uses[a] == 1; });
  };
  for (const CutDim& dim : layout.dims) {
    for (const CutFactor& factor : dim) {
      if (!use(factor.axes)) return Invalid("an axis does not exist, or is used twice");
    }
  }
  if (!use(layout.partial)) return Invalid("a partial axis does not exist, or is used twice");
  return OkStatus();
}

// The positions of one factor, as a range.
Range FactorRange(const Layout& layout, const CutFactor& factor, int64_t size,
                  const std::vector<uint32_t>& at) {
  Range range{0, size};
  if (!factor.parts.empty()) return GivenPart(factor.parts, at[factor.axes[0]]);
  for (const AxisIndex axis : factor.axes) range = EvenPart(range, layout.matrix[axis], at[axis]);
  return range;
}

void Append(Places& places, const Range& range) {
  if (range.size() == 0) return;
  if (!places.empty() && places.back().end == range.begin) {
    places.back().end = range.end;
  } else {
    places.push_back(range);
  }
}

Places PlacesOf(const Layout& layout, const CutDim& dim, int64_t extent,
                const std::vector<uint32_t>& at) {
  Places places = {{0, 1}};
  if (dim.empty()) places[0].end = extent;
  const Shape sizes = FactorsOf(dim, extent);
  for (size_t f = 0; f < dim.size(); ++f) {
    const int64_t size = sizes[f];
    const Range part = FactorRange(layout, dim[f], size, at);
    Places inner;
    for (const Range& outer : places) {
      if (part == Range{0, size}) {
        Append(inner, {outer.begin * size, outer.end * size});
        continue;
      }
      for (int64_t i = outer.begin; i < outer.end; ++i) {
        Append(inner, {i * size + part.begin, i * size + part.end});
      }
    }
    places = std::move(inner);
  }
  if (extent == 0) places.clear();
  return places;
}

// Merges a factor with the next one where that does not change the slices: if neither the next one
// is cut nor the parts of this one are uneven.
CutDim SimplestDim(const DeviceMatrix& matrix, const CutDim& dim, int64_t extent) {
  if (!IsCut(dim)) return {};
  const Shape sizes = FactorsOf(dim, extent);
  CutDim simplest;
  for (size_t f = 0; f < dim.size(); ++f) {
    if (sizes[f] == 1 && dim[f].axes.empty()) continue;
    CutFactor* const last = simplest.empty() ? nullptr : &simplest.back();
    if (last != nullptr && dim[f].axes.empty() && last->parts.empty() &&
        last->size % ProductOf(matrix, last->axes) == 0) {
      last->size *= sizes[f];
      continue;
    }
    if (last != nullptr && last->size == 1 && last->axes.empty()) simplest.pop_back();
    simplest.push_back(dim[f]);
    simplest.back().size = sizes[f];
  }
  if (simplest.size() == 1) simplest[0].size = 0;
  return simplest;
}

}  // namespace

Status CheckLayout(const Layout& layout, const Shape& shape) {
  if (layout.dims.size() != shape.size()) {
    return Invalid("the map has {} dimensions, and the tensor {}", layout.dims.size(),
                   shape.size());
  }
  for (const uint32_t size : layout.matrix) {
    if (size == 0) return Invalid("the device matrix has an axis of no devices");
  }
  const uint32_t devices = DeviceCount(layout.matrix);
  if (!layout.ranks.empty() && layout.ranks.size() != devices) {
    return Invalid("{} ranks for {} devices", layout.ranks.size(), devices);
  }
  RankList ranks = layout.ranks;
  std::ranges::sort(ranks);
  if (std::ranges::adjacent_find(ranks) != ranks.end()) return Invalid("a rank is named twice");
  DT_TRY_STATUS(CheckAxes(layout));
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0) return Invalid("dimension {} is {}", d, shape[d]);
    DT_TRY_STATUS(CheckDim(layout, layout.dims[d], shape[d]));
  }
  return OkStatus();
}

uint32_t DeviceCount(const DeviceMatrix& matrix) {
  return std::accumulate(matrix.begin(), matrix.end(), 1U, std::multiplies<>());
}

std::vector<uint32_t> CoordinatesOf(const DeviceMatrix& matrix, DeviceIndex device) {
  std::vector<uint32_t> at(matrix.size());
  for (size_t a = matrix.size(); a-- > 0; device /= matrix[a]) at[a] = device % matrix[a];
  return at;
}

uint32_t RankOf(const Layout& layout, DeviceIndex device) {
  return layout.ranks.empty() ? device : layout.ranks[device];
}

Range EvenPart(const Range& whole, int64_t parts, int64_t index) {
  const int64_t each = (whole.size() + parts - 1) / parts;
  return {std::min(whole.end, whole.begin + each * index),
          std::min(whole.end, whole.begin + each * (index + 1))};
}

Range GivenPart(std::span<const int64_t> lengths, size_t index) {
  const auto part = lengths.begin() + static_cast<ptrdiff_t>(index);
  const int64_t begin = std::accumulate(lengths.begin(), part, int64_t{0});
  return {begin, begin + *part};
}

Shape FactorsOf(const CutDim& dim, int64_t extent) {
  Shape sizes;
  int64_t inner = 1;
  for (const CutFactor& factor : dim) {
    sizes.push_back(factor.size);
    if (factor.size != 0) inner *= factor.size;
  }
  if (!sizes.empty() && sizes[0] == 0) sizes[0] = extent / inner;
  return sizes;
}

Slice SliceOf(const Layout& layout, const Shape& shape, DeviceIndex device) {
  const std::vector<uint32_t> at = CoordinatesOf(layout.matrix, device);
  Slice slice;
  for (size_t d = 0; d < shape.size(); ++d) {
    slice.push_back(PlacesOf(layout, layout.dims[d], shape[d], at));
  }
  return slice;
}

int64_t SizeOf(const Places& places) {
  int64_t size = 0;
  for (const Range& range : places) size += range.size();
  return size;
}

Shape ShapeOf(const Slice& slice) {
  Shape shape;
  for (const Places& places : slice) shape.push_back(SizeOf(places));
  return shape;
}

Shape LocalShape(const Layout& layout, const Shape& shape, DeviceIndex device) {
  const std::vector<uint32_t> at = CoordinatesOf(layout.matrix, device);
  Shape local;
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t size = layout.dims[d].empty() ? shape[d] : 1;
    const Shape factors = FactorsOf(layout.dims[d], shape[d]);
    for (size_t f = 0; f < factors.size(); ++f) {
      size *= FactorRange(layout, layout.dims[d][f], factors[f], at).size();
    }
    local.push_back(size);
  }
  return local;
}

RankList GroupOf(const DeviceMatrix& matrix, std::span<const AxisIndex> axes, DeviceIndex device) {
  std::vector<uint32_t> stride(matrix.size(), 1);
  for (size_t a = matrix.size(); a-- > 1;) stride[a - 1] = stride[a] * matrix[a];
  for (const AxisIndex axis : axes) device -= device / stride[axis] % matrix[axis] * stride[axis];
  RankList group = {device};
  for (const AxisIndex axis : axes) {
    RankList longer;
    for (const uint32_t first : group) {
      for (uint32_t i = 0; i < matrix[axis]; ++i) longer.push_back(first + i * stride[axis]);
    }
    group = std::move(longer);
  }
  return group;
}

std::vector<RankList> GroupsAlong(const DeviceMatrix& matrix, std::span<const AxisIndex> axes) {
  std::vector<RankList> groups;
  std::vector<bool> seen(DeviceCount(matrix), false);
  for (DeviceIndex device = 0; device < seen.size(); ++device) {
    if (seen[device]) continue;
    groups.push_back(GroupOf(matrix, axes, device));
    for (const uint32_t member : groups.back()) seen[member] = true;
  }
  return groups;
}

AxisList CopyAxes(const Layout& layout) {
  std::vector<bool> used(layout.matrix.size(), false);
  for (const AxisIndex axis : layout.partial) used[axis] = true;
  for (const CutDim& dim : layout.dims) {
    for (const CutFactor& factor : dim) {
      for (const AxisIndex axis : factor.axes) used[axis] = true;
    }
  }
  AxisList copies;
  for (AxisIndex axis = 0; axis < used.size(); ++axis) {
    if (!used[axis]) copies.push_back(axis);
  }
  return copies;
}

RankList ReplicasOf(const Layout& layout, DeviceIndex device) {
  return GroupOf(layout.matrix, CopyAxes(layout), device);
}

RankList MembersOf(const DeviceGroups& groups, DeviceIndex device) {
  return GroupOf(groups.matrix, groups.axes, GroupOf(groups.matrix, groups.first, device).front());
}

DeviceGroups Simplest(const DeviceGroups& groups) {
  // By axis: its place in `axes`, or what else it is.
  constexpr int kOther = -1, kFirst = -2;
  std::vector<int> place(groups.matrix.size(), kOther);
  for (size_t i = 0; i < groups.axes.size(); ++i) place[groups.axes[i]] = static_cast<int>(i);
  for (const AxisIndex axis : groups.first) place[axis] = kFirst;
  DeviceGroups simple;
  std::vector<std::pair<int, AxisIndex>> axes;
  int before = kFirst - 1;
  for (size_t a = 0; a < place.size(); ++a) {
    if (groups.matrix[a] == 1) continue;
    const bool joins = place[a] >= 0 ? place[a] == before + 1 && before >= 0 : place[a] == before;
    before = place[a];
    if (joins) {
      simple.matrix.back() *= groups.matrix[a];
      continue;
    }
    const auto axis = static_cast<AxisIndex>(simple.matrix.size());
    simple.matrix.push_back(groups.matrix[a]);
    if (place[a] >= 0) axes.emplace_back(place[a], axis);
    if (place[a] == kFirst) simple.first.push_back(axis);
  }
  std::ranges::sort(axes);
  for (const auto& [at, axis] : axes) simple.axes.push_back(axis);
  return simple;
}

HeldTogether HeldBy(const Layout& layout) {
  const AxisList copies = CopyAxes(layout);
  AxisList free = copies;
  free.insert(free.end(), layout.partial.begin(), layout.partial.end());
  std::ranges::sort(free);
  AxisList cut;
  for (AxisIndex axis = 0; axis < layout.matrix.size(); ++axis) {
    if (std::ranges::find(free, axis) == free.end()) cut.push_back(axis);
  }
  // Copies add nothing: the first ones are terms.
  return {
      {layout.matrix, free, {}}, {layout.matrix, layout.partial, copies}, {layout.matrix, cut, {}}};
}

Layout Normalised(Layout layout, const Shape& shape) {
  std::vector<AxisIndex> number(layout.matrix.size());
  DeviceMatrix matrix;
  for (size_t a = 0; a < layout.matrix.size(); ++a) {
    number[a] = static_cast<AxisIndex>(matrix.size());
    if (layout.matrix[a] > 1) matrix.push_back(layout.matrix[a]);
  }
  const auto renumber = [&](AxisList& axes) {
    std::erase_if(axes, [&](AxisIndex a) { return layout.matrix[a] == 1; });
    for (AxisIndex& axis : axes) axis = number[axis];
  };
  for (CutDim& dim : layout.dims) {
    for (CutFactor& factor : dim) {
      renumber(factor.axes);
      if (factor.axes.empty()) factor.parts.clear();
    }
  }
  renumber(layout.partial);
  layout.matrix = std::move(matrix);
  for (size_t d = 0; d < shape.size(); ++d) {
    layout.dims[d] = SimplestDim(layout.matrix, layout.dims[d], shape[d]);
  }
  bool in_order = true;
  for (DeviceIndex i = 0; i < layout.ranks.size(); ++i) in_order = in_order && layout.ranks[i] == i;
  if (in_order) layout.ranks.clear();
  return layout;
}

}  // namespace dt
