#include "common/layout/refine.h"

#include <algorithm>
#include <set>

namespace dt {
namespace {

// The quotients of successive numbers; nothing if one does not divide the next.
std::optional<std::vector<int64_t>> Quotients(const std::set<int64_t>& products) {
  std::vector<int64_t> quotients;
  int64_t last = 1;
  for (const int64_t product : products) {
    if (product == 1) continue;
    if (product % last != 0) return std::nullopt;
    quotients.push_back(product / last);
    last = product;
  }
  return quotients;
}

std::set<int64_t> ProductsFromLeft(const DeviceMatrix& matrix) {
  std::set<int64_t> products;
  int64_t product = 1;
  for (const uint32_t size : matrix) products.insert(product *= size);
  return products;
}

// A side's factors, one after the other over all dimensions.
struct Factor {
  int64_t size = 0;
  AxisList axes;
};
std::vector<Factor> FactorsOf(const Layout& layout, const Shape& shape) {
  std::vector<Factor> factors;
  for (size_t d = 0; d < shape.size(); ++d) {
    const CutDim& dim = layout.dims[d];
    const Shape sizes = FactorsOf(dim, shape[d]);
    if (dim.empty()) factors.push_back({shape[d], {}});
    for (size_t f = 0; f < dim.size(); ++f) factors.push_back({sizes[f], dim[f].axes});
  }
  return factors;
}

std::set<int64_t> ProductsFromRight(const std::vector<Factor>& factors) {
  std::set<int64_t> products;
  int64_t product = 1;
  for (size_t f = factors.size(); f-- > 0;) products.insert(product *= factors[f].size);
  return products;
}

// One side, written in the common matrix and shape.
class Side {
 public:
  explicit Side(const ShapedLayout& of)
      : layout_(of.layout), factors_(FactorsOf(of.layout, of.shape)) {}

  const std::vector<Factor>& factors() const { return factors_; }
  const Cuts& cuts() const { return cuts_; }
  AxisList partial() const { return Finer(layout_.partial); }

  // False if this matrix and shape cannot express the slices. May add to `boundaries`, products of
  // axes from the left; then another attempt with the finer matrix is worthwhile.
  bool Write(const DeviceMatrix& matrix, const Shape& shape, std::set<int64_t>& boundaries) {
    matrix_ = &matrix;
    FindFiner();
    cuts_.assign(shape.size(), {});
    size_t at = 0;
    for (const Factor& factor : factors_) {
      size_t end = at;
      for (int64_t size = 1; end < shape.size() && size < factor.size;) size *= shape[end++];
      if (factor.size <= 1 && at < shape.size() && shape[at] == factor.size) end = at + 1;
      if (!WriteFactor(factor, shape, {at, end}, boundaries)) return false;
      at = end;
    }
    return true;
  }

 private:
  struct Dims {
    size_t begin, end;
  };

  // By axis of the layout: the axes of the matrix that it consists of.
  void FindFiner() {
    finer_.assign(layout_.matrix.size(), {});
    AxisIndex axis = 0;
    for (size_t a = 0; a < layout_.matrix.size(); ++a) {
      for (int64_t size = 1; size < layout_.matrix[a]; ++axis) {
        size *= (*matrix_)[axis];
        finer_[a].push_back(axis);
      }
    }
  }
  AxisList Finer(const AxisList& axes) const {
    AxisList finer;
    for (const AxisIndex a : axes) {
      finer.insert(finer.end(), finer_[a].begin(), finer_[a].end());
    }
    return finer;
  }

  bool WriteFactor(const Factor& factor, const Shape& shape, Dims dims,
                   std::set<int64_t>& boundaries) {
    const AxisList axes = Finer(factor.axes);
    if (PartsOver(*matrix_, axes, factor.size) !=
        PartsOver(layout_.matrix, factor.axes, factor.size)) {
      return false;
    }
    if (axes.empty()) return true;
    if (dims.begin == dims.end) return false;
    if (dims.end == dims.begin + 1) {
      cuts_[dims.begin] = axes;
      return true;
    }
    return Distribute(axes, shape, dims, boundaries);
  }

