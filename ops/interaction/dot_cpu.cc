#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

struct DotShape {
  size_t samples = 0, fields = 0, dim = 0, pairs = 0;
  explicit DotShape(std::span<const TensorView> inputs)
      : samples(static_cast<size_t>(inputs[0].shape[0])),
        dim(static_cast<size_t>(inputs[0].shape.back())) {
    for (const TensorView& x : inputs) {
      fields += x.shape.size() == 3 ? static_cast<size_t>(x.shape[1]) : 1;
    }
    pairs = fields * (fields - 1) / 2;
  }
  size_t stride() const { return fields * dim; }
};

// Room of this thread for the fields of a sample, or for their gradients.
enum class Purpose : uint8_t { kFields, kGradients };
template <class T, Purpose>
T* RoomFor(size_t count) {
  thread_local std::vector<T> room;
  if (room.size() < count) room.resize(count);
  return room.data();
}

// The fields of one sample, which lie in one or several tensors. One thread.
template <class T, Purpose purpose>
class SampleFields {
 public:
  SampleFields(std::span<const TensorView> parts, const DotShape& shape)
      : parts_(parts), room_(parts.size() > 1 ? RoomFor<T, purpose>(shape.stride()) : nullptr) {}

  // All fields of sample b, one behind the other.
  const T* Load(size_t b) {
    if (parts_.size() == 1) return PartOf(0, b);
    T* to = room_;
    for (size_t i = 0; i < parts_.size(); ++i) to = std::copy_n(PartOf(i, b), Length(i), to);
    return room_;
  }
  // Where they are to be written, before Store(b) puts them in their tensors.
  T* Place(size_t b) { return parts_.size() == 1 ? PartOf(0, b) : room_; }
  void Store(size_t b) const {
    if (parts_.size() == 1) return;
    const T* from = room_;
    for (size_t i = 0; i < parts_.size(); from += Length(i), ++i) {
      std::copy_n(from, Length(i), PartOf(i, b));
    }
  }

 private:
  size_t Length(size_t i) const {
    return static_cast<size_t>(parts_[i].shape.size() == 3 ? parts_[i].shape[1] * parts_[i].shape[2]
                                                           : parts_[i].shape[1]);
  }
  T* PartOf(size_t i, size_t b) const { return static_cast<T*>(parts_[i].data) + b * Length(i); }

  std::span<const TensorView> parts_;
  T* room_;
};

// Eight dot products at a time, each with the bits of DotOf.
constexpr size_t kLanes = 8;
typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));

Vector LanesOf(const float* a, const float* b, size_t dim) {
  Vector sum = {};
  for (size_t d = 0; d < dim; d += kLanes) {
    Vector x, y;
    std::memcpy(&x, a + d, sizeof(x));
    std::memcpy(&y, b + d, sizeof(y));
    sum += x * y;
  }
  return sum;
}

// The lanes of each pair, added up: ((0 + 4) + (2 + 6)) + ((1 + 5) + (3 + 7)).
Vector SumsOf(const Vector (&pair)[kLanes]) {
  Vector quads[4], twos[2];
  for (size_t i = 0; i < 4; ++i) {
    const Vector &a = pair[2 * i], &b = pair[2 * i + 1];
    quads[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
               __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  }
  for (size_t i = 0; i < 2; ++i) {
    const Vector &a = quads[2 * i], &b = quads[2 * i + 1];
    twos[i] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13) +
              __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  }
  const Vector sums = __builtin_shufflevector(twos[0], twos[1], 0, 2, 8, 10, 4, 6, 12, 14) +
                      __builtin_shufflevector(twos[0], twos[1], 1, 3, 9, 11, 5, 7, 13, 15);
  return __builtin_shufflevector(sums, sums, 0, 4, 1, 5, 2, 6, 3, 7);
}

