// Writes spans in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/metrics/timeline.h"

namespace dt {

struct TraceProcess {
  std::string name;  // "worker 3 of frappe"
  uint32_t pid = 1;  // Process number in the drawing; not 0.
};

// Returns one JSON object, with a line per event. Each track is a thread of the drawing. Viewers
// cannot show spans of one thread that overlap without nesting; these go to additional threads
// ("pull 2"). Times are microseconds of the machine's monotonic clock, so files of processes of one
// machine can be viewed together. REQUIRES: spans are ordered as Timeline::Spans orders them.
std::string TraceJson(const TraceProcess& process, std::span<const RecordedSpan> spans);

}  // namespace dt