  // Gives the axes to the dimensions that a factor consists of: each dimension takes axes until it
  // is divided completely.
  bool Distribute(const AxisList& axes, const Shape& shape, Dims dims,
                  std::set<int64_t>& boundaries) {
    size_t d = dims.begin;
    int64_t left = shape[d];
    for (const AxisIndex axis : axes) {
      const int64_t size = (*matrix_)[axis];
      while (left == 1 && d + 1 < dims.end) left = shape[++d];
      if (left % size != 0) {
        if (left > 1 && size % left == 0) boundaries.insert(ProductUpTo(axis) * left);
        return false;
      }
      cuts_[d].push_back(axis);
      left /= size;
    }
    return true;
  }

  // The product of the axes before this one.
  int64_t ProductUpTo(AxisIndex axis) const {
    int64_t product = 1;
    for (AxisIndex a = 0; a < axis; ++a) product *= (*matrix_)[a];
    return product;
  }

  const Layout& layout_;
  const std::vector<Factor> factors_;
  const DeviceMatrix* matrix_ = nullptr;
  std::vector<AxisList> finer_;
  Cuts cuts_;
};

bool IsPlain(const Layout& layout) {
  return std::ranges::all_of(layout.dims, [](const CutDim& dim) { return dim.size() <= 1; });
}

std::optional<Shape> CommonShape(const Side& from, const Side& to) {
  std::set<int64_t> products = ProductsFromRight(from.factors());
  products.merge(ProductsFromRight(to.factors()));
  if (products.contains(0)) return std::nullopt;
  std::optional<Shape> shape = Quotients(products);
  if (shape) std::ranges::reverse(*shape);
  return shape;
}

}  // namespace

std::optional<Refinement> CommonRefinement(const ShapedLayout& from, const ShapedLayout& to) {
  Side old_side(from), new_side(to);
  const bool same_dims = from.shape == to.shape && IsPlain(from.layout) && IsPlain(to.layout);
  const std::optional<Shape> shape =
      same_dims ? std::optional(from.shape) : CommonShape(old_side, new_side);
  if (!shape) return std::nullopt;
  std::set<int64_t> boundaries = ProductsFromLeft(from.layout.matrix);
  boundaries.merge(ProductsFromLeft(to.layout.matrix));
  for (;;) {
    const size_t before = boundaries.size();
    const std::optional<std::vector<int64_t>> sizes = Quotients(boundaries);
    if (!sizes) return std::nullopt;
    const DeviceMatrix matrix(sizes->begin(), sizes->end());
    const bool both =
        old_side.Write(matrix, *shape, boundaries) && new_side.Write(matrix, *shape, boundaries);
    if (both) {
      return Refinement{.matrix = matrix,
                        .shape = *shape,
                        .from = old_side.cuts(),
                        .to = new_side.cuts(),
                        .from_partial = old_side.partial(),
                        .to_partial = new_side.partial()};
    }
    if (boundaries.size() == before) return std::nullopt;
  }
}

Layout PlainLayout(const DeviceMatrix& matrix, const Cuts& cuts) {
  Layout layout;
  layout.matrix = matrix;
  for (const AxisList& axes : cuts) {
    layout.dims.emplace_back();
    if (!axes.empty()) layout.dims.back().push_back({.size = 0, .axes = axes, .parts = {}});
  }
  return layout;
}

std::vector<int64_t> PartsOver(const DeviceMatrix& matrix, const AxisList& axes, int64_t n) {
  std::vector<int64_t> parts = {n};
  for (const AxisIndex axis : axes) {
    std::vector<int64_t> finer;
    for (const int64_t part : parts) {
      for (uint32_t i = 0; i < matrix[axis]; ++i) {
        finer.push_back(EvenPart({0, part}, matrix[axis], i).size());
      }
    }
    parts = std::move(finer);
  }
  return parts;
}

bool DividesAsOne(const DeviceMatrix& matrix, const NextAxes& axes, int64_t n) {
  if (axes.next.size() < 2) return true;
  for (const int64_t part : PartsOver(matrix, axes.before, n)) {
    const std::vector<int64_t> parts = PartsOver(matrix, axes.next, part);
    const auto count = static_cast<int64_t>(parts.size());
    for (int64_t i = 0; i < count; ++i) {
      if (parts[static_cast<size_t>(i)] != EvenPart({0, part}, count, i).size()) return false;
    }
  }
  return true;
}

}  // namespace dt
