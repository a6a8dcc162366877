#include "worker/collective/communicator_nccl.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <map>
#include <numeric>

#include <fmt/ranges.h>

#include "common/base/check.h"
#include "common/base/pause.h"

namespace dt::worker {
namespace {

constexpr Duration kEventLook = milliseconds(20);  // Between two looks for errors.
constexpr Duration kFarewell = seconds(2);         // For others to finish.

// Ids travel as text.
std::string HexOfId(const NcclId& id) {
  std::string text;
  for (const char byte : id.bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return text;
}
Result<NcclId> IdOfHex(std::string_view text) {
  NcclId id;
  if (text.size() != 2 * sizeof id.bytes) return Internal("an id of NCCL has no 128 bytes");
  for (size_t i = 0; i < sizeof id.bytes; ++i) {
    uint8_t byte = 0;
    const char* const digits = text.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
      return Internal("an id of NCCL has no 128 bytes");
    }
    id.bytes[i] = static_cast<char>(byte);
  }
  return id;
}

// Joins groups, and leaves them at the end.
class Groups {
 public:
  explicit Groups(const NcclOptions& options)
      : options_(options), nccl_(options.card.table().nccl) {}
  ~Groups() { Leave(true); }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  Status Join(const RankGroup& group) {
    if (group.size() < 2) return OkStatus();
    const std::string key =
        fmt::format("{}/nccl/{}/{}", options_.prefix, group.id, group.ranks.front());
    NcclId id;
    if (group.ranks.front() == options_.rank) {
      DT_TRY_STATUS(Checked(nccl_.make_id(&id)));
      DT_TRY_STATUS(options_.rendezvous.Put(key, HexOfId(id)));
    } else {
      DT_TRY(const std::string text, options_.rendezvous.Get(key, options_.limits.timeout));
      DT_TRY(id, IdOfHex(text));
    }
    NcclComm* comm = nullptr;
    DT_TRY_STATUS(
        Checked(nccl_.join(options_.card.info().index, static_cast<int32_t>(group.size()),
                           static_cast<int32_t>(group.PositionOf(options_.rank)), &id, &comm)));
    comms_[group.id] = comm;
    return WaitFor(comm);
  }

  // Nullptr: the group has not been joined.
  NcclComm* Find(uint32_t id) const {
    const auto found = comms_.find(id);
    return found == comms_.end() ? nullptr : found->second;
  }

  // Until the host's part of what was begun has ended.
  Status WaitFor(NcclComm* comm) const {
    const TimePoint deadline = SystemClock().Now() + options_.limits.timeout;
    Status status;
    const auto ended = [&] {
      bool busy = false;
      status = Checked(nccl_.state(comm, &busy));
      if (status.ok() && busy) status = Interrupted();
      return !status.ok() || !busy;
    };
    if (PollUntil(deadline, milliseconds(1), ended)) return status;
    return Silent();
  }

  // Until the event has happened. Looks for errors of the communicator meanwhile.
  Status WaitFor(NcclComm* comm, DeviceEvent& event) const {
    const TimePoint deadline = SystemClock().Now() + options_.limits.timeout;
    for (;;) {
      const Status reached = event.Wait(kEventLook);
      // Work that was given up ends, too.
      bool busy = false;
      if (comm != nullptr) DT_TRY_STATUS(Checked(nccl_.state(comm, &busy)));
      if (reached.code() != StatusCode::kDeadlineExceeded) return reached;
      DT_TRY_STATUS(Interrupted());
      if (SystemClock().Now() >= deadline) return Silent();
    }
  }

  static Status Checked(CudaError error) {
    return error == nullptr ? OkStatus() : Unavailable("NCCL failed: {}", error);
  }

