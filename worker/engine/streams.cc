#include "worker/engine/streams.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/thread_name.h"

namespace dt::worker {
namespace {

constinit WorkKind kStreamWork{"engine: between kernels"};

// Limit for what a turn waits for: far above what any step takes.
constexpr Duration kTimeout = std::chrono::minutes(10);

// Its work ends with the call that runs it, and needs no event.
bool IsOnHost(Stream stream) { return stream == Stream::kCpu || stream == Stream::kComm; }

}  // namespace

Result<std::unique_ptr<Streams>> Streams::Create(RunnerContext context) {
  auto streams = std::make_unique<Streams>(std::move(context));
  DT_TRY_STATUS(streams->Open());
  return streams;
}

Streams::Streams(RunnerContext context)
    : context_(std::move(context)),
      turns_(context_.lanes, context_.overlap),
      events_(context_.lanes),
      passes_(context_.lanes) {}

Streams::~Streams() {
  turns_.Fail(Cancelled("the engine ends"));
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
      thread->begun.resize(context_.lanes);
      DT_TRY(thread->runner, MakeNodeRunner(subgraph.stream, context_));
    }
  }
  for (Events& events : events_) {
    if (context_.accelerator == nullptr) break;
    events.resize(std::max(plan.train.size(), plan.evaluate.size()));
    for (std::unique_ptr<DeviceEvent>& event : events) {
      DT_TRY(event, context_.accelerator->NewEvent());
    }
  }
  for (size_t s = 0; s < kStreams; ++s) {
    if (threads_[s] == nullptr) continue;
    if (static_cast<Stream>(s) == Stream::kComm && !context_.comm_thread) continue;
    threads_[s]->thread = std::jthread([this, s] { Work(static_cast<Stream>(s)); });
  }
  return OkStatus();
}

void Streams::Start(const Pass& pass) {
  passes_[pass.lane] = pass;
  turns_.Begin(pass);
}

void Streams::Work(Stream stream) {
  NameThread("stream-" + std::string(NameOf(stream)));
  const WorkSpan span(kStreamWork);
  Thread& own = *threads_[static_cast<size_t>(stream)];
  while (const std::optional<Turns::Work> work = turns_.Next(stream)) RunAndEnd(*work, own);
}

void Streams::RunAndEnd(const Turns::Work& work, Thread& on) {
  if (Status status = Run(work, on); !status.ok()) turns_.Fail(std::move(status));
  turns_.End(work);
}

Status Streams::Run(const Turns::Work& work, Thread& on) {
  const Pass& pass = *work.pass;
  const Subgraph& subgraph = (*pass.subgraphs)[work.subgraph];
  NodeRunner& runner = *on.runner;
  if (std::exchange(on.begun[pass.lane], work.turn) != work.turn) {
    DT_TRY_STATUS(runner.Begin(pass));
  }
  // Subgraphs that it waits for have ended on the host, and may still run on a device.
  for (const uint32_t w : subgraph.waits) {
    const Subgraph& awaited = (*pass.subgraphs)[w];
    if (IsOnHost(awaited.stream) || !pass.phases.Has(awaited.phase)) continue;
    DT_TRY_STATUS(runner.WaitFor(*events_[pass.lane][w], kTimeout));
  }
  DT_TRY_STATUS(runner.Run(subgraph, pass));
  if (IsOnHost(subgraph.stream)) return OkStatus();
  DeviceEvent& event = *events_[pass.lane][work.subgraph];
  DT_TRY_STATUS(runner.Record(event));
  // Who reads on the host can run something else until the copy is there.
  return subgraph.stream == Stream::kToCpu ? event.Wait(kTimeout) : OkStatus();
}

Status Streams::WaitFor(size_t lane, uint32_t subgraph) {
  DT_TRY_STATUS(turns_.WaitFor(lane, subgraph, kTimeout));
  if (IsOnHost((*passes_[lane].subgraphs)[subgraph].stream)) return OkStatus();
  return events_[lane][subgraph]->Wait(kTimeout);
}

Status Streams::Wait(size_t lane) {
  const Pass& pass = passes_[lane];
  if (pass.subgraphs == nullptr) return OkStatus();
  if (Thread* const comm = threads_[static_cast<size_t>(Stream::kComm)].get();
      comm != nullptr && !context_.comm_thread) {
    while (const auto work = turns_.NextUntil(Stream::kComm, lane)) RunAndEnd(*work, *comm);
  }
  DT_TRY_STATUS(turns_.WaitForTurn(lane, kTimeout));
  for (uint32_t s = 0; s < pass.subgraphs->size(); ++s) {
    if (pass.phases.Has((*pass.subgraphs)[s].phase)) DT_TRY_STATUS(WaitFor(lane, s));
  }
  return OkStatus();
}

// Work that the threads have queued on a device may still run when they have left their turns.
void Streams::Abandon() {
  turns_.Fail(Cancelled("the step was abandoned"));
  turns_.WaitUntilIdle(kTimeout);
  for (size_t s = 0; s < kStreams; ++s) {
    if (threads_[s] == nullptr || IsOnHost(static_cast<Stream>(s))) continue;
    DeviceEvent& last = *events_.front().front();
    if (threads_[s]->runner->Record(last).ok()) last.Wait(kTimeout).IgnoreError();
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
