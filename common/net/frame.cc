#include "common/net/frame.h"

#include "common/base/check.h"
#include "common/net/frame_pool.h"

namespace dt {

Frame Frame::Of(size_t size) { return FramePool::Private().Make(size); }

Frame Frame::CopyOf(std::span<const std::byte> bytes) { return FramePool::Private().CopyOf(bytes); }

Frame Frame::Of(std::span<std::byte> bytes, std::shared_ptr<void> owner) {
  DT_CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % 8 == 0);
  Frame frame;
  frame.bytes_ = bytes;
  frame.owner_ = std::move(owner);
  return frame;
}

Frame Frame::OfPeer(std::span<std::byte> bytes, std::shared_ptr<void> owner) {
  Frame frame = Of(bytes, std::move(owner));
  frame.of_peer_ = true;
  return frame;
}

Frame Frame::Settled(Frame frame) {
  return frame.of_peer_ ? CopyOf(std::as_const(frame).bytes()) : frame;
}

size_t BytesIn(const Frames& message) {
  size_t bytes = 0;
  for (const Frame& frame : message) bytes += frame.size();
  return bytes;
}

}  // namespace dt
