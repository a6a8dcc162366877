// Prints the time of collectives on 2 and 4 ranks of this machine, from 1 KiB to 64 MiB, and of
// bare messages of the same bytes between the same ranks over Gloo's TCP transport, alternately.
// Every rank is a thread. Collectives go over memory, as between processes of one host, and over
// Gloo. A ratio is the bare messages' time divided by a collective's.
// Usage: collectives [ROUNDS]
#include <algorithm>
#include <barrier>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "common/base/clock.h"
#include "test/support/hash_rendezvous.h"
#include "worker/collective/communicator.h"

namespace dt::worker {
namespace {

double Median(std::vector<double> times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

// One rank's memory and operations.
class Rank {
 public:
  Rank(Mesh& gloo, Mesh& memory, const RankGroup& group, size_t bytes)
      : mesh_(gloo),
        group_(group),
        over_gloo_(MakeMeshCommunicator(gloo)),
        over_memory_(MakeMeshCommunicator(memory)),
        in_(bytes, std::byte{1}),
        out_(bytes),
        sizes_(group.size(), bytes / group.size()) {}

  Status AllReduce() { return over_memory_->AllReduce(Call(), {}, in_, out_); }
  Status AllToAll() { return over_memory_->AllToAll(Call(), in_, {sizes_, sizes_}, out_); }
  Status GlooReduce() { return over_gloo_->AllReduce(Call(), {}, in_, out_); }
  Status GlooToAll() { return over_gloo_->AllToAll(Call(), in_, {sizes_, sizes_}, out_); }
  // A part of `in` to each of the others, and a part of `out` from each of them.
  Status BareParts() {
    std::vector<Outgoing> send;
    std::vector<Incoming> receive;
    for (uint32_t r = 0; r < group_.size(); ++r) {
      if (r == mesh_.rank()) continue;
      send.push_back({r, std::span(in_).subspan(r * sizes_[r], sizes_[r])});
      receive.push_back({r, std::span(out_).subspan(r * sizes_[r], sizes_[r])});
    }
    return mesh_.Exchange({.node = 1, .step = step_++}, "bare", send, receive);
  }
  // The messages of an all-reduce: parts to be added, then sums.
  Status BareReduce() {
    DT_TRY_STATUS(BareParts());
    return BareParts();
  }

 private:
  CollectiveCall Call() { return {.group = group_, .name = "bench", .step = step_++}; }

  Mesh& mesh_;
  const RankGroup& group_;
  const std::unique_ptr<Communicator> over_gloo_, over_memory_;
  std::vector<std::byte> in_, out_;
  std::vector<size_t> sizes_;
  Step step_ = 0;
};

using Operation = Status (Rank::*)();
constexpr Operation kOperations[] = {&Rank::AllReduce, &Rank::BareReduce, &Rank::GlooReduce,
                                     &Rank::AllToAll,  &Rank::BareParts,  &Rank::GlooToAll};

// Runs every operation in turns; returns the times of rank 0.
void MeasureRank(Rank& rank, int rounds, std::barrier<>& barrier,
                 std::vector<std::vector<double>>* times) {
  for (int round = 0; round < rounds; ++round) {
    for (size_t o = 0; o < std::size(kOperations); ++o) {
      barrier.arrive_and_wait();
      const TimePoint begun = SystemClock().Now();
      if (const Status done = (rank.*kOperations[o])(); !done.ok()) {
        fmt::print(stderr, "{}\n", ToText(done));
        std::exit(1);
      }
      barrier.arrive_and_wait();
      if (times != nullptr) (*times)[o].push_back(SecondsBetween(begun, SystemClock().Now()));
    }
  }
}

void Measure(uint32_t ranks, int rounds) {
  fmt::print("{} ranks\n{:>10} {:>12} {:>8} {:>8} {:>12} {:>8} {:>8}\n", ranks, "bytes",
             "all-reduce", "ratio", "by Gloo", "all-to-all", "ratio", "by Gloo");
  HashRendezvous rendezvous;
  RankGroup group{.id = 1};
  for (uint32_t r = 0; r < ranks; ++r) group.ranks.push_back(r);
  std::barrier barrier(ranks);
  std::vector<std::jthread> threads;
  for (uint32_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const MeshOptions options = {.rank = r, .size = ranks, .prefix = "bench"};
      const auto gloo = *ConnectGlooMesh(rendezvous, options);
      const auto memory = *ConnectMesh(rendezvous, options);
      for (size_t bytes = 1024; bytes <= size_t{64} << 20; bytes *= 4) {
        Rank rank(*gloo, *memory, group, bytes);
        std::vector<std::vector<double>> times(std::size(kOperations));
        MeasureRank(rank, rounds, barrier, r == 0 ? &times : nullptr);
        if (r != 0) continue;
        const double reduce = Median(times[0]), to_all = Median(times[3]);
        const double bare_reduce = Median(times[1]), bare_to_all = Median(times[4]);
        fmt::print("{:>10} {:>9.0f} us {:>8.2f} {:>8.2f} {:>9.0f} us {:>8.2f} {:>8.2f}\n", bytes,
                   1e6 * reduce, bare_reduce / reduce, bare_reduce / Median(times[2]), 1e6 * to_all,
                   bare_to_all / to_all, bare_to_all / Median(times[5]));
      }
    });
  }
}

}  // namespace
}  // namespace dt::worker

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 21;
  for (const uint32_t ranks : {2U, 4U}) dt::worker::Measure(ranks, rounds);
}
