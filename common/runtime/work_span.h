// Threads say what kind of work they do, so that a profile can tell where the time goes
// (work_profile.h). Where nobody asks, it costs a few instructions.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace dt {

// A kind of work. Must exist as long as the process, because a profile may still name it.
struct WorkKind {
  explicit constexpr WorkKind(std::string_view work_name) : name(work_name) {}

  // Counts what the work had to move and to compute, if a profile wants to know. Any thread.
  void Count(uint64_t bytes_moved, uint64_t operations = 0) {
    if (!counts.load(std::memory_order_relaxed)) return;
    if (!listed_.exchange(true)) {
      next_ = first_.load();
      while (!first_.compare_exchange_weak(next_, this)) {
      }
    }
    bytes.fetch_add(bytes_moved, std::memory_order_relaxed);
    flops.fetch_add(operations, std::memory_order_relaxed);
  }
  // Sets all counts of all kinds to zero. REQUIRES: nothing is counted meanwhile.
  static void ForgetCounts() {
    for (WorkKind* kind = first_; kind != nullptr; kind = kind->next_) {
      kind->bytes = kind->flops = 0;
    }
  }

  const std::string_view name;
  std::atomic<uint64_t> bytes = 0, flops = 0;
  // True while a profile is taken.
  static inline constinit std::atomic<bool> counts = false;

 private:
  // All kinds that have counted.
  static inline constinit std::atomic<WorkKind*> first_ = nullptr;
  std::atomic<bool> listed_ = false;
  WorkKind* next_ = nullptr;
};

// The work of a thread that has not named any.
inline constinit WorkKind kUnnamedWork{"other"};

// Until its end, this thread does this work; then again what it did before.
class WorkSpan {
 public:
  explicit WorkSpan(WorkKind& work) : before_(current()) { Set(work); }
  ~WorkSpan() { Set(before_); }
  WorkSpan(const WorkSpan&) = delete;
  WorkSpan& operator=(const WorkSpan&) = delete;

  // For threads in no span: sets what they do outside of spans.
  static void Set(WorkKind& work) { current_.store(&work, std::memory_order_relaxed); }
  static WorkKind& current() { return *current_.load(std::memory_order_relaxed); }

 private:
  // Read by the handler of a signal, on the same thread.
  static inline constinit thread_local std::atomic<WorkKind*> current_ = &kUnnamedWork;

  WorkKind& before_;
};

}  // namespace dt