  // `politely`: others may still need this rank to finish their calls.
  void Leave(bool politely) {
    for (const auto& [id, comm] : comms_) {
      politely = politely && nccl_.finish(comm) == nullptr;
      bool busy = true;
      const auto finished = [&, of = comm] { return nccl_.state(of, &busy) != nullptr || !busy; };
      if (politely) PollUntil(SystemClock().Now() + kFarewell, milliseconds(1), finished);
      politely && !busy ? nccl_.free(comm) : nccl_.abort(comm);
    }
    comms_.clear();
  }

 private:
  Status Interrupted() const {
    return options_.limits.interrupted ? options_.limits.interrupted() : OkStatus();
  }
  Status Silent() const {
    return Timeout("a peer was silent for {} s",
                   std::chrono::duration<double>(options_.limits.timeout).count());
  }

  const NcclOptions options_;
  const NcclTable nccl_;
  std::map<uint32_t, NcclComm*> comms_;
};

// part(m): the m-th part of the bytes.
template <class Byte>
auto PartsOf(std::span<Byte> bytes, std::span<const size_t> sizes) {
  return [=](uint32_t m) {
    const size_t begin = std::accumulate(sizes.begin(), sizes.begin() + m, size_t{0});
    return bytes.subspan(begin, sizes[m]);
  };
}

class NcclCommunicator : public DeviceCommunicator {
 public:
  explicit NcclCommunicator(const NcclOptions& options)
      : rank_(options.rank),
        card_(options.card),
        nccl_(options.card.table().nccl),
        groups_(options) {}

  Status Open(std::span<const RankGroup> groups) {
    if (nccl_.load == nullptr) return Unavailable("the CUDA library has no NCCL");
    DT_TRY_STATUS(Groups::Checked(nccl_.load()));
    DT_TRY(std::unique_ptr<DeviceQueue> queue, card_.NewQueue());
    queue_.reset(dynamic_cast<CudaQueue*>(queue.release()));
    DT_CHECK(queue_ != nullptr);
    DT_TRY(done_, card_.NewEvent());
    DT_TRY(one_, DeviceMemory::Make(card_, sizeof(float)));
    for (const RankGroup& group : groups) {
      if (std::ranges::count(group.ranks, rank_) == 0) continue;
      DT_TRY_STATUS(Prefixed(groups_.Join(group), fmt::format("rank {}: joining group [{}]", rank_,
                                                              fmt::join(group.ranks, ", "))));
    }
    return OkStatus();
  }

  uint32_t rank() const override { return rank_; }
  bool broken() const override { return broken_; }

  Status ReduceTerms(const CollectiveCall&, const Reduce&, const Terms&,
                     std::span<std::byte>) override {
    return NotYet("sums of several slices on a card");
  }

  Status AllReduce(const CollectiveCall& call, const Reduce& reduce, std::span<const std::byte> in,
                   std::span<std::byte> out) override {
    return Run(call, "all-reduce", [&](NcclComm* comm) -> CudaError {
      if (comm == nullptr) return Copy(in, out);
      return nccl_.all_reduce(comm, ReduceOf(reduce, in.data(), out.data(), in.size()), stream());
    });
  }

  Status ReduceScatter(const CollectiveCall& call, const Reduce& reduce,
                       std::span<const std::byte> in, std::span<const size_t> sizes,
                       std::span<std::byte> out) override {
    return Run(call, "reduce-scatter", [&](NcclComm* comm) -> CudaError {
      if (comm == nullptr) return Copy(in, out);
      if (AreEqual(sizes)) {
        return nccl_.reduce_scatter(comm, ReduceOf(reduce, in.data(), out.data(), out.size()),
                                    stream());
      }
      return Grouped([&]() -> CudaError {
        const std::byte* part = in.data();
        for (int32_t m = 0; m < std::ssize(sizes); part += sizes[static_cast<size_t>(m++)]) {
          const size_t bytes = sizes[static_cast<size_t>(m)];
          if (bytes == 0) continue;
          if (CudaError e =
                  nccl_.reduce(comm, ReduceOf(reduce, part, out.data(), bytes), m, stream())) {
            return e;
          }
        }
        return nullptr;
      });
    });
  }

