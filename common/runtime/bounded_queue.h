// A bounded FIFO between threads. Every wait has a deadline; Close() ends all of them. Keeps the
// memory of the most items that it ever held. Any thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "common/base/clock.h"

namespace dt {

template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // False when full or closed; `value` is then untouched.
  [[nodiscard]] bool TryPush(T& value) {
    std::lock_guard lock(mutex_);
    if (closed_ || size() >= capacity_) return false;
    Append(value);
    changed_.notify_all();
    return true;
  }
  // False when closed, or still full after `patience`; `value` is then untouched.
  [[nodiscard]] bool Push(T& value, Duration patience) {
    std::unique_lock lock(mutex_);
    const bool room =
        changed_.wait_for(lock, patience, [&] { return closed_ || size() < capacity_; });
    if (!room || closed_) return false;
    Append(value);
    changed_.notify_all();
    return true;
  }
  // Nothing when closed and empty, or still empty after `patience`.
  std::optional<T> Pop(Duration patience) {
    std::unique_lock lock(mutex_);
    // A wait for no time would still be a system call, and a timer set.
    if (patience > Duration::zero()) {
      changed_.wait_for(lock, patience, [&] { return closed_ || size() > 0; });
    }
    if (size() == 0) return std::nullopt;
    std::optional<T> value(std::move(items_[first_]));
    if (++first_ == items_.size()) Compact();
    changed_.notify_all();
    return value;
  }
  // True if the next item to be popped is there, and such.
  template <class Predicate>
  bool FrontIs(Predicate&& such) const {
    std::lock_guard lock(mutex_);
    return size() > 0 && such(items_[first_]);
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
  size_t size() const { return items_.size() - first_; }
  void Append(T& value) {
    // Twice the room that is needed, so that this is rare.
    if (items_.size() == items_.capacity() && 2 * first_ >= items_.size()) Compact();
    items_.push_back(std::move(value));
  }
  void Compact() {
    items_.erase(items_.begin(), items_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> items_;
  size_t first_ = 0;  // Those before it have been popped.
  bool closed_ = false;
};

}  // namespace dt
