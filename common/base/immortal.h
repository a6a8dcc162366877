// An object that is never destroyed: the one way to have a singleton. A static of another type is
// destroyed when main returns, while threads of libraries (ZeroMQ's, oneTBB's) may still use it:
// they free messages until the process ends. For a function's static:
//
//   static Immortal<Registry> registry;
//   return *registry;
//
// The object lies in the static itself, so leak checkers see what it points to.
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