  Status AllGather(const CollectiveCall& call, std::span<const std::byte> in,
                   std::span<const size_t> sizes, std::span<std::byte> out) override {
    return Run(call, "all-gather", [&](NcclComm* comm) -> CudaError {
      if (comm == nullptr) return Copy(in, out);
      if (AreEqual(sizes) && in.size() % sizeof(uint32_t) == 0) {
        return nccl_.all_gather(comm, in.data(), out.data(), Words(in.size()), stream());
      }
      return Exchanged(
          call, comm, [&](uint32_t) { return in; }, PartsOf(out, sizes));
    });
  }

  Status Broadcast(const CollectiveCall& call, uint32_t root, std::span<std::byte> bytes) override {
    return Run(call, "broadcast", [&](NcclComm* comm) -> CudaError {
      if (comm == nullptr) return nullptr;
      const bool sends = call.group.PositionOf(rank_) == root;
      const auto send = [&](uint32_t) { return sends ? bytes : std::span<std::byte>(); };
      const auto receive = [&](uint32_t m) {
        return !sends && m == root ? bytes : std::span<std::byte>();
      };
      return Exchanged(call, comm, send, receive);
    });
  }

  Status AllToAll(const CollectiveCall& call, std::span<const std::byte> in, const Parts& parts,
                  std::span<std::byte> out) override {
    return Run(call, "all-to-all", [&](NcclComm* comm) -> CudaError {
      if (comm == nullptr) return Copy(in, out);
      return Exchanged(call, comm, PartsOf(in, parts.send), PartsOf(out, parts.receive));
    });
  }

  Status NeighborExchange(const CollectiveCall& call, std::span<const Outgoing> send,
                          std::span<const Incoming> receive) override {
    return Run(call, "exchange with neighbours", [&](NcclComm* comm) -> CudaError {
      if (comm == nullptr) return "a group of one has no neighbours";
      return Grouped([&]() -> CudaError {
        for (const Outgoing& o : send) {
          if (CudaError e = Send(comm, o.bytes, o.rank)) return e;
        }
        for (const Incoming& i : receive) {
          if (CudaError e = Receive(comm, i.bytes, i.rank)) return e;
        }
        return nullptr;
      });
    });
  }

  Status Barrier(const CollectiveCall& call) override {
    return AllReduce(call, {}, {one_.data(), sizeof(float)}, {one_.data(), sizeof(float)});
  }

  Status CopyRows(const CudaRows& copy) override {
    return queue_->Checked(card_.table().copy_rows_on_device(stream(), copy), "copying rows");
  }
  Status Settle(const CollectiveCall& call) override {
    DT_TRY_STATUS(queue_->Record(*done_));
    return About(call, "copies", groups_.WaitFor(nullptr, *done_));
  }
  Result<std::byte*> Scratch(size_t bytes) override {
    if (bytes > scratch_.bytes()) {
      scratch_ = DeviceMemory();
      DT_TRY(scratch_, DeviceMemory::Make(card_, bytes + bytes / 8));
    }
    return scratch_.data();
  }

