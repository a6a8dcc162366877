#include "worker/engine/streams.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::worker {
namespace {

constexpr Duration kPoll = milliseconds(200);
// Limit for one subgraph, and for what it waits for: far above what any step takes.
constexpr Duration kTimeout = std::chrono::minutes(10);

// Its work ends with the call that runs it, and needs no event.
bool IsOnHost(Stream stream) { return stream == Stream::kCpu || stream == Stream::kComm; }

// The engine makes the exchange of a step between its passes.
bool IsExchange(const GraphIndex& index, const Subgraph& subgraph) {
  return index.Is(subgraph.nodes.front(), OpKind::kExchange);
}

}  // namespace

Result<std::unique_ptr<Streams>> Streams::Create(RunnerContext context) {
  auto streams = std::make_unique<Streams>(std::move(context));
  DT_TRY_STATUS(streams->Open());
  return streams;
}

Streams::Streams(RunnerContext context) : context_(std::move(context)) {}

Streams::~Streams() {
  progress_.Fail(Cancelled("the engine ends"));
  for (const std::unique_ptr<Thread>& thread : threads_) {
    if (thread == nullptr) continue;
    thread->thread.request_stop();
    thread->begins.Close();
  }
  // A node may still run, and what it uses is destroyed after this.
  for (const std::unique_ptr<Thread>& thread : threads_) {
    if (thread != nullptr && thread->thread.joinable()) thread->thread.join();
  }
}

Status Streams::Open() {
  const Plan& plan = context_.plan;
  for (const auto* pass : {&plan.train, &plan.evaluate}) {
    for (const Subgraph& subgraph : *pass) {
      std::unique_ptr<Thread>& thread = threads_[static_cast<size_t>(subgraph.stream)];
      if (thread != nullptr) continue;
      thread = std::make_unique<Thread>();
      DT_TRY(thread->runner, MakeNodeRunner(subgraph.stream, context_));
    }
  }
  if (context_.accelerator != nullptr) {
    events_.resize(std::max(plan.train.size(), plan.evaluate.size()));
    for (std::unique_ptr<DeviceEvent>& event : events_) {
      DT_TRY(event, context_.accelerator->NewEvent());
    }
  }
  for (size_t s = 0; s < kStreams; ++s) {
    if (threads_[s] == nullptr) continue;
    threads_[s]->thread =
        std::jthread([this, s](std::stop_token stop) { Work(static_cast<Stream>(s), stop); });
  }
  return OkStatus();
}

void Streams::Start(const Pass& pass) {
  const auto streams = std::ranges::count_if(threads_, [](const auto& t) { return t != nullptr; });
  progress_.Begin(pass.subgraphs->size(), static_cast<size_t>(streams));
  pass_ = pass;
  ++passes_;
  for (uint32_t s = 0; s < pass.subgraphs->size(); ++s) {
    if (IsExchange(context_.index, (*pass.subgraphs)[s])) progress_.End(s);
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
  DT_TRY_STATUS(runner.Begin(pass_));
  for (uint32_t s = 0; s < pass_.subgraphs->size(); ++s) {
    const Subgraph& subgraph = (*pass_.subgraphs)[s];
    if (subgraph.stream != stream || subgraph.phase != pass_.phase) continue;
    if (IsExchange(context_.index, subgraph)) continue;
    DT_TRY_STATUS(AwaitOthers(s, runner));
    DT_TRY_STATUS(RunSubgraph(s, runner));
  }
  return OkStatus();
}

Status Streams::AwaitOthers(uint32_t index, NodeRunner& runner) {
  const Subgraph& subgraph = (*pass_.subgraphs)[index];
  DT_TRY_STATUS(progress_.status());
  if (!context_.overlap && index > 0 && (*pass_.subgraphs)[index - 1].phase == pass_.phase) {
    DT_TRY_STATUS(WaitFor(index - 1));
  }
  if (subgraph.needs_rows) DT_TRY_STATUS(progress_.WaitForRows(kTimeout));
  for (const uint32_t w : subgraph.waits) {
    DT_TRY_STATUS(progress_.WaitFor(w, kTimeout));
    if (!IsOnHost((*pass_.subgraphs)[w].stream)) {
      DT_TRY_STATUS(runner.WaitFor(*events_[w], kTimeout));
    }
  }
  return OkStatus();
}

Status Streams::RunSubgraph(uint32_t index, NodeRunner& runner) {
  const Subgraph& subgraph = (*pass_.subgraphs)[index];
  DT_TRY_STATUS(runner.Run(subgraph, pass_));
  if (!IsOnHost(subgraph.stream)) DT_TRY_STATUS(runner.Record(*events_[index]));
  progress_.End(index);
  return OkStatus();
}

Status Streams::WaitFor(uint32_t subgraph) {
  DT_TRY_STATUS(progress_.WaitFor(subgraph, kTimeout));
  if (IsOnHost((*pass_.subgraphs)[subgraph].stream)) return OkStatus();
  return events_[subgraph]->Wait(kTimeout);
}

Status Streams::Wait() {
  if (pass_.subgraphs == nullptr) return OkStatus();
  DT_TRY_STATUS(progress_.WaitForStreams(kTimeout));
  for (uint32_t s = 0; s < pass_.subgraphs->size(); ++s) {
    if ((*pass_.subgraphs)[s].phase == pass_.phase) DT_TRY_STATUS(WaitFor(s));
  }
  return OkStatus();
}

// What the threads have queued on a device may still run when they have left the pass.
void Streams::Abandon() {
  if (pass_.subgraphs == nullptr) return;
  progress_.Fail(Cancelled("the step was abandoned"));
  progress_.WaitForStreams(kTimeout).IgnoreError();
  for (size_t s = 0; s < kStreams; ++s) {
    if (threads_[s] == nullptr || IsOnHost(static_cast<Stream>(s))) continue;
    const Status recorded = threads_[s]->runner->Record(*events_.front());
    if (recorded.ok()) events_.front()->Wait(kTimeout).IgnoreError();
  }
}

uint64_t Streams::graphs_made() const {
  uint64_t made = 0;
  for (const std::unique_ptr<Thread>& thread : threads_) {
    if (thread != nullptr) made += thread->runner->graphs_made();
  }
  return made;
}

}  // namespace dt::worker
