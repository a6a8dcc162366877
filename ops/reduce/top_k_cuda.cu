// The largest elements of rows.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/util.cuh"

namespace dt {
namespace {

// Among equal keys the earlier position comes first; NaN counts as minus infinity.
struct Ranked {
  float key;
  int at;
  __device__ bool Before(const Ranked& other) const {
    return key > other.key || (key == other.key && at < other.at);
  }
};
__device__ Ranked FirstOfWarp(Ranked own) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const Ranked other = {__shfl_xor_sync(~0u, own.key, offset),
                          __shfl_xor_sync(~0u, own.at, offset)};
    if (other.Before(own)) own = other;
  }
  return own;
}

// The first of x[0 .. n) after `last`, for which `counts(j)`; position n if there is none.
template <class T, class Counts>
__device__ Ranked NextOf(const T* x, int n, const Ranked& last, int lane, const Counts& counts) {
  Ranked first = {-INFINITY, n};
  for (int j = lane; j < n; j += kWarp) {
    if (!counts(j)) continue;
    const float value = ToFloat(x[j]);
    const Ranked own = {value == value ? value : -INFINITY, j};
    if (last.Before(own) && own.Before(first)) first = own;
  }
  return FirstOfWarp(first);
}

int LastDim(const CudaTensor& t) { return static_cast<int>(t.times[t.rank - 1]); }

// One list of each row: where it begins, the elements of a row, and likewise of the results.
struct List {
  int begin, length, row, out, out_row;
};
// Calls body(list) for the lists of rows of `row` elements that have k results each.
template <class Body>
void ForLists(const CudaCall& call, int row, int k, const Body& body) {
  const CudaAttr* const lists = FindAttr(call, "lists");
  const int count = lists == nullptr ? 1 : static_cast<int>(lists->count);
  List list{.begin = 0, .length = row, .row = row, .out = 0, .out_row = count * k};
  for (int i = 0; i < count; ++i) {
    if (lists != nullptr) list.length = static_cast<int>(lists->ints[i]);
    body(list);
    list.begin += list.length;
    list.out += k;
  }
}

// One warp for each row. Each round finds the first element after the previous one.
template <class T>
struct LargestOf {
  List list;
  int k;
  const T* x;
  T* y;
  uint32_t* positions;
  __device__ void operator()(int64_t r, int lane, const CudaRun&) const {
    const T* const own = x + r * list.row + list.begin;
    const int64_t out = r * list.out_row + list.out;
    Ranked last = {INFINITY, -1};
    for (int i = 0; i < k; ++i) {
      last = NextOf(own, list.length, last, lane, [](int) { return true; });
      if (lane != 0) continue;
      y[out + i] = last.at < list.length ? own[last.at] : To<T>(0.0f);
      positions[out + i] = static_cast<uint32_t>(last.at);
    }
  }
};

CudaError TopK(const CudaCall& call) {
  const CudaTensor &x = call.inputs[0], &y = call.outputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForLists(call, LastDim(x), LastDim(y), [&](const List& list) {
      ForRows(call, RowsOf(x),
              LargestOf<T>{list, LastDim(y), DataOf<T>(x), DataOf<T>(y),
                           DataOf<uint32_t>(call.outputs[1])});
    });
  });
}

// dy at the positions it was taken from, 0 elsewhere.
template <class T>
struct TopKSlope {
  List list;
  int k;
  const uint32_t* positions;
  const T* dy;
  T* dx;
  __device__ void operator()(int64_t r, int lane, const CudaRun&) const {
    const int64_t from = r * list.out_row + list.out;
    for (int j = lane; j < list.length; j += kWarp) {
      T own = To<T>(0.0f);
      for (int64_t i = from; i < from + k; ++i) {
        if (positions[i] == static_cast<uint32_t>(j)) own = dy[i];
      }
      dx[r * list.row + list.begin + j] = own;
    }
  }
};
CudaError TopKGrad(const CudaCall& call) {
  const CudaTensor &dy = call.inputs[1], &dx = call.outputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForLists(call, LastDim(dx), LastDim(dy), [&](const List& list) {
      ForRows(
          call, RowsOf(dx),
          TopKSlope<T>{list, LastDim(dy), IndexOf(call.inputs[0]), DataOf<T>(dy), DataOf<T>(dx)});
    });
  });
}