// Products of field i with fields [0, i), as far as whole groups of eight fields are there; gives
// how many.
size_t InGroups(const float* sample, size_t i, const DotShape& shape, float* to) {
  const size_t groups = shape.dim % kLanes == 0 ? shape.fields / kLanes : 0;
  for (size_t j = 0; j < std::min(i, groups * kLanes); j += kLanes) {
    Vector lanes[kLanes];
    for (size_t k = 0; k < kLanes; ++k) {
      lanes[k] = LanesOf(sample + i * shape.dim, sample + (j + k) * shape.dim, shape.dim);
    }
    const Vector sums = SumsOf(lanes);
    std::memcpy(to + j, &sums, std::min(kLanes, i - j) * sizeof(float));
  }
  return std::min(i, groups * kLanes);
}
size_t InGroups(const double*, size_t, const DotShape&, double*) { return 0; }

void Dot(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const DotShape shape(context.inputs);
    T* out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(shape.samples, RowGrain(shape.stride()),
                             [&](size_t begin, size_t end) {
                               SampleFields<T, Purpose::kFields> fields(context.inputs, shape);
                               T* to = out + begin * shape.pairs;
                               for (size_t b = begin; b < end; ++b) {
                                 const T* const sample = fields.Load(b);
                                 for (size_t i = 1; i < shape.fields; ++i) {
                                   const T* left = sample + i * shape.dim;
                                   size_t j = InGroups(sample, i, shape, to);
                                   for (; j < i; ++j)
                                     to[j] = DotOf(left, sample + j * shape.dim, shape.dim);
                                   to += i;
                                 }
                               }
                             });
  });
}

// Place of the pair of fields i > j in the output.
size_t PairAt(size_t i, size_t j) { return i * (i - 1) / 2 + j; }

// dx of one field: Σ over the other fields j of dy(i, j) x_j, kColumns columns at a time in
// registers.
constexpr size_t kColumns = 16;
template <class T>
void FieldGrad(const T* __restrict x, const T* __restrict dy, T* __restrict dx, size_t i,
               const DotShape& shape) {
  size_t d = 0;
  for (; d + kColumns <= shape.dim; d += kColumns) {
    T sum[kColumns] = {};
    const auto add = [&](size_t j, T pair) {
      const T* row = x + j * shape.dim + d;
      for (size_t k = 0; k < kColumns; ++k) sum[k] += pair * row[k];
    };
    for (size_t j = 0; j < i; ++j) add(j, dy[PairAt(i, j)]);
    for (size_t j = i + 1; j < shape.fields; ++j) add(j, dy[PairAt(j, i)]);
    for (size_t k = 0; k < kColumns; ++k) dx[d + k] = sum[k];
  }
  for (; d < shape.dim; ++d) {
    T sum = 0;
    for (size_t j = 0; j < shape.fields; ++j) {
      if (i != j) sum += dy[PairAt(std::max(i, j), std::min(i, j))] * x[j * shape.dim + d];
    }
    dx[d] = sum;
  }
}

void DotGrad(KernelContext& context) {
  const auto inputs = context.inputs.first(context.inputs.size() - 1);
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const DotShape shape(inputs);
    const T* const dy = DataOf<T>(context.inputs.back());
    context.pool.ParallelFor(
        shape.samples, RowGrain(shape.stride()), [&](size_t begin, size_t end) {
          SampleFields<T, Purpose::kFields> fields(inputs, shape);
          SampleFields<T, Purpose::kGradients> grads(context.outputs, shape);
          for (size_t b = begin; b < end; ++b) {
            const T* const sample = fields.Load(b);
            T* const dx = grads.Place(b);
            for (size_t i = 0; i < shape.fields; ++i) {
              FieldGrad(sample, dy + b * shape.pairs, dx + i * shape.dim, i, shape);
            }
            grads.Store(b);
          }
        });
  });
}

constexpr NamedKernel kKernels[] = {
    {"dot", Dot},
    {"dot_grad", DotGrad},
};

}  // namespace

std::span<const NamedKernel> DotKernels() { return kKernels; }

}  // namespace dt
