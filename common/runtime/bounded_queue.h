// A bounded FIFO between threads. Every wait has a deadline; Close() ends all of them. Any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "common/base/clock.h"

namespace dt {

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // False when full or closed; `value` is then untouched.
  [[nodiscard]] bool TryPush(T& value) {
    std::lock_guard lock(mutex_);
    if (closed_ || items_.size() >= capacity_) return false;
    items_.push_back(std::move(value));
    changed_.notify_all();
    return true;
  }
  // False when closed, or still full after `patience`; `value` is then untouched.
  [[nodiscard]] bool Push(T& value, Duration patience) {
    std::unique_lock lock(mutex_);
    const bool room =
        changed_.wait_for(lock, patience, [&] { return closed_ || items_.size() < capacity_; });
    if (!room || closed_) return false;
    items_.push_back(std::move(value));
    changed_.notify_all();
    return true;
  }
  // Nothing when closed and empty, or still empty after `patience`.
  std::optional<T> Pop(Duration patience) {
    std::unique_lock lock(mutex_);
    // A wait for no time would still be a system call, and a timer set.
    if (patience > Duration::zero()) {
      changed_.wait_for(lock, patience, [&] { return closed_ || !items_.empty(); });
    }
    if (items_.empty()) return std::nullopt;
    std::optional<T> value(std::move(items_.front()));
    items_.pop_front();
    changed_.notify_all();
    return value;
  }
  // True if the next item to be popped is there, and such.
  template <class Predicate>
  bool FrontIs(Predicate&& such) const {
    std::lock_guard lock(mutex_);
    return !items_.empty() && such(items_.front());
  }
  // Pushes fail from now on; what is inside can still be popped.
  void Close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace dt
