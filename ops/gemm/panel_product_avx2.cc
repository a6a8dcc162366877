#include <algorithm>

#include "common/base/check.h"
#include "ops/gemm/panel_lanes_256.h"

#define DT_LANES

namespace dt {
namespace panels::avx2 {
namespace {

#include "ops/gemm/panel_product.inc"
#undef DT_LANES

}  // namespace
}  // namespace panels::avx2

const PanelProduct kAvx2Product = panels::avx2::kProduct;

}  // namespace dt
