// std::mutex and std::condition_variable with annotations for clang's thread safety analysis: a
// field names the mutex that guards it (DT_GUARDED_BY), a function names the mutex that it needs
// (DT_REQUIRES), and `-Wthread-safety` checks both. gcc sees the plain types. abseil's mutex is no
// alternative: Debian builds it without ThreadSanitizer's hooks.
//
// A wait is a loop over its condition, not a predicate, because the analysis does not look into
// lambdas:
//
//   MutexLock lock(mutex_);
//   while (queue_.empty()) changed_.Wait(lock);
#pragma once

#include <condition_variable>
#include <mutex>

#include "common/base/clock.h"

#if defined(__clang__)
#define DT_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define DT_THREAD_ATTRIBUTE(x)
#endif
#define DT_GUARDED_BY(mutex) DT_THREAD_ATTRIBUTE(guarded_by(mutex))
#define DT_REQUIRES(mutex) DT_THREAD_ATTRIBUTE(requires_capability(mutex))

namespace dt {

class DT_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Locks the mutex for its lifetime, except between Unlock() and Lock().
class DT_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) DT_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}
  ~MutexLock() DT_THREAD_ATTRIBUTE(release_capability()) {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() DT_THREAD_ATTRIBUTE(release_capability()) { lock_.unlock(); }
  void Lock() DT_THREAD_ATTRIBUTE(acquire_capability()) { lock_.lock(); }

 private:
  friend class Condition;
  std::unique_lock<std::mutex> lock_;
};

class Condition {
 public:
  // Both waits may return without a reason, so callers test their condition again.
  void Wait(MutexLock& lock) { changed_.wait(lock.lock_); }
  // Returns false when the deadline has passed.
  bool WaitUntil(MutexLock& lock, TimePoint deadline) {
    return changed_.wait_until(lock.lock_, deadline) == std::cv_status::no_timeout;
  }
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace dt
