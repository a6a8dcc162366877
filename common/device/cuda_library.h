// Opens libdovetail_cuda.so while the program runs, so that the program itself needs neither CUDA
// nor a driver.
#pragma once

#include <span>
#include <string>

#include "common/base/status.h"
#include "common/device/cuda_table.h"

namespace dt {

// Immutable once open; any thread. The library stays loaded until the process ends, so copies are
// cheap and functions from the table stay valid.
class CudaLibrary {
 public:
  // The path next to the running program: <its directory>/libdovetail_cuda.so.
  static std::string DefaultPath();

  // Opening it again is cheap. Unavailable: the file is absent (a build without CUDA), cannot be
  // loaded, or is from another build; the message says which, and the hint what to do.
  static Result<CudaLibrary> Open(const std::string& path = DefaultPath());

  // Opens the library at DefaultPath, but first checks for a driver: the library loads cuBLASLt,
  // which takes a second and a lot of memory. Unavailable as for Open, or because there is no
  // driver.
  static Result<CudaLibrary> OpenForCards();

  // The number of usable cards, at least one. Unavailable if there is no driver or no card.
  Result<int> CountDevices() const;
  Result<CudaDevice> Describe(int device) const;
  // Adds a few numbers on the card, which proves that this build's code runs on it.
  Status Probe(int device) const;

  const CudaTable& table() const { return table_; }

 private:
  explicit CudaLibrary(const CudaTable& table) : table_(table) {}
  CudaTable table_;
};

}  // namespace dt
