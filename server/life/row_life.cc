#include "server/life/row_life.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/rows/row_record.h"

namespace dt::server {
namespace {

// How finely hours are known: rows go at most this share of expiry_time late.
constexpr int kMarksPerLife = 64;

}  // namespace

RowLife::RowLife(const LifeSpec& spec, uint64_t salt) : spec_(spec) {
  DT_CHECK(spec.admission_pushes <= CountMinSketch::kCountMax + 1);
  if (!admits_all()) sketch_ = CountMinSketch(spec.sketch_bytes, salt);
}

bool RowLife::Admit(Key key) {
  if (admits_all()) return true;
  const uint32_t pushes = sketch_.Estimate(key) + 1;
  if (pushes >= spec_.admission_pushes) return true;
  pending_.push_back({key, pushes});
  return false;
}

void RowLife::Settle() {
  refused_ += pending_.size();
  for (const Refused& refused : pending_) sketch_.RaiseTo(refused.key, refused.count);
  pending_.clear();
}

void RowLife::MoveClock(Step clock) {
  if (spec_.freeze) return;
  if (spec_.expiry_steps != 0) {
    const Step before = clock > spec_.expiry_steps ? clock - spec_.expiry_steps : 0;
    expire_before_ = std::max(expire_before_, before);
  }
  if (spec_.expiry_time <= Duration::zero()) return;
  const auto now = static_cast<uint64_t>(running_.count());
  const auto life = static_cast<uint64_t>(spec_.expiry_time.count());
  while (!marks_.empty() && marks_.front().running_ns + life <= now) {
    expire_before_ = std::max(expire_before_, marks_.front().clock);
    marks_.pop_front();
  }
  if (marks_.empty() || marks_.back().running_ns + life / kMarksPerLife <= now) {
    marks_.push_back({now, clock});
  }
}

void RowLife::Reset(Step clock) {
  sketch_.Clear();
  pending_.clear();
  expire_before_ = 0;
  running_ = {};
  marks_.clear();
  MoveClock(clock);
}

std::string RowLife::State() const {
  const bool timed = spec_.expiry_time > Duration::zero();
  if (admits_all() && !timed && expire_before_ == 0) return {};
  const std::span<const std::byte> sketch = sketch_.bytes();
  const LifeState fields{.sketch_bytes = sketch.size(),
                         .running_ns = static_cast<uint64_t>(running_.count()),
                         .expire_before = expire_before_,
                         .marks = marks_.size()};
  std::string state(reinterpret_cast<const char*>(&fields), sizeof(fields));
  state.append(reinterpret_cast<const char*>(sketch.data()), sketch.size());
  for (const Mark& mark : marks_) {
    state.append(reinterpret_cast<const char*>(&mark), sizeof(mark));
  }
  return state;
}

Result<bool> RowLife::Restore(std::string_view state) {
  static_assert(sizeof(Mark) == LifeState::kMarkBytes);
  DT_TRY(const LifeState fields, LifeStateOf(state));
  expire_before_ = std::max(expire_before_, fields.expire_before);
  state.remove_prefix(sizeof(fields));
  const std::span<std::byte> sketch = sketch_.bytes();
  const bool same_sketch = sketch.size() == fields.sketch_bytes;
  if (same_sketch && !sketch.empty()) std::memcpy(sketch.data(), state.data(), sketch.size());
  if (spec_.expiry_time > Duration::zero() && fields.marks > 0) {
    running_ = Duration(static_cast<Duration::rep>(fields.running_ns));
    marks_.assign(fields.marks, Mark());
    state.remove_prefix(fields.sketch_bytes);
    for (Mark& mark : marks_) {
      std::memcpy(&mark, state.data(), sizeof(mark));
      state.remove_prefix(sizeof(mark));
    }
  }
  return same_sketch || admits_all();
}

}  // namespace dt::server
