#include "server/life/row_life.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"

namespace dt::server {
namespace {

// How finely hours are known: rows go at most this share of expiry_time late.
constexpr int kMarksPerLife = 64;

constexpr uint64_t kMagic = 0x314546494c5444ull;  // "DTLIFE1"

// A state: these, the sketch, the marks. Little-endian.
struct Fields {
  uint64_t magic, sketch_bytes, running_ns, expire_before, marks;
};

Result<Fields> FieldsOf(std::string_view state, size_t mark_bytes) {
  Fields fields;
  if (state.size() < sizeof(fields)) return Malformed("it has {} bytes", state.size());
  std::memcpy(&fields, state.data(), sizeof(fields));
  const uint64_t rest = state.size() - sizeof(fields);
  if (fields.magic != kMagic || fields.sketch_bytes > rest || fields.marks > rest ||
      rest != fields.sketch_bytes + fields.marks * mark_bytes) {
    return Malformed("it does not have the form that it should have");
  }
  return fields;
}

}  // namespace

std::optional<Step> LastPushOf(std::span<const std::byte> record) {
  Step step = 0;
  if (record.size() < sizeof(step)) return std::nullopt;
  std::memcpy(&step, record.last(sizeof(step)).data(), sizeof(step));
  return step;
}

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
  const Fields fields{kMagic, sketch.size(), static_cast<uint64_t>(running_.count()),
                      expire_before_, marks_.size()};
  std::string state(reinterpret_cast<const char*>(&fields), sizeof(fields));
  state.append(reinterpret_cast<const char*>(sketch.data()), sketch.size());
  for (const Mark& mark : marks_) {
    state.append(reinterpret_cast<const char*>(&mark), sizeof(mark));
  }
  return state;
}

Result<Step> RowLife::ExpireBeforeOf(std::string_view state) {
  if (state.empty()) return Step{0};
  DT_TRY(const Fields fields, FieldsOf(state, sizeof(Mark)));
  return fields.expire_before;
}

Result<bool> RowLife::Restore(std::string_view state) {
  DT_TRY(const Fields fields, FieldsOf(state, sizeof(Mark)));
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
