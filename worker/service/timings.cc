#include "worker/service/timings.h"

#include <algorithm>

#include "common/base/log.h"

namespace dt::worker {

// Adds the timings of another engine with the same plan.
static void AddTimings(std::vector<NodeTiming>& timings, const std::vector<NodeTiming>& others) {
  for (size_t n = 0; n < timings.size(); ++n) {
    timings[n].runs += others[n].runs;
    timings[n].time += others[n].time;
  }
}

void LogTimings(const Engine& engine, const Engine* other) {
  constexpr size_t kShown = 40;
  std::vector<NodeTiming> timings = engine.Timings();
  if (other != nullptr) AddTimings(timings, other->Timings());
  std::ranges::sort(timings, std::greater<>(), &NodeTiming::time);
  timings.resize(std::min(timings.size(), kShown));
  for (const NodeTiming& timing : timings) {
    LogDebug("worker.node_time", {{"node", timing.node},
                                  {"op", timing.op},
                                  {"runs", timing.runs},
                                  {"seconds", std::chrono::duration<double>(timing.time).count()}});
  }
  const Bindings::DeviceBytes device = engine.device_bytes();
  LogDebug("worker.accelerator", {{"lasting_bytes", device.lasting},
                                  {"arena_bytes", device.arena},
                                  {"arena_growths", device.arena_growths},
                                  {"cuda_graphs_made", engine.cuda_graphs_made()}});
}

}  // namespace dt::worker
