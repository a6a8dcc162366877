#include "common/device/tensor.h"

namespace dt {

std::string_view NameOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kU32:
      return "u32";
    case DType::kBf16:
      return "bf16";
  }
  DT_UNREACHABLE();
}

}  // namespace dt
