#include <algorithm>

#include "common/base/check.h"
#include "ops/gemm/panel_lanes_512.h"

#define DT_LANES DT_AVX512

namespace dt {
namespace panels::avx512 {
namespace {

#include "ops/gemm/panel_product.inc"
#undef DT_LANES

}  // namespace
}  // namespace panels::avx512

const PanelProduct kAvx512Product = panels::avx512::kProduct;

}  // namespace dt
