#include "common/control/read_process_stats.h"

#include <sys/resource.h>

namespace dt {

ProcessStats ReadProcessStats(const Network* network) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds_of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  ProcessStats stats;
  stats.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  stats.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  if (network != nullptr) {
    stats.bytes_sent = network->bytes_sent();
    stats.bytes_received = network->bytes_received();
  }
  return stats;
}

}  // namespace dt
