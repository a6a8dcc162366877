// A bounded FIFO between threads. Every wait has a deadline, and Close() ends all waits. The queue
// keeps the memory of the largest number of items that it ever held. Any thread.
#pragma once

#include <optional>
#include <vector>

#include "common/base/mutex.h"

namespace dt {

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // Returns false when full or closed; `value` is then untouched.
  [[nodiscard]] bool TryPush(T& value) {
    MutexLock lock(mutex_);
    if (closed_ || size() >= capacity_) return false;
    Append(value);
    changed_.NotifyAll();
    return true;
  }
  // Returns false when closed, or still full after `timeout`; `value` is then untouched.
  [[nodiscard]] bool Push(T& value, Duration timeout) {
    const TimePoint deadline = SystemClock().Now() + timeout;
    MutexLock lock(mutex_);
    while (!closed_ && size() >= capacity_ && changed_.WaitUntil(lock, deadline)) {
    }
    if (closed_ || size() >= capacity_) return false;
    Append(value);
    changed_.NotifyAll();
    return true;
  }
  // Returns nothing when closed and empty, or still empty after `timeout`.
  std::optional<T> Pop(Duration timeout) {
    // Without a timeout, skip the wait: it would cost a system call and a timer.
    const bool waits = timeout > Duration::zero();
    const TimePoint deadline = waits ? SystemClock().Now() + timeout : TimePoint();
    MutexLock lock(mutex_);
    while (waits && !closed_ && size() == 0 && changed_.WaitUntil(lock, deadline)) {
    }
    if (size() == 0) return std::nullopt;
    std::optional<T> value(std::move(items_[first_]));
    if (++first_ == items_.size()) Compact();
    changed_.NotifyAll();
    return value;
  }
  // Whether there is a next item and it fulfils the predicate.
  template <class Predicate>
  bool FrontIs(Predicate&& such) const {
    MutexLock lock(mutex_);
    return size() > 0 && such(items_[first_]);
  }
  // Later pushes fail; the items in the queue can still be popped.
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
    changed_.NotifyAll();
  }
  bool closed() const {
    MutexLock lock(mutex_);
    return closed_;
  }

 private:
  size_t size() const DT_REQUIRES(mutex_) { return items_.size() - first_; }
  void Append(T& value) DT_REQUIRES(mutex_) {
    // Compacting only when half of the items are popped keeps it rare.
    if (items_.size() == items_.capacity() && 2 * first_ >= items_.size()) Compact();
    items_.push_back(std::move(value));
  }
  void Compact() DT_REQUIRES(mutex_) {
    items_.erase(items_.begin(), items_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
  }

  const size_t capacity_;
  mutable Mutex mutex_;
  Condition changed_;
  std::vector<T> items_ DT_GUARDED_BY(mutex_);
  size_t first_ DT_GUARDED_BY(mutex_) = 0;  // Items before it have been popped.
  bool closed_ DT_GUARDED_BY(mutex_) = false;
};

}  // namespace dt
