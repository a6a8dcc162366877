#include "worker/engine/turns.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::worker {
namespace {

Status Late(Duration timeout) {
  return Timeout("a stream of the engine did not answer within {} s",
                 std::chrono::duration_cast<std::chrono::seconds>(timeout).count());
}

}  // namespace

void Turns::Begin(const Pass& pass) {
  MutexLock lock(mutex_);
  Turn& turn = turns_[pass.lane];
  DT_CHECK(turn.left == 0 || !status_.ok());
  turn.number = ++begun_;
  turn.pass = pass;
  turn.has_rows = false;
  turn.next.fill(0);
  // What does not run counts as ended.
  turn.ended.assign(pass.subgraphs->size(), true);
  turn.left = 0;
  for (size_t s = 0; s < pass.subgraphs->size(); ++s) {
    if (!pass.phases.Has((*pass.subgraphs)[s].phase)) continue;
    turn.ended[s] = false;
    ++turn.left;
  }
  changed_.NotifyAll();
}

void Turns::GiveRows(size_t lane) {
  MutexLock lock(mutex_);
  turns_[lane].has_rows = true;
  changed_.NotifyAll();
}

std::optional<Turns::Work> Turns::Next(Stream stream) {
  MutexLock lock(mutex_);
  for (;;) {
    if (!status_.ok()) return std::nullopt;
    if (std::optional<Work> work = Find(stream)) {
      ++running_;
      return work;
    }
    changed_.Wait(lock);
  }
}

std::optional<Turns::Work> Turns::NextUntil(Stream stream, size_t lane) {
  MutexLock lock(mutex_);
  while (status_.ok() && turns_[lane].left > 0) {
    if (std::optional<Work> work = Find(stream)) {
      ++running_;
      return work;
    }
    changed_.Wait(lock);
  }
  return std::nullopt;
}

// The earliest turn that can go on with this stream.
std::optional<Turns::Work> Turns::Find(Stream stream) {
  uint64_t after = 0;
  for (;;) {
    Turn* turn = nullptr;
    for (Turn& other : turns_) {
      const bool later = other.number > after && other.left > 0;
      if (later && (turn == nullptr || other.number < turn->number)) turn = &other;
    }
    if (turn == nullptr) return std::nullopt;
    after = turn->number;
    const uint32_t subgraph = NextOf(*turn, stream);
    if (subgraph == turn->ended.size()) continue;
    if (IsReady(*turn, subgraph)) {
      ++turn->next[static_cast<size_t>(stream)];
      return Work{&turn->pass, turn->number, subgraph};
    }
    if (stream == Stream::kComm) return std::nullopt;
  }
}

uint32_t Turns::NextOf(Turn& turn, Stream stream) {
  const std::vector<Subgraph>& subgraphs = *turn.pass.subgraphs;
  uint32_t& next = turn.next[static_cast<size_t>(stream)];
  while (next < subgraphs.size() &&
         (subgraphs[next].stream != stream || !turn.pass.phases.Has(subgraphs[next].phase))) {
    ++next;
  }
  return next;
}

bool Turns::IsReady(const Turn& turn, uint32_t subgraph) const {
  const Subgraph& next = (*turn.pass.subgraphs)[subgraph];
  if (next.needs_rows && !turn.has_rows) return false;
  if (!overlap_) {
    const auto before = turn.ended.begin() + subgraph;
    if (std::find(turn.ended.begin(), before, false) != before) return false;
  }
  for (const uint32_t w : next.waits) {
    if (!turn.ended[w] || (next.phase == Phase::kJoin && !EndedBefore(turn, w))) return false;
  }
  return true;
}

// In the turns before this one, which run the other slices of the step.
bool Turns::EndedBefore(const Turn& turn, uint32_t subgraph) const {
  for (const Turn& other : turns_) {
    if (other.number < turn.number && other.left > 0 && !other.ended[subgraph]) return false;
  }
  return true;
}

void Turns::End(const Work& work) {
  MutexLock lock(mutex_);
  Turn& turn = turns_[work.pass->lane];
  turn.ended[work.subgraph] = true;
  --turn.left;
  --running_;
  changed_.NotifyAll();
}

void Turns::Fail(Status status) {
  MutexLock lock(mutex_);
  if (status_.ok()) status_ = std::move(status);
  changed_.NotifyAll();
}

Status Turns::WaitFor(size_t lane, uint32_t subgraph, Duration timeout) {
  const TimePoint deadline = SystemClock().Now() + timeout;
  MutexLock lock(mutex_);
  const Turn& turn = turns_[lane];
  while (status_.ok() && !turn.ended[subgraph] && changed_.WaitUntil(lock, deadline)) {
  }
  if (!status_.ok()) return status_;
  return turn.ended[subgraph] ? OkStatus() : Late(timeout);
}

Status Turns::WaitForTurn(size_t lane, Duration timeout) {
  const TimePoint deadline = SystemClock().Now() + timeout;
  MutexLock lock(mutex_);
  const Turn& turn = turns_[lane];
  while (status_.ok() && turn.left > 0 && changed_.WaitUntil(lock, deadline)) {
  }
  if (!status_.ok()) return status_;
  return turn.left == 0 ? OkStatus() : Late(timeout);
}

void Turns::WaitUntilIdle(Duration timeout) {
  const TimePoint deadline = SystemClock().Now() + timeout;
  MutexLock lock(mutex_);
  while (running_ > 0 && changed_.WaitUntil(lock, deadline)) {
  }
}

}  // namespace dt::worker
