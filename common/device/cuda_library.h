// libdovetail_cuda.so, opened while the program runs: the program itself needs neither CUDA nor a
// driver.
#pragma once

#include <span>
#include <string>

#include "common/base/status.h"
#include "common/device/cuda_table.h"

namespace dt {

// Immutable once open; any thread. The library stays loaded until the process ends, so copies are
// free and functions taken from the table never dangle.
class CudaLibrary {
 public:
  // Beside the running program: <its directory>/libdovetail_cuda.so.
  static std::string DefaultPath();

  // Opening again costs a look-up. Unavailable: no such file (a build without CUDA), not loadable,
  // or of another build; the message says which, the hint what to do.
  static Result<CudaLibrary> Open(const std::string& path = DefaultPath());

  // The default one, unless that would be in vain for want of a driver: it brings cuBLASLt, which
  // takes a second and a lot of memory to load. Unavailable as above, or: no driver.
  static Result<CudaLibrary> OpenForCards();

  // Cards that can be used now, at least one. Unavailable if there is no driver or no card.
  Result<int> CountDevices() const;
  Result<CudaDevice> Describe(int device) const;
  // Adds a few numbers on the card: proves that this build's code runs on it.
  Status Probe(int device) const;

  const CudaTable& table() const { return table_; }

 private:
  explicit CudaLibrary(const CudaTable& table) : table_(table) {}
  CudaTable table_;
};

}  // namespace dt
