// Vectors of eight elements, for loops that the compiler does not vectorise by itself.
#pragma once

#include <cstddef>

namespace dt {

inline constexpr size_t kLanes = 8;
template <class T>
struct LanesOf {
  typedef T Type __attribute__((vector_size(kLanes * sizeof(T)), aligned(sizeof(T)), may_alias));
};
template <class T>
using Lanes = typename LanesOf<T>::Type;

// The vector of the elements from `at` on.
template <class T>
const Lanes<T>& LanesAt(const T* at) {
  return *reinterpret_cast<const Lanes<T>*>(at);
}
template <class T>
Lanes<T>& LanesAt(T* at) {
  return *reinterpret_cast<Lanes<T>*>(at);
}

}  // namespace dt
