// Every collective operation, to be tried with peers that fail.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker/collective/communicator.h"

namespace dt::worker {

template <class T>
std::span<const std::byte> Bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}
template <class T>
std::span<std::byte> Writable(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

using Operation = std::function<Status(Communicator&, const CollectiveCall&)>;
struct NamedOperation {
  std::string name;
  Operation run;
};

inline std::vector<NamedOperation> Operations(uint32_t ranks) {
  const auto floats = std::make_shared<std::vector<float>>(1000 * ranks, 1.0f);
  const auto sizes = std::make_shared<std::vector<size_t>>(ranks, 1000 * sizeof(float));
  const auto in = [floats] { return Bytes(*floats); };
  const auto part = [in] { return in().first(1000 * sizeof(float)); };
  using Call = CollectiveCall;
  return {
      {"all-reduce",
       [=](Communicator& c, const Call& call) {
         std::vector<float> out(floats->size());
         return c.AllReduce(call, {}, in(), Writable(out));
       }},
      {"all-reduce",
       [=](Communicator& c, const Call& call) {
         std::vector<float> out(10);
         return c.AllReduce(call, {}, in().first(10 * sizeof(float)), Writable(out));
       }},
      {"reduce-scatter",
       [=](Communicator& c, const Call& call) {
         std::vector<float> out(1000);
         return c.ReduceScatter(call, {}, in(), *sizes, Writable(out));
       }},
      {"all-gather",
       [=](Communicator& c, const Call& call) {
         std::vector<float> out(floats->size());
         return c.AllGather(call, part(), *sizes, Writable(out));
       }},
      {"broadcast",
       [=](Communicator& c, const Call& call) {
         std::vector<float> out(1000);
         return c.Broadcast(call, 1, Writable(out));
       }},
      {"all-to-all",
       [=](Communicator& c, const Call& call) {
         std::vector<float> out(floats->size());
         return c.AllToAll(call, in(), {*sizes, *sizes}, Writable(out));
       }},
      {"sum of slices",
       [=](Communicator& c, const Call& call) {
         std::vector<float> out(floats->size());
         const std::vector<uint32_t> owner = {1, 0, 1};
         const std::vector<std::span<const std::byte>> bytes(3, in());
         return c.ReduceTerms(call, {}, {owner, bytes}, Writable(out));
       }},
      {"barrier", [=](Communicator& c, const Call& call) { return c.Barrier(call); }},
  };
}

}  // namespace dt::worker
