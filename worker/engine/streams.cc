#include "worker/engine/streams.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::worker {
namespace {

constexpr Duration kPoll = milliseconds(200);
// Of one subgraph, and of what it waits for: far above what any step takes.
constexpr Duration kPatience = std::chrono::minutes(10);

bool IsExchange(const Plan& plan, const Subgraph& subgraph) {
  return IsCommunication(plan.graph.nodes[subgraph.nodes.front()]);
}

Track TrackOf(Stream stream) {
  switch (stream) {
    case Stream::kCpu:
      return Track::kCpu;
    case Stream::kGpu:
      return Track::kGpu;
    case Stream::kToGpu:
      return Track::kCopyToDevice;
    case Stream::kToCpu:
      return Track::kCopyToHost;
  }
  DT_UNREACHABLE();
}

}  // namespace

Result<std::unique_ptr<Streams>> Streams::Create(Options options) {
  auto streams = std::make_unique<Streams>(std::move(options));
  DT_TRY_STATUS(streams->Open());
  return streams;
}

Streams::Streams(Options options) : options_(std::move(options)) {}

Streams::~Streams() {
  progress_.Fail(Cancelled("the engine ends"));
  for (const std::unique_ptr<Thread>& thread : threads_) {
    if (thread == nullptr) continue;
    thread->thread.request_stop();
    thread->begins.Close();
  }
  // A node may still run, and what it uses goes after this.
  for (const std::unique_ptr<Thread>& thread : threads_) {
    if (thread != nullptr && thread->thread.joinable()) thread->thread.join();
  }
}

Status Streams::Open() {
  const Plan& plan = options_.plan;
  for (const auto* pass : {&plan.train, &plan.evaluate}) {
    for (const Subgraph& subgraph : *pass) {
      std::unique_ptr<Thread>& thread = threads_[static_cast<size_t>(subgraph.stream)];
      if (thread != nullptr) continue;
      thread = std::make_unique<Thread>();
      DT_TRY(thread->runner, MakeNodeRunner(subgraph.stream, options_.pool, options_.accelerator));
    }
  }
  if (options_.accelerator != nullptr) {
    events_.resize(std::max(plan.train.size(), plan.evaluate.size()));
    for (std::unique_ptr<DeviceEvent>& event : events_) {
      DT_TRY(event, options_.accelerator->NewEvent());
    }
  }
  for (size_t s = 0; s < kStreams; ++s) {
    if (threads_[s] == nullptr) continue;
    threads_[s]->thread =
        std::jthread([this, s](std::stop_token stop) { Work(static_cast<Stream>(s), stop); });
  }
  return OkStatus();
}

void Streams::Start(const std::vector<Subgraph>& pass, Phase phase, const RunInfo& run,
                    SliceIndex slice) {
  const auto streams = std::ranges::count_if(threads_, [](const auto& t) { return t != nullptr; });
  progress_.Begin(pass.size(), static_cast<size_t>(streams));
  pass_ = &pass;
  phase_ = phase;
  run_ = run;
  slice_ = slice;
  ++passes_;
  for (uint32_t s = 0; s < pass.size(); ++s) {
    if (IsExchange(options_.plan, pass[s])) progress_.End(s);
  }
  for (const std::unique_ptr<Thread>& thread : threads_) {
    if (thread == nullptr) continue;
    uint64_t number = passes_;
    DT_CHECK(thread->begins.TryPush(number));
  }
}

void Streams::Work(Stream stream, std::stop_token stop) {
  Thread& own = *threads_[static_cast<size_t>(stream)];
  while (!stop.stop_requested()) {
    if (!own.begins.Pop(kPoll).has_value()) continue;
    if (Status status = RunOwn(stream); !status.ok()) progress_.Fail(std::move(status));
    progress_.Leave();
  }
}

Status Streams::RunOwn(Stream stream) {
  NodeRunner& runner = *threads_[static_cast<size_t>(stream)]->runner;
  for (uint32_t s = 0; s < pass_->size(); ++s) {
    const Subgraph& subgraph = (*pass_)[s];
    if (subgraph.stream != stream || subgraph.phase != phase_) continue;
    if (IsExchange(options_.plan, subgraph)) continue;
    DT_TRY_STATUS(AwaitOthers(subgraph, runner));
    DT_TRY_STATUS(RunSubgraph(s, runner));
  }
  return OkStatus();
}

Status Streams::AwaitOthers(const Subgraph& subgraph, NodeRunner& runner) {
  DT_TRY_STATUS(progress_.status());
  if (subgraph.needs_rows) DT_TRY_STATUS(progress_.WaitForRows(kPatience));
  for (const uint32_t w : subgraph.waits) {
    DT_TRY_STATUS(progress_.WaitFor(w, kPatience));
    if ((*pass_)[w].stream != Stream::kCpu) {
      DT_TRY_STATUS(runner.WaitFor(*events_[w], kPatience));
    }
  }
  return OkStatus();
}

Status Streams::RunSubgraph(uint32_t index, NodeRunner& runner) {
  const Subgraph& subgraph = (*pass_)[index];
  for (const NodeIndex n : subgraph.nodes) {
    const Node& node = options_.plan.graph.nodes[n];
    PreparedNode& prepared = options_.prepare(n);
    const TimelineSpan span(run_.training ? options_.timeline : nullptr,
                            {TrackOf(subgraph.stream), node.name, node.op}, run_.step, slice_);
    const TimePoint begun = SystemClock().Now();
    DT_TRY_STATUS(runner.Run(node, prepared, run_));
    prepared.time += SystemClock().Now() - begun;
    ++prepared.runs;
  }
  if (subgraph.stream != Stream::kCpu) DT_TRY_STATUS(runner.Record(*events_[index]));
  progress_.End(index);
  return OkStatus();
}

Status Streams::WaitFor(uint32_t subgraph) {
  DT_TRY_STATUS(progress_.WaitFor(subgraph, kPatience));
  if ((*pass_)[subgraph].stream == Stream::kCpu) return OkStatus();
  return events_[subgraph]->Wait(kPatience);
}

Status Streams::Wait() {
  if (pass_ == nullptr) return OkStatus();
  DT_TRY_STATUS(progress_.WaitForStreams(kPatience));
  for (uint32_t s = 0; s < pass_->size(); ++s) {
    if ((*pass_)[s].phase == phase_) DT_TRY_STATUS(WaitFor(s));
  }
  return OkStatus();
}

}  // namespace dt::worker
