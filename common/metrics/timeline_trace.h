// Spans in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/metrics/timeline.h"

namespace dt {

struct TraceProcess {
  std::string name;  // "worker 3 of frappe"
  uint32_t pid = 1;  // Of the picture; not 0.
};

// One JSON object, a line per event. Each track is a thread of the picture; spans that lie across
// each other, which viewers do not show on one thread, go to further ones ("pull 2"). Times are
// microseconds of the machine's monotonic clock, so that files of processes of one machine can be
// looked at together. REQUIRES: spans as Timeline::Spans gives them.
std::string TraceJson(const TraceProcess& process, std::span<const RecordedSpan> spans);

}  // namespace dt
