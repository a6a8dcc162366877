// How fast the devices of a machine compute and copy: the constants of automatic placement.
// `dovetail bench devices --out FILE` measures them, and a job names the file (parallel.profile);
// otherwise shipped defaults apply, which are marked as such.
//
// The file is YAML: `cpu`, `accelerator`, `to_accelerator`, `from_accelerator`, `server`, each with
// its `source`. A part that is missing keeps its shipped default. No host name is stored.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace dt {

inline constexpr std::string_view kShippedDefault = "shipped default";
// Name of the emulated accelerator's rates.
inline constexpr std::string_view kEmulatedName = "emulated";

enum class Arithmetic : uint8_t { kFp32, kTf32, kBf16 };

struct ComputeRates {
  std::string source{kShippedDefault};  // Otherwise "measured", with the date.
  std::string name;                     // The device's name, for people.
  std::array<double, 3> flops = {};     // Matrix products, per second, by Arithmetic.
  double memory_bytes = 0;              // Read and written per second.
  double launch_seconds = 0;            // Cost of each node in addition to its work.

  // The longer of the times for arithmetic and for memory, without the launch.
  double SecondsOf(double flop_count, double bytes, Arithmetic arithmetic) const;
  friend bool operator==(const ComputeRates&, const ComputeRates&) = default;
};

struct CopyRates {
  std::string source{kShippedDefault};
  double latency_seconds = 0;
  double bytes = 0;  // Per second.
  friend bool operator==(const CopyRates&, const CopyRates&) = default;
};

// The rates of one server, as a worker sees them.
struct ServerRates {
  std::string source{kShippedDefault};
  double latency_seconds = 0;  // Time of a request for one row, with its reply.
  double row_seconds = 0;      // Time to pull and push a row, without its bytes.
  double bytes = 0;            // Per second, in each direction.

  // Time of a step whose slices together pull and push so many rows and bytes in each direction.
  double SecondsOf(double rows, double row_bytes, uint32_t servers) const;
  friend bool operator==(const ServerRates&, const ServerRates&) = default;
};

struct DeviceProfile {
  ComputeRates cpu, accelerator;  // The CPU with all threads.
  CopyRates to_accelerator, from_accelerator;
  ServerRates server;
  friend bool operator==(const DeviceProfile&, const DeviceProfile&) = default;
};

// Assumptions about machines that were not measured: a CPU with so many threads, and a card or the
// emulated accelerator, which is the same CPU.
DeviceProfile DefaultCardProfile(uint32_t threads);
DeviceProfile DefaultEmulatedProfile(uint32_t threads);

// `defaults`, replaced by the values in the file. Error: Invalid, with one problem per line.
Result<DeviceProfile> ReadDeviceProfile(const std::string& path, DeviceProfile defaults);
// Parses text instead of a file; `file` is the name in problems.
Result<DeviceProfile> ParseDeviceProfile(const std::string& text, const std::string& file,
                                         DeviceProfile defaults);
std::string ToYaml(const DeviceProfile& profile);

// For explanations: "constants: cpu measured 2026-01-31; accelerator, copies shipped default".
std::string SourceText(const DeviceProfile& profile);

}  // namespace dt
