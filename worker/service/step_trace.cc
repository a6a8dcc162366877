#include "worker/service/step_trace.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "common/base/folder.h"
#include "common/base/log.h"
#include "common/metrics/timeline_trace.h"
#include "common/storage/files.h"

namespace dt::worker {
namespace {

// More steps than asynchronous workers have under way, including pushes not acknowledged yet.
constexpr Step kStepsUnderWay = 10;

// How busy each track was: "train 52 %, pull 13 %".
std::string BusyText(const TimelineSummary& summary) {
  std::string text;
  for (const TimelineSummary::Use& use : summary.uses) {
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", NameOf(use.track),
                        ShareOf(summary, use.busy));
  }
  return text;
}

// Removes all workers' files: those of an earlier run would be taken for this one's. Processes are
// numbered as they join, so the earlier run's worker may have had another number. No worker of this
// run trains before all have joined.
void RemoveTraces(const std::string& folder) {
  for (const std::filesystem::path& path : ListFolderIfAny(folder)) {
    if (!path.filename().string().starts_with("worker-")) continue;
    std::error_code gone;  // Another worker may have removed the file.
    std::filesystem::remove(path, gone);
  }
}

Timeline::Options OptionsOf(const JobConfig& job, Activities& activities, const Clock& clock) {
  Timeline::Options options{.clock = &clock, .activities = &activities};
  if (job.observe.trace) {
    options.first = job.observe.trace->first;
    options.last = job.observe.trace->last;
  } else {
    options.spans_max = 0;
  }
  return options;
}

}  // namespace

StepTrace::StepTrace(const JobConfig& job, ProcessId self, Activities& activities,
                     const Clock& clock)
    : name_(fmt::format("worker {} of {}", self.value(), job.job)),
      folder_(job.run_dir + "/trace"),
      file_(fmt::format("{}/worker-{}", folder_, self.value())),
      pid_(self.value() + 1),
      timeline_(OptionsOf(job, activities, clock)),
      written_(!job.observe.trace) {
  if (job.observe.trace) {
    RemoveTraces(folder_);
  } else {
    timeline_.Close();
  }
}

void StepTrace::StepsDone(Step end) {
  if (!written_ && end > timeline_.last() && end - timeline_.last() > kStepsUnderWay) Finish();
}

void StepTrace::Finish() {
  if (written_) return;
  written_ = true;
  timeline_.Close();
  const std::vector<RecordedSpan> spans = timeline_.Spans();
  if (spans.empty()) {
    LogWarn("worker.trace_empty",
            {{"first_step", timeline_.first()},
             {"last_step", timeline_.last()},
             {"why", "no step of observe.trace was trained by this worker in this run"}});
    return;
  }
  const TimelineSummary summary = Summarize(spans);
  if (const Status wrote = Write(spans, summary); !wrote.ok()) {
    LogWarn("worker.trace_not_written", {{"why", ToText(wrote)}});
    return;
  }
  if (timeline_.dropped() > 0) {
    LogWarn("worker.trace_incomplete", {{"spans", spans.size()},
                                        {"dropped", timeline_.dropped()},
                                        {"hint", "name fewer steps in observe.trace"}});
  }
  LogInfo("worker.trace",
          {{"file", file_ + ".json"},
           {"steps", summary.steps},
           {"spans", spans.size()},
           {"step_ms", std::chrono::duration<double, std::milli>(summary.step_median).count()},
           {"busy", BusyText(summary)},
           {"idle_percent", ShareOf(summary, summary.idle)}});
}

Status StepTrace::Write(std::span<const RecordedSpan> spans, const TimelineSummary& summary) const {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return DiskError("making the folder", folder_, error.value());
  const TraceProcess process{.name = name_, .pid = pid_};
  DT_TRY_STATUS(WriteWholeFile(file_ + ".json", TraceJson(process, spans)));
  return WriteWholeFile(file_ + ".txt", fmt::format("{}\n\n{}", name_, ToText(summary)));
}

}  // namespace dt::worker
