#include "ops/kernel_families.h"
#include "ops/kernel_util.h"
#include "ops/vector_lanes.h"

namespace dt {
namespace {

struct DotShape {
  size_t samples = 0, fields = 0, dim = 0, pairs = 0;
  DotShape() = default;
  explicit DotShape(std::span<const TensorView> inputs)
      : samples(static_cast<size_t>(inputs[0].shape[0])),
        dim(static_cast<size_t>(inputs[0].shape.back())) {
    for (const TensorView& x : inputs) {
      fields += x.shape.size() == 3 ? static_cast<size_t>(x.shape[1]) : 1;
    }
    pairs = fields * (fields - 1) / 2;
  }
  size_t grain() const { return RowGrain(fields * dim); }
};

// Index of the pair of fields i > j in the output.
size_t PairAt(size_t i, size_t j) { return i * (i - 1) / 2 + j; }

// Addresses of the fields of a sample, which are in one or several tensors. Each thread reuses one
// object, and so its memory.
template <class T>
class Fields {
 public:
  void Open(std::span<const TensorView> parts) {
    all_.clear();
    for (const TensorView& part : parts) {
      const auto dim = static_cast<size_t>(part.shape.back());
      const size_t count = part.shape.size() == 3 ? static_cast<size_t>(part.shape[1]) : 1;
      for (size_t f = 0; f < count; ++f) {
        all_.push_back({DataOf<T>(part) + f * dim, count * dim});
      }
    }
    sample_.resize(all_.size());
  }
  void Seek(size_t sample) {
    for (size_t f = 0; f < all_.size(); ++f) sample_[f] = all_[f].at + sample * all_[f].stride;
  }
  T* const* begins() const { return sample_.data(); }

 private:
  struct Field {
    T* at;
    size_t stride;  // Elements from one sample to the next.
  };
  std::vector<Field> all_;
  std::vector<T*> sample_;
};

// Rows and columns of a tile.
constexpr size_t kTall = 4, kWide = 2 * kLanes;

// Sums of `tall` rows, kWide columns each, in registers.
template <class T, size_t tall>
struct Tile {
  struct Row {
    Lanes<T> left, right;
  };
  Row sums[tall] = {};

