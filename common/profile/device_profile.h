// How fast one machine's devices compute and copy: the constants of automatic placement. Measured
// by `dovetail bench devices --out FILE`, read where a job names the file (parallel.profile);
// without one, shipped defaults, which say that they are.
//
// The file is YAML: `cpu`, `accelerator`, `to_accelerator`, `from_accelerator`, `server`, each with
// its `source`; a part that is left out keeps its shipped default. No host name is stored.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace dt {

inline constexpr std::string_view kShippedDefault = "shipped default";
inline constexpr std::string_view kEmulatedName = "emulated";  // Of an accelerator's rates.

enum class Arithmetic : uint8_t { kFp32, kTf32, kBf16 };

struct ComputeRates {
  std::string source{kShippedDefault};  // Or "measured", with the date.
  std::string name;                     // Of the device, for people.
  std::array<double, 3> flops = {};     // A second, by Arithmetic: of matrix products.
  double memory_bytes = 0;              // A second, read and written.
  double launch_seconds = 0;            // Of each node beside its work.

  // The larger of what arithmetic and memory need, without the launch.
  double SecondsOf(double flop_count, double bytes, Arithmetic arithmetic) const;
  friend bool operator==(const ComputeRates&, const ComputeRates&) = default;
};

struct CopyRates {
  std::string source{kShippedDefault};
  double latency_seconds = 0;
  double bytes = 0;  // A second.
  friend bool operator==(const CopyRates&, const CopyRates&) = default;
};

// One server, as a worker sees it.
struct ServerRates {
  std::string source{kShippedDefault};
  double latency_seconds = 0;  // Of a request for a row, and its answer.
  double row_seconds = 0;      // Of a row that is pulled and pushed, beside its bytes.
  double bytes = 0;            // A second, each way.

  // Of a step whose slices pull and push rows with so many bytes in all, each way.
  double SecondsOf(double rows, double row_bytes, uint32_t servers) const;
  friend bool operator==(const ServerRates&, const ServerRates&) = default;
};

struct DeviceProfile {
  ComputeRates cpu, accelerator;  // The CPU with all threads.
  CopyRates to_accelerator, from_accelerator;
  ServerRates server;
  friend bool operator==(const DeviceProfile&, const DeviceProfile&) = default;
};

// What is assumed of machines nobody measured: a CPU of so many threads, beside a card or beside
// the emulated accelerator, which is that CPU again.
DeviceProfile DefaultCardProfile(uint32_t threads);
DeviceProfile DefaultEmulatedProfile(uint32_t threads);

// `defaults` with what the file says in their place. Error: Invalid, a problem a line.
Result<DeviceProfile> ReadDeviceProfile(const std::string& path, DeviceProfile defaults);
// The same from text; `file` is what problems name.
Result<DeviceProfile> ParseDeviceProfile(const std::string& text, const std::string& file,
                                         DeviceProfile defaults);
std::string ToYaml(const DeviceProfile& profile);

// For explanations: "constants: cpu measured 2026-01-31; accelerator, copies shipped default".
std::string SourceText(const DeviceProfile& profile);

}  // namespace dt
