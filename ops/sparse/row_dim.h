// For kernels that copy or add rows of a table.
#pragma once

#include <cstddef>
#include <type_traits>

namespace dt {

// Calls body(dim). Dimensions that are common in tables are passed as constants, so that a row's
// loop becomes a few instructions: it costs more than the row's bytes otherwise.
template <class Body>
void WithRowDim(size_t dim, const Body& body) {
  switch (dim) {
    case 1:
      return body(std::integral_constant<size_t, 1>());
    case 8:
      return body(std::integral_constant<size_t, 8>());
    case 16:
      return body(std::integral_constant<size_t, 16>());
    case 32:
      return body(std::integral_constant<size_t, 32>());
    case 64:
      return body(std::integral_constant<size_t, 64>());
    default:
      return body(dim);
  }
}

}  // namespace dt
