// One part of a message: a block of bytes that is sent or was received. A copy of a Frame shares
// the bytes. Their owner is destroyed, on any thread, when the last copy has been sent or read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "common/base/pool_allocator.h"

namespace dt {

class Frame {
 public:
  Frame() = default;
  // Memory of this process alone, from FramePool::Private. For large frames that may be lent to a
  // peer, Network::frames is better.
  static Frame Of(size_t size);
  static Frame CopyOf(std::span<const std::byte> bytes);
  // A frame over memory that stays valid until `owner` is destroyed. REQUIRES: 8-byte aligned.
  static Frame Of(std::span<std::byte> bytes, std::shared_ptr<void> owner);
  // Like Of, for memory shared with a peer, which may still write to it.
  static Frame OfPeer(std::span<std::byte> bytes, std::shared_ptr<void> owner);
  // Returns the frame, or a copy if a peer could still change it. For bytes that are checked before
  // they are used.
  static Frame Settled(Frame frame);

  size_t size() const { return bytes_.size(); }
  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  // The frame as an array. REQUIRES: size() is a multiple of sizeof(T).
  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

 private:
  std::span<std::byte> bytes_;
  std::shared_ptr<void> owner_;
  bool of_peer_ = false;
};

// The parts of one message, in order.
using Frames = PooledVector<Frame>;
size_t BytesIn(const Frames& message);

}  // namespace dt