 private:
  CudaStream* stream() const { return queue_->stream(); }
  // `bytes`: of the result.
  static NcclReduce ReduceOf(const Reduce& reduce, const std::byte* in, std::byte* out,
                             size_t bytes) {
    const NcclCount count{bytes / SizeOf(reduce.dtype), static_cast<uint8_t>(reduce.dtype)};
    return {in, out, count, reduce.how == Reduction::kMax};
  }
  static NcclCount Words(size_t bytes) {
    return {bytes / sizeof(uint32_t), static_cast<uint8_t>(DType::kU32)};
  }
  static bool AreEqual(std::span<const size_t> sizes) {
    return std::ranges::adjacent_find(sizes, std::not_equal_to<>()) == sizes.end();
  }
  CudaError Copy(std::span<const std::byte> in, std::span<std::byte> out) const {
    if (in.data() == out.data() || in.empty()) return nullptr;
    return card_.table().copy_on_device(stream(), out.data(), in.data(), in.size());
  }
  CudaError Send(NcclComm* comm, std::span<const std::byte> bytes, uint32_t to) const {
    if (bytes.empty()) return nullptr;
    return nccl_.send(comm, bytes.data(), bytes.size(), static_cast<int32_t>(to), stream());
  }
  CudaError Receive(NcclComm* comm, std::span<std::byte> bytes, uint32_t from) const {
    if (bytes.empty()) return nullptr;
    return nccl_.receive(comm, bytes.data(), bytes.size(), static_cast<int32_t>(from), stream());
  }

  // One call of all that `give` calls. It is ended after an error too.
  template <class Give>
  CudaError Grouped(const Give& give) const {
    if (CudaError e = nccl_.begin_group()) return e;
    const CudaError given = give();
    const CudaError ended = nccl_.end_group();
    return given != nullptr ? given : ended;
  }

  // send(m) to every member m, and receive(m) from it; this member's own part is copied.
  template <class SendPart, class ReceivePart>
  CudaError Exchanged(const CollectiveCall& call, NcclComm* comm, const SendPart& send,
                      const ReceivePart& receive) const {
    const uint32_t me = call.group.PositionOf(rank_);
    if (CudaError e =
            Copy(send(me).first(std::min(send(me).size(), receive(me).size())), receive(me))) {
      return e;
    }
    return Grouped([&]() -> CudaError {
      for (uint32_t m = 0; m < call.group.size(); ++m) {
        if (m == me) continue;
        if (CudaError e = Send(comm, send(m), m)) return e;
        if (CudaError e = Receive(comm, receive(m), m)) return e;
      }
      return nullptr;
    });
  }

  // give(communicator of the group, or nullptr for a group of one), and waits for the result. After
  // an error this rank leaves all groups, so that others do not wait for it.
  template <class Give>
  Status Run(const CollectiveCall& call, std::string_view kind, const Give& give) {
    NcclComm* const comm = groups_.Find(call.group.id);
    if (broken_ || (comm == nullptr && call.group.size() > 1)) {
      return About(call, kind, Unavailable("the group has no communicator"));
    }
    Status status = Groups::Checked(give(comm));
    if (status.ok() && comm != nullptr) status = groups_.WaitFor(comm);
    if (status.ok()) status = queue_->Record(*done_);
    if (status.ok()) status = groups_.WaitFor(comm, *done_);
    if (status.ok()) return status;
    if (status.code() != StatusCode::kCancelled) broken_ = true;
    groups_.Leave(false);
    return About(call, kind, std::move(status));
  }

  // Text is made for errors only.
  Status About(const CollectiveCall& call, std::string_view kind, Status status) const {
    if (status.ok()) return status;
    return Prefixed(std::move(status),
                    fmt::format("rank {}: step {}, {} of \"{}\" in group [{}]", rank_, call.step,
                                kind, call.name, fmt::join(call.group.ranks, ", ")));
  }

  const uint32_t rank_;
  CudaAccelerator& card_;
  const NcclTable nccl_;
  std::atomic<bool> broken_ = false;
  DeviceMemory one_, scratch_;
  std::unique_ptr<DeviceEvent> done_;
  // Work on the queue ends early when the groups are left, which is before it is destroyed.
  std::unique_ptr<CudaQueue> queue_;
  Groups groups_;
};

}  // namespace

Result<std::unique_ptr<DeviceCommunicator>> ConnectNccl(std::span<const RankGroup> groups,
                                                        const NcclOptions& options) {
  auto communicator = std::make_unique<NcclCommunicator>(options);
  DT_TRY_STATUS(communicator->Open(groups));
  return communicator;
}

}  // namespace dt::worker