  // Adds factor_of(r) · row to each row r except `skipped`.
  template <class FactorOf>
  void Add(const T* row, const FactorOf& factor_of, size_t skipped = tall) {
    const Lanes<T> left = LanesAt(row), right = LanesAt(row + kLanes);
#pragma GCC unroll 4
    for (size_t r = 0; r < tall; ++r) {
      if (r == skipped) continue;
      const T factor = factor_of(r);
      sums[r].left += factor * left;
      sums[r].right += factor * right;
    }
  }
  void Store(size_t r, T* to) const {
    LanesAt(to) = sums[r].left;
    LanesAt(to + kLanes) = sums[r].right;
  }
};

// Kept out of line, because inlined code around it would take the registers of the sums.
template <class T, size_t tall, class Body>
[[gnu::noinline]] void InRegisters(Tile<T, tall>& tile, const Body& body) {
  Tile<T, tall> sums = tile;
  body(sums);
  tile = sums;
}

// Transposes eight columns of eight fields into eight rows, `width` apart.
template <class T>
void TransposeBlock(const T* const* fields, size_t column, T* to, size_t width) {
  Lanes<T> a[kLanes], b[kLanes];
  for (size_t i = 0; i < kLanes; i += 2) {
    const Lanes<T> x = LanesAt(fields[i] + column), y = LanesAt(fields[i + 1] + column);
    a[i] = __builtin_shufflevector(x, y, 0, 8, 1, 9, 4, 12, 5, 13);
    a[i + 1] = __builtin_shufflevector(x, y, 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (size_t i = 0; i < kLanes; i += 4) {
    for (size_t k = 0; k < 2; ++k) {
      const Lanes<T>&x = a[i + k], &y = a[i + k + 2];
      b[i + 2 * k] = __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13);
      b[i + 2 * k + 1] = __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (size_t i = 0; i < 4; ++i) {
    LanesAt(to + i * width) = __builtin_shufflevector(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    LanesAt(to + (i + 4) * width) =
        __builtin_shufflevector(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// Computes the pairs of one sample after another. Each sum runs over the columns in order. Each
// thread reuses one object.
template <class T>
class SamplePairs {
 public:
  void Open(const DotShape& shape) {
    shape_ = shape;
    width_ = (shape.fields + kWide - 1) / kWide * kWide;
    transposed_.resize(shape.dim * width_);
    sums_.resize(kTall * width_);
    padded_.resize(width_);
  }

  // Writes nothing at or after `end`, but may write beyond the sample.
  void Write(const T* const* fields, T* to, const T* end) {
    for (size_t f = 0; f < width_; ++f) padded_[f] = fields[std::min(f, shape_.fields - 1)];
    TransposeFields();
    for (size_t i = 0; i < shape_.fields; i += kTall) {
      for (size_t j = 0; j < std::min(i + kTall, shape_.fields); j += kWide) SumTile(i, j);
      for (size_t r = 0; r < std::min(kTall, shape_.fields - i); to += i + r, ++r) {
        CopyRow(sums_.data() + r * width_, i + r, to, end);
      }
    }
  }

 private:
  void TransposeFields() {
    size_t d = 0;
    for (; d + kLanes <= shape_.dim; d += kLanes) {
      for (size_t f = 0; f < width_; f += kLanes) {
        TransposeBlock(padded_.data() + f, d, transposed_.data() + d * width_ + f, width_);
      }
    }
    for (; d < shape_.dim; ++d) {
      for (size_t f = 0; f < width_; ++f) transposed_[d * width_ + f] = padded_[f][d];
    }
  }
  // Fields i, i + 1, … times fields j, j + 1, ….
  void SumTile(size_t i, size_t j) {
    const T* const rows[kTall] = {padded_[i], padded_[i + 1], padded_[i + 2], padded_[i + 3]};
    const T* columns = transposed_.data() + j;
    Tile<T, kTall> tile;
    for (size_t d = 0; d < shape_.dim; ++d) {
      tile.Add(columns + d * width_, [&](size_t r) { return rows[r][d]; });
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kTall; ++r) tile.Store(r, sums_.data() + r * width_ + j);
  }
  // Copies whole vectors while there is space; the next row overwrites the surplus.
  static void CopyRow(const T* from, size_t count, T* to, const T* end) {
    if (static_cast<size_t>(end - to) < count + kLanes) {
      std::copy_n(from, count, to);
      return;
    }
    for (size_t j = 0; j < count; j += kLanes) LanesAt(to + j) = LanesAt(from + j);
  }

  DotShape shape_;
  size_t width_ = 0;  // Number of fields, rounded up to fill the last tile.
  std::vector<T> transposed_, sums_;
  std::vector<const T*> padded_;
};

// With fewer fields it is faster to compute single pairs than tiles that are mostly empty.
constexpr size_t kFew = 6;
template <class T>
void WriteFew(const T* const* fields, const DotShape& shape, T* to) {
  for (size_t i = 1; i < shape.fields; ++i) {
    for (size_t j = 0; j < i; ++j) *to++ = DotOf(fields[i], fields[j], shape.dim);
  }
}

// The pairs of the fields of `inputs`, each sample's behind its `width` columns of `before`.
void WriteDots(KernelContext& context, std::span<const TensorView> inputs, const TensorView* before,
               size_t width) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const DotShape shape(inputs);
    const size_t stride = width + shape.pairs;
    const T* const joined = before == nullptr ? nullptr : DataOf<T>(*before);
    T* const out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(shape.samples, shape.grain(), [&](size_t begin, size_t end) {
      thread_local Fields<T> fields;
      thread_local SamplePairs<T> pairs;
      fields.Open(inputs);
      pairs.Open(shape);
      for (size_t b = begin; b < end; ++b) {
        fields.Seek(b);
        T* const to = out + b * stride;
        std::copy_n(joined + b * width, width, to);
        if (shape.fields < kFew) {
          WriteFew(fields.begins(), shape, to + width);
        } else {
          pairs.Write(fields.begins(), to + width, out + end * stride);
        }
      }
    });
  });
}

void Dot(KernelContext& context) { WriteDots(context, context.inputs, nullptr, 0); }

void ConcatDot(KernelContext& context) {
  const TensorView& before = context.inputs.back();
  const size_t inputs = context.inputs.size() - 1;
  WriteDots(context, context.inputs.first(inputs), &before, AsMatrix(before).cols);
}

// The columns from `column` on, of the fields of one sample.
template <class T>
struct Columns {
  const T* const* fields;
  size_t column;
  const T* operator[](size_t f) const { return fields[f] + column; }
};

// The gradients of fields i, …, i + tall - 1 in kWide columns: Σ dy(i, j) x_j over the other fields
// j, in order.
template <size_t tall, class T>
Tile<T, tall> GradTile(const Columns<T>& x, const T* dy, size_t i, size_t fields) {
  Tile<T, tall> tile;
  InRegisters(tile, [&](Tile<T, tall>& sums) {
    for (size_t j = 0; j < i; ++j) {
      sums.Add(x[j], [&](size_t r) { return dy[PairAt(i + r, j)]; });
    }
  });
  InRegisters(tile, [&](Tile<T, tall>& sums) {
#pragma GCC unroll 4
    for (size_t k = 0; k < tall; ++k) {
      const auto pair = [&](size_t r) {
        return dy[PairAt(i + std::max(r, k), i + std::min(r, k))];
      };
      sums.Add(x[i + k], pair, k);
    }
  });
  InRegisters(tile, [&](Tile<T, tall>& sums) {
    for (size_t j = i + tall; j < fields; ++j) {
      sums.Add(x[j], [&](size_t r) { return dy[PairAt(j, i) + r]; });
    }
  });
  return tile;
}

// Computes the gradients of the fields of one sample after another. Each thread reuses one object.
template <class T>
class SampleGrads {
 public:
  void Open(const DotShape& shape) {
    shape_ = shape;
    rest_count_ = shape.dim % kWide;
    whole_ = shape.dim - rest_count_;
    rests_.clear();
    if (rest_count_ == 0) return;
    rest_.resize(shape.fields * kWide);
    for (size_t f = 0; f < shape.fields; ++f) rests_.push_back(rest_.data() + f * kWide);
  }

  void Write(const T* const* x, const T* dy, T* const* dx) {
    for (size_t f = 0; f < rests_.size(); ++f) std::copy_n(x[f] + whole_, rest_count_, rests_[f]);
    size_t i = 0;
    for (; i + kTall <= shape_.fields; i += kTall) FieldsFrom<kTall>(x, dy, i, dx);
    for (; i < shape_.fields; ++i) FieldsFrom<1>(x, dy, i, dx);
  }

 private:
  // Where kWide columns of gradients go; only the first `count` are stored.
  struct Target {
    T* const* fields;
    size_t column, count;
  };
  template <size_t tall>
  void FieldsFrom(const T* const* x, const T* dy, size_t i, T* const* dx) const {
    for (size_t d = 0; d < whole_; d += kWide) WideColumns<tall>({x, d}, dy, i, {dx, d, kWide});
    if (rest_count_ > 0) WideColumns<tall>({rests_.data(), 0}, dy, i, {dx, whole_, rest_count_});
  }
  template <size_t tall>
  void WideColumns(const Columns<T>& x, const T* dy, size_t i, const Target& to) const {
    const Tile<T, tall> tile = GradTile<tall>(x, dy, i, shape_.fields);
#pragma GCC unroll 4
    for (size_t r = 0; r < tall; ++r) {
      T* const dx = to.fields[i + r] + to.column;
      if (to.count == kWide) {
        tile.Store(r, dx);
      } else {
        T row[kWide];
        tile.Store(r, row);
        std::copy_n(row, to.count, dx);
      }
    }
  }

  DotShape shape_;
  size_t rest_count_ = 0, whole_ = 0;
  std::vector<T> rest_;  // The columns after the last full kWide, padded.
  std::vector<T*> rests_;
};

// The pairs' gradients are the last columns of those of each sample.
void DotGrad(KernelContext& context) {
  const auto inputs = context.inputs.first(context.inputs.size() - 1);
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const DotShape shape(inputs);
    const size_t stride = AsMatrix(context.inputs.back()).cols;
    const T* const dy = DataOf<T>(context.inputs.back()) + (stride - shape.pairs);
    context.pool.ParallelFor(shape.samples, shape.grain(), [&](size_t begin, size_t end) {
      thread_local Fields<T> x, dx;
      thread_local SampleGrads<T> grads;
      x.Open(inputs);
      dx.Open(context.outputs);
      grads.Open(shape);
      for (size_t b = begin; b < end; ++b) {
        x.Seek(b);
        dx.Seek(b);
        grads.Write(x.begins(), dy + b * stride, dx.begins());
      }
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"dot", Dot},
    {"dot_grad", DotGrad},
    {"concat_dot", ConcatDot},
    {"concat_dot_grad", DotGrad},
};

}  // namespace

std::span<const NamedKernel> DotKernels() { return kKernels; }

}  // namespace dt
