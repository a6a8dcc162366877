// What ranks tell each other when they give up.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

namespace dt::worker {

// A rank that gives up closes its connections, so those that wait for it lose it too. Before that
// it tells them which rank it has lost, and they name that one.
class Farewells {
 public:
  // Begins to listen to every other rank. `context` outlives it.
  Farewells(uint32_t rank, uint32_t ranks, gloo::Context& context);

  // Tells all others that `lost` is lost.
  void Send(uint32_t lost);
  // The rank that is lost, if `peer` cannot be reached: itself, or the one that it has named.
  uint32_t LostBehind(uint32_t peer);

 private:
  using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

  const uint32_t rank_;
  gloo::Context& context_;
  uint32_t told_ = 0;
  std::vector<uint32_t> lost_;  // By rank: what it says.
  std::vector<Buffer> heard_;
};

}  // namespace dt::worker
