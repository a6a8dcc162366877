#include "ops/gemm/compiled_product_cpu.h"

#include <csignal>
#include <immintrin.h>
#include <map>
#include <memory>

#include <dnnl.h>
#include <omp.h>

#include "common/base/check.h"

namespace dt {
namespace {

void Check(dnnl_status_t status, const char* call) {
  DT_CHECK_MSG(status == dnnl_success, "{}: {}", call, static_cast<int>(status));
}

// Number of shapes that a thread keeps. A model has a few dozen, a short last batch adds some, and
// each layer of experts about fifty.
constexpr size_t kKept = 4096;

dnnl_engine_t Engine() {
  static const dnnl_engine_t engine = [] {
    dnnl_engine_t made = nullptr;
    Check(dnnl_engine_create(&made, dnnl_cpu, 0), "dnnl_engine_create");
    return made;
  }();
  return engine;
}

template <class T, dnnl_status_t (*destroy)(T)>
struct Destroy {
  using pointer = T;
  void operator()(T object) const { destroy(object); }
};
template <class T, dnnl_status_t (*destroy)(T)>
using Owned = std::unique_ptr<T, Destroy<T, destroy>>;
using Memory = Owned<dnnl_memory_t, dnnl_memory_destroy>;

// oneDNN encodes an instruction set as a set of bits.
bool Has(dnnl_cpu_isa_t set) { return (dnnl_get_effective_cpu_isa() & set) == set; }

dnnl_dim_t DimOf(size_t n) { return static_cast<dnnl_dim_t>(n); }

// A dense matrix [rows, cols]; if `transposed`, it is stored as [cols, rows].
struct Matrix {
  size_t rows, cols;
  bool transposed;
  dnnl_memory_desc_t Describe(dnnl_data_type_t type) const {
    const dnnl_dims_t dims = {DimOf(rows), DimOf(cols)};
    const dnnl_dims_t strides = {DimOf(transposed ? 1 : cols), DimOf(transposed ? rows : 1)};
    dnnl_memory_desc_t description;
    Check(dnnl_memory_desc_init_by_strides(&description, 2, dims, type, strides),
          "dnnl_memory_desc_init_by_strides");
    return description;
  }
};

Memory MemoryOf(const dnnl_memory_desc_t& description) {
  dnnl_memory_t memory = nullptr;
  Check(dnnl_memory_create(&memory, &description, Engine(), DNNL_MEMORY_NONE),
        "dnnl_memory_create");
  return Memory(memory);
}

// Meanwhile, no signal interrupts this thread. oneDNN 2.7 has kernels (those for floats with AVX2)
// that keep their stack in memory of the heap, which a signal's handler would overwrite.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// A product that oneDNN has compiled for one shape. Used by one thread.
class Compiled {
 public:
  explicit Compiled(const CompiledProduct& p) {
    const dnnl_data_type_t type = p.type == FactorType::kBf16 ? dnnl_bf16 : dnnl_f32;
    const dnnl_memory_desc_t a = Matrix{p.m, p.k, p.transpose_a}.Describe(type);
    const dnnl_memory_desc_t b = Matrix{p.k, p.n, p.transpose_b}.Describe(type);
    const dnnl_memory_desc_t c = Matrix{p.m, p.n, false}.Describe(dnnl_f32);
    dnnl_matmul_desc_t matmul;
    Check(dnnl_matmul_desc_init(&matmul, &a, &b, nullptr, &c), "dnnl_matmul_desc_init");
    dnnl_primitive_desc_t made = nullptr;
    Check(dnnl_primitive_desc_create(&made, &matmul, nullptr, Engine(), nullptr),
          "dnnl_primitive_desc_create");
    const Owned<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy> description(made);
    dnnl_primitive_t primitive = nullptr;
    Check(dnnl_primitive_create(&primitive, description.get()), "dnnl_primitive_create");
    primitive_.reset(primitive);
    a_ = MemoryOf(a);
    b_ = MemoryOf(b);
    c_ = MemoryOf(c);
  }

  void Run(dnnl_stream_t stream, const ProductOperands& data) {
    Point(a_, const_cast<void*>(data.a));
    Point(b_, const_cast<void*>(data.b));
    Point(c_, data.c);
    const dnnl_exec_arg_t arguments[] = {
        {DNNL_ARG_SRC, a_.get()}, {DNNL_ARG_WEIGHTS, b_.get()}, {DNNL_ARG_DST, c_.get()}};
    const SignalsBlocked blocked;
    Check(dnnl_primitive_execute(primitive_.get(), stream, 3, arguments), "dnnl_primitive_execute");
  }

 private:
  static void Point(const Memory& memory, void* data) {
    Check(dnnl_memory_set_data_handle(memory.get(), data), "dnnl_memory_set_data_handle");
  }

  Owned<dnnl_primitive_t, dnnl_primitive_destroy> primitive_;
  Memory a_, b_, c_;
};

struct ThreadState {
  Owned<dnnl_stream_t, dnnl_stream_destroy> stream;
  std::map<CompiledProduct, Compiled> compiled;

  ThreadState() {
    // oneDNN uses OpenMP, and would start a team for each thread of the pool.
    omp_set_num_threads(1);
    dnnl_stream_t made = nullptr;
    Check(dnnl_stream_create(&made, Engine(), dnnl_stream_default_flags), "dnnl_stream_create");
    stream.reset(made);
  }
};

}  // namespace

bool HasAvx512() {
  static const bool has = Has(dnnl_cpu_isa_avx512_core);
  return has;
}
bool MultipliesBf16() {
  static const bool does = Has(dnnl_cpu_isa_avx512_core_bf16);
  return does;
}
bool HasTileUnits() {
  static const bool has = Has(dnnl_cpu_isa_avx512_core_amx);
  return has;
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) void RoundToBf16(
    std::span<const float> from, uint16_t* to) {
  size_t i = 0;
  for (; i + 32 <= from.size(); i += 32) {
    const __m512 low = _mm512_loadu_ps(from.data() + i);
    const __m512 high = _mm512_loadu_ps(from.data() + i + 16);
    _mm512_storeu_si512(to + i, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
  for (; i < from.size(); i += 16) {
    const size_t left = from.size() - i;
    const auto mask = static_cast<__mmask16>(left >= 16 ? 0xffff : (1u << left) - 1);
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, from.data() + i));
    _mm256_mask_storeu_epi16(to + i, mask, reinterpret_cast<__m256i>(rounded));
  }
}

void Multiply(const CompiledProduct& product, const ProductOperands& data) {
  thread_local ThreadState state;
  auto at = state.compiled.find(product);
  if (at == state.compiled.end()) {
    if (state.compiled.size() >= kKept) state.compiled.clear();
    at = state.compiled.try_emplace(product, product).first;
  }
  at->second.Run(state.stream.get(), data);
}

}  // namespace dt
