// Ranks on threads of one process, each with a card: one made of host threads, or a real one.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/cuda_on_host/cuda_on_host.h"
#include "test/support/hash_rendezvous.h"
#include "worker/collective/communicator_nccl.h"

namespace dt::worker {

// Gives host memory to a communicator of cards, by copies.
class StagedCommunicator : public Communicator {
 public:
  StagedCommunicator(CudaAccelerator& card, std::unique_ptr<DeviceCommunicator> to)
      : card_(card), queue_(*card.NewQueue()), event_(*card.NewEvent()), to_(std::move(to)) {}

  uint32_t rank() const override { return to_->rank(); }
  bool broken() const override { return to_->broken(); }

  Status AllReduce(const CollectiveCall& call, const Reduce& reduce, std::span<const std::byte> in,
                   std::span<std::byte> out) override {
    return Staged(in, out, [&](auto from, auto result) {
      return to_->AllReduce(call, reduce, from, result);
    });
  }
  Status ReduceScatter(const CollectiveCall& call, const Reduce& reduce,
                       std::span<const std::byte> in, std::span<const size_t> sizes,
                       std::span<std::byte> out) override {
    return Staged(in, out, [&](auto from, auto result) {
      return to_->ReduceScatter(call, reduce, from, sizes, result);
    });
  }
  Status ReduceTerms(const CollectiveCall& call, const Reduce& reduce, const Terms& terms,
                     std::span<std::byte> out) override {
    return to_->ReduceTerms(call, reduce, terms, out);
  }
  Status AllGather(const CollectiveCall& call, std::span<const std::byte> in,
                   std::span<const size_t> sizes, std::span<std::byte> out) override {
    return Staged(
        in, out, [&](auto from, auto result) { return to_->AllGather(call, from, sizes, result); });
  }
  Status Broadcast(const CollectiveCall& call, uint32_t root, std::span<std::byte> bytes) override {
    return Staged(bytes, bytes, [&](auto from, auto result) {
      DT_TRY_STATUS(queue_->CopyOnDevice(result.data(), from.data(), from.size()));
      DT_TRY_STATUS(Await());
      return to_->Broadcast(call, root, result);
    });
  }
  Status AllToAll(const CollectiveCall& call, std::span<const std::byte> in, const Parts& parts,
                  std::span<std::byte> out) override {
    return Staged(in, out,
                  [&](auto from, auto result) { return to_->AllToAll(call, from, parts, result); });
  }
  // REQUIRES: at most one message in each direction.
  Status NeighborExchange(const CollectiveCall& call, std::span<const Outgoing> send,
                          std::span<const Incoming> receive) override {
    const auto in = send.empty() ? std::span<const std::byte>() : send[0].bytes;
    const auto out = receive.empty() ? std::span<std::byte>() : receive[0].bytes;
    return Staged(in, out, [&](auto from, auto result) {
      std::vector<Outgoing> o;
      std::vector<Incoming> i;
      if (!send.empty()) o.push_back({send[0].rank, from});
      if (!receive.empty()) i.push_back({receive[0].rank, result});
      return to_->NeighborExchange(call, o, i);
    });
  }
  Status Barrier(const CollectiveCall& call) override { return to_->Barrier(call); }

 private:
  template <class Run>
  Status Staged(std::span<const std::byte> in, std::span<std::byte> out, const Run& run) {
    DT_TRY(const DeviceMemory from, DeviceMemory::Make(card_, in.size()));
    DT_TRY(const DeviceMemory result, DeviceMemory::Make(card_, out.size()));
    DT_TRY_STATUS(queue_->CopyToDevice(from.data(), in.data(), in.size()));
    DT_TRY_STATUS(Await());
    DT_TRY_STATUS(run(std::span<const std::byte>(from.data(), in.size()),
                      std::span<std::byte>(result.data(), out.size())));
    return queue_->CopyToHost(out.data(), result.data(), out.size());
  }
  Status Await() {
    DT_TRY_STATUS(queue_->Record(*event_));
    return event_->Wait(seconds(20));
  }

  CudaAccelerator& card_;
  const std::unique_ptr<DeviceQueue> queue_;
  const std::unique_ptr<DeviceEvent> event_;
  const std::unique_ptr<DeviceCommunicator> to_;
};

struct CardRanks {
  uint32_t ranks = 2;
  bool real = false;
  std::vector<RankGroup> groups = {};
  MeshLimits limits = {};
};

// Runs `body` with every rank's communicator on its own thread. REQUIRES: if real, there are so
// many cards.
inline void OnCards(const CardRanks& c, const std::function<void(Communicator&)>& body) {
  HashRendezvous rendezvous;
  std::vector<std::jthread> threads;
  for (uint32_t r = 0; r < c.ranks; ++r) {
    threads.emplace_back([&, r] {
      std::unique_ptr<CudaAccelerator> card;
      if (c.real) {
        const Result<CudaLibrary> library = CudaLibrary::OpenForCards();
        ASSERT_TRUE(library.ok()) << library.status();
        Result<std::unique_ptr<CudaAccelerator>> opened =
            CudaAccelerator::Open(*library, static_cast<int32_t>(r));
        ASSERT_TRUE(opened.ok()) << opened.status();
        card = *std::move(opened);
      } else {
        card = test::OpenCardOnHost(static_cast<int32_t>(r) + 1);
      }
      auto connected = ConnectNccl(
          c.groups,
          {.card = *card, .rank = r, .rendezvous = rendezvous, .prefix = "t", .limits = c.limits});
      ASSERT_TRUE(connected.ok()) << connected.status();
      StagedCommunicator staged(*card, *std::move(connected));
      body(staged);
    });
  }
}

inline bool HasRealCards(int count) {
  const Result<CudaLibrary> library = CudaLibrary::OpenForCards();
  if (!library.ok()) return false;
  const Result<int> cards = library->CountDevices();
  return cards.ok() && *cards >= count && library->table().nccl.load() == nullptr;
}

}  // namespace dt::worker
