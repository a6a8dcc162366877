#include "common/metrics/timeline_trace.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dt {
namespace {

std::string Quoted(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Assigns each span, in the order of their begin, to the first lane in which it follows the earlier
// spans or is nested in them.
class Lanes {
 public:
  size_t Take(const RecordedSpan& span) {
    for (size_t lane = 0; lane < ends_.size(); ++lane) {
      std::vector<TimePoint>& open = ends_[lane];
      while (!open.empty() && open.back() <= span.begin) open.pop_back();
      if (!open.empty() && span.end > open.back()) continue;
      open.push_back(span.end);
      return lane;
    }
    ends_.push_back({span.end});
    return ends_.size() - 1;
  }
  size_t count() const { return ends_.size(); }

 private:
  // By lane: the ends of open spans, the innermost last.
  std::vector<std::vector<TimePoint>> ends_;
};

class Writer {
 public:
  explicit Writer(const TraceProcess& process) : pid_(process.pid) {
    Meta("process_name", 0, fmt::format("\"name\":{}", Quoted(process.name)));
  }

  void NameThread(uint32_t tid, std::string_view name) {
    Meta("thread_name", tid, fmt::format("\"name\":{}", Quoted(name)));
    Meta("thread_sort_index", tid, fmt::format("\"sort_index\":{}", tid));
  }

  void Put(const RecordedSpan& span, uint32_t tid) {
    const bool whole = span.label.category == kWholeStep;
    const std::string name =
        whole ? fmt::format("{} {}", span.label.name, span.step) : std::string(span.label.name);
    Begin();
    fmt::format_to(std::back_inserter(text_), R"({{"ph":"X","pid":{},"tid":{},"ts":)", pid_, tid);
    PutMicroseconds(span.begin.time_since_epoch());
    text_ += R"(,"dur":)";
    PutMicroseconds(std::max(Duration(span.end - span.begin), Duration::zero()));
    fmt::format_to(std::back_inserter(text_), R"(,"name":{},"cat":{},"args":{{"step":{})",
                   Quoted(name), Quoted(span.label.category), span.step);
    if (span.slice != kNoSlice) {
      fmt::format_to(std::back_inserter(text_), R"(,"slice":{})", span.slice);
    }
    if (span.bytes > 0) fmt::format_to(std::back_inserter(text_), R"(,"bytes":{})", span.bytes);
    text_ += "}}";
  }

  std::string Take() { return std::move(text_) + "\n]}\n"; }

 private:
  void Begin() {
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
  }
  void Meta(std::string_view what, uint32_t tid, std::string_view args) {
    Begin();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})", pid_, tid, what,
                   args);
  }
  // Written with nanoseconds, so that nested spans are also nested in the file.
  void PutMicroseconds(Duration time) {
    fmt::format_to(std::back_inserter(text_), "{}.{:03}", time.count() / 1000, time.count() % 1000);
  }

  const uint32_t pid_;
  std::string text_ = R"({"displayTimeUnit":"ms","traceEvents":[)";
  bool first_ = true;
};

}  // namespace

std::string TraceJson(const TraceProcess& process, std::span<const RecordedSpan> spans) {
  Writer writer(process);
  uint32_t first_tid = 1;
  for (size_t t = 0; t < kTracks; ++t) {
    const auto track = static_cast<Track>(t);
    Lanes lanes;
    for (const RecordedSpan& span : spans) {
      if (span.label.track != track) continue;
      writer.Put(span, first_tid + static_cast<uint32_t>(lanes.Take(span)));
    }
    for (size_t lane = 0; lane < lanes.count(); ++lane) {
      const std::string name =
          lane == 0 ? std::string(NameOf(track)) : fmt::format("{} {}", NameOf(track), lane + 1);
      writer.NameThread(first_tid + static_cast<uint32_t>(lane), name);
    }
    first_tid += static_cast<uint32_t>(lanes.count());
  }
  return writer.Take();
}

}  // namespace dt
