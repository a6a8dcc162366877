// Opens libdovetail_arrow.so while the program runs, so that the program itself needs no Arrow.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "worker/data/arrow/arrow_table.h"

namespace dt::worker {

// Immutable once open; any thread. The library stays loaded until the process ends, so copies are
// cheap and functions from the table stay valid.
class ArrowLibrary {
 public:
  // The path next to the running program: <its directory>/libdovetail_arrow.so.
  static std::string DefaultPath();

  // Opening it again is cheap. `user` says what needs it, such as "format: parquet". Unavailable:
  // the file is absent (a build without Arrow), cannot be loaded, or is from another build; the
  // message says which, and the hint what brings it.
  static Result<ArrowLibrary> Open(std::string_view user, const std::string& path = DefaultPath());

  // Whether the process has opened it.
  static bool IsOpen(const std::string& path = DefaultPath());

  const ArrowTable* operator->() const { return &table_; }

 private:
  explicit ArrowLibrary(const ArrowTable& table) : table_(table) {}
  ArrowTable table_;
};

// The error of a call as "<subject>: <text>"; OK if there is none.
Status ToStatus(const ArrowError& error, std::string_view subject);

// Owns an object of the library, which the given function of the table frees.
template <class T>
using ArrowOwned = std::unique_ptr<T, void (*)(T*)>;

}  // namespace dt::worker
