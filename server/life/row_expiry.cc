#include "server/life/row_expiry.h"

#include <algorithm>

namespace dt::server {
namespace {

// Rows expire at most expiry_time / kMarksPerLife late.
constexpr int kMarksPerLife = 64;

}  // namespace

void RowExpiry::MoveClock(Step clock) {
  if (spec_.freeze) return;
  if (spec_.expiry_steps != 0) {
    const Step before = clock > spec_.expiry_steps ? clock - spec_.expiry_steps : 0;
    expire_before_ = std::max(expire_before_, before);
  }
  if (!timed()) return;
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

void RowExpiry::Reset(Step clock) {
  expire_before_ = 0;
  running_ = {};
  marks_.clear();
  MoveClock(clock);
}

void RowExpiry::Restore(Step expire_before, Duration running, std::span<const Mark> marks) {
  expire_before_ = std::max(expire_before_, expire_before);
  if (!timed() || marks.empty()) return;
  running_ = running;
  marks_.assign(marks.begin(), marks.end());
}

}  // namespace dt::server
