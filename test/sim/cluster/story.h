// A story: a job in a simulation, what befalls it, and how it ends. What is checked here follows
// from what the system promises, and knows nothing of how it is kept.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "test/sim/cluster/cluster.h"
#include "test/sim/cluster/sim_job.h"

namespace dt::sim {

struct Misfortunes {
  NetworkFaults network;
  Duration lasting{};  // Until then things go wrong; afterwards all is well.
  // The chance of each in a tenth of a second.
  double pause = 0, cut = 0;
  double kill = 0;         // Of any process: the job ends, and goes on from a checkpoint.
  double kill_server = 0;  // It comes back, with its log.
  double full_disk = 0;    // For a server's log.
  double stop = 0;         // By the user, who resumes it.
  uint32_t kills_max = 3;  // Of all kinds together, stops included.
};

// What a job leaves, and every bit of it that does not depend on time.
struct Ending {
  std::map<std::string, std::string> checksums;  // By table; of the dense parameters.
  std::string history;                           // Its evaluations, as text.
  std::map<Key, long> counts;                    // CountsOf, of all servers.
  friend bool operator==(const Ending&, const Ending&) = default;
};

class Story {
 public:
  Story(uint64_t seed, const SimJob& job);

  // Runs the job to its end, restarting it as its user would; adds test failures for what must not
  // be. Nothing if it did not end.
  std::optional<Ending> Tell(const Misfortunes& misfortunes);

  Cluster& cluster() { return *cluster_; }
  // What befell it, for people.
  const std::string& text() const { return text_; }

 private:
  void Befall(const Misfortunes& misfortunes);
  void KillServer();
  Node AnyNode() { return static_cast<Node>(cluster_->world().Below(cluster_->nodes())); }
  void Note(const std::string& what);
  bool RestartIfEnded();
  void Check();
  void CheckOwnersAndClocks();
  Ending EndingNow();

  const test::ScratchFolder folder_{test::MemoryFolder()};
  const JobConfig job_;
  std::unique_ptr<Cluster> cluster_;
  std::string text_;
  uint32_t kills_ = 0, starts_ = 0;
  bool told_ = false;
  std::map<std::tuple<uint64_t, uint64_t, ShardId>, Step> clocks_;
};

// Every sample of the training data exactly once in every epoch.
void ExpectEverySampleOnce(const Ending& ending);

}  // namespace dt::sim
