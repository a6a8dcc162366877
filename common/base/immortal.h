// An object that is never destroyed: the only way to write a singleton. A plain static is destroyed
// when main returns, while threads of libraries (ZeroMQ, oneTBB) still free messages until the
// process ends and may use it. Example, inside a function:
//
//   static Immortal<Registry> registry;
//   return *registry;
//
// The object is stored inside the static itself, so leak checkers can follow its pointers.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace dt {

template <class T>
class Immortal {
 public:
  template <class... Args>
  explicit Immortal(Args&&... args) {
    std::construct_at(reinterpret_cast<T*>(bytes_), std::forward<Args>(args)...);
  }
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;

  T& operator*() { return *std::launder(reinterpret_cast<T*>(bytes_)); }

 private:
  alignas(T) std::byte bytes_[sizeof(T)];
};

}  // namespace dt