// ------------------------------------------------------------------ merge_top_k

// The candidates of a row: `each` of every part.
struct Candidates {
  int count, each, size;
  int longest;  // Elements of a part; the last ones may have fewer.
  Candidates(const CudaCall& call, const CudaTensor& positions) : each(LastDim(positions)) {
    const int parts = static_cast<int>(positions.times[positions.rank - 2]);
    count = parts * each;
    size = static_cast<int>(IntAttr(call, "size", 0));
    longest = (size + parts - 1) / parts;
  }
  // The position in the row; `size` for a candidate that only fills up.
  __device__ int PlaceOf(int candidate, uint32_t position) const {
    const int part = candidate / each;
    const int begin = part * longest, place = begin + static_cast<int>(position);
    const bool real = position < static_cast<uint32_t>(longest) && place < size;
    return real ? place : size;
  }
};

template <class T>
struct MergedOf {
  Candidates of;
  int k;
  const T* largest;
  const uint32_t* positions;
  T* y;
  uint32_t* chosen;
  __device__ void operator()(int64_t r, int lane, const CudaRun&) const {
    const T* const x = largest + r * of.count;
    const uint32_t* const places = positions + r * of.count;
    const auto counts = [&](int j) { return of.PlaceOf(j, places[j]) < of.size; };
    Ranked last = {INFINITY, -1};
    for (int i = 0; i < k; ++i) {
      last = NextOf(x, of.count, last, lane, counts);
      if (lane != 0) continue;
      y[r * k + i] = x[last.at];
      chosen[r * k + i] = static_cast<uint32_t>(of.PlaceOf(last.at, places[last.at]));
    }
  }
};
CudaError MergeTopK(const CudaCall& call) {
  const CudaTensor &positions = call.inputs[1], &y = call.outputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForRows(call, RowsOf(y),
            MergedOf<T>{Candidates(call, positions), LastDim(y), DataOf<T>(call.inputs[0]),
                        IndexOf(positions), DataOf<T>(y), DataOf<uint32_t>(call.outputs[1])});
  });
}

template <class T>
struct MergeSlope {
  Candidates of;
  int k;
  const uint32_t *positions, *chosen;
  const T* dy;
  T* dx;
  __device__ void operator()(int64_t r, int lane, const CudaRun&) const {
    for (int j = lane; j < of.count; j += kWarp) {
      const int place = of.PlaceOf(j, positions[r * of.count + j]);
      T own = To<T>(0.0f);
      for (int64_t i = r * k; i < (r + 1) * k; ++i) {
        if (chosen[i] == static_cast<uint32_t>(place)) own = dy[i];
      }
      dx[r * of.count + j] = own;
    }
  }
};
CudaError MergeTopKGrad(const CudaCall& call) {
  const CudaTensor &positions = call.inputs[0], &dy = call.inputs[2];
  return OnFloat(call, [&]<class T>(T) {
    ForRows(call, RowsOf(dy),
            MergeSlope<T>{Candidates(call, positions), LastDim(dy), IndexOf(positions),
                          IndexOf(call.inputs[1]), DataOf<T>(dy), DataOf<T>(call.outputs[0])});
  });
}

constexpr CudaKernel kKernels[] = {
    {"top_k", TopK},
    {"top_k_grad", TopKGrad},
    {"merge_top_k", MergeTopK},
    {"merge_top_k_grad", MergeTopKGrad},
};

}  // namespace

CudaKernelList TopKCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
