// A story: a job in a simulation, what befalls it, and how it ends. What is checked here follows
// from what the system promises, and knows nothing of how it is kept.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "test/sim/cluster/cluster.h"
#include "test/sim/cluster/sim_job.h"

namespace dt::sim {

struct Misfortunes {
  NetworkFaults network;
  Duration lasting{};  // Until then things go wrong; afterwards all is well.
  Step from_step = 0;  // Servers and the scheduler are left alone until so many steps are done.
  // The chance of each in a tenth of a second.
  double pause = 0, cut = 0;
  double kill = 0;            // Of any process: the job ends, and goes on from a checkpoint.
  double kill_and_start = 0;  // Some or all processes are killed, and others are started.
  double kill_server = 0;     // It comes back with its log, or the job goes on without it.
  double kill_scheduler = 0;  // Another one goes on from what is on its disk.
  double hang_server = 0;     // One of its executors.
  double isolate_server = 0;  // From all but the scheduler.
  double fail_server = 0;     // Its disk is full in the midst of a checkpoint, and it ends.
  double restart_server = 0;  // It is killed, and at once another process has its addresses.
  double add_server = 0;      // One more joins.
  double drain_server = 0;    // By the user.
  double add_worker = 0;      // One more joins.
  double release_worker = 0;  // By the user; never the last.
  uint32_t changes_max = 4;   // At most so many of the four above together.
  double full_disk = 0;       // For a server's log.
  double lose_worker = 0;     // Killed, or paused until it is no member any more; never the last.
  double part_workers = 0;    // Two of them cannot reach each other for long.
  double hang_worker = 0;     // Its train thread; its heartbeats go on. Never the last.
  double worker_returns = 0;  // The chance that another is started in its place.
  double stop = 0;            // By the user, who resumes it.
  double stop_brokers = 0;    // A stream gives no messages for a while.
  uint32_t kills_max = 3;     // Of all kinds together, stops included.
};

// What a job leaves, and every bit of it that does not depend on time.
struct Ending {
  std::map<std::string, std::string> checksums;  // By table; of the dense parameters.
  std::string history;                           // Its evaluations, as text.
  std::map<Key, long> counts;                    // CountsOf, of all servers.
  bool restored = false;                         // It ends with an earlier model, the best one.
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
  struct Tally {
    uint32_t pauses = 0, cuts = 0, kills = 0, stops = 0, full_disks = 0;
    uint32_t restarts = 0;     // Times that the user started the job again.
    uint32_t returns = 0;      // Times that the job returned by itself.
    uint32_t recoveries = 0;   // Servers that came back with their logs.
    uint32_t changes = 0;      // Servers that were added or drained, workers added or released.
    uint32_t moves = 0;        // Servers whose number of shards has changed.
    uint32_t givers = 0;       // Servers that have reported what they copied to others.
    uint32_t views = 0;        // Views of the workers that followed the first one.
    uint32_t newcomers = 0;    // Workers that joined in a view.
    uint32_t in_the_way = 0;   // Workers that left as they held others up.
    uint32_t removals = 0;     // Servers that the job went on without.
    uint32_t suspects = 0;     // Of these: servers that sent heartbeats, and were of no use.
    uint32_t quick = 0;        // Servers that were restarted, and gone after two thirds of a lease.
    uint32_t successions = 0;  // Schedulers that went on where one had been killed.
    uint32_t outages = 0;      // Times that the brokers were away.
    uint32_t windows = 0;      // Windows of a stream that were evaluated.
    uint32_t best_lost = 0;    // Checkpoints of the best model that were abandoned.
    Tally& operator+=(const Tally& other);
  };
  const Tally& tally() const { return tally_; }

 private:
  void Befall(const Misfortunes& misfortunes);
  void LoseWorker(const Misfortunes& misfortunes);
  void PartWorkers();
  void HangWorker();
  void ChangeWorkers(const Misfortunes& misfortunes);
  std::vector<uint32_t> WorkersThatStay() const;
  void KillServer(uint32_t index);
  void RestartServer(uint32_t index);
  void HangServer(uint32_t index);
  void IsolateServer(uint32_t index);
  void FailServer(uint32_t index);
  void StartInItsPlace(uint32_t index, const SimServer* former);
  void KillScheduler();
  void KillAndStart();
  void Supervise();
  void ChangeServers(const Misfortunes& misfortunes);
  Node AnyNode() { return static_cast<Node>(cluster_->world().Below(cluster_->nodes())); }
  void Note(const std::string& what);
  bool RestartIfEnded();
  bool HasTrainedAllMessages() const;
  void StopAtTheEndOfTheStream();
  void CountRecoveries();
  void Check();
  void CheckOwnersAndClocks();
  Ending EndingNow();

  const test::ScratchFolder folder_{test::MemoryFolder()};
  const JobConfig job_;
  std::unique_ptr<Cluster> cluster_;
  std::string text_;
  Tally tally_;
  bool told_ = false;
  bool ended_badly_ = false;  // Not by what befell it.
  std::set<Incarnation> givers_;
  std::set<const SimWorker*> lost_;
  TimePoint apart_until_{};                     // Two workers do not reach each other until then.
  std::set<const Process*> supervised_;         // They have ended, and others come in their places.
  std::map<Incarnation, TimePoint> restarted_;  // Killed then, and not noticed yet.
  std::map<std::tuple<uint64_t, uint64_t, ShardId>, Step> clocks_;
};

// The job of a mode, made at first need; and its end when nothing befalls it.
const SimJob& JobOf(Mode mode);
const Ending& Undisturbed(Mode mode);

// Tells a story of the mode, and adds a test failure for everything that is not as it must be.
void ExpectAsPromised(Mode mode, const Misfortunes& misfortunes, Story& story);

}  // namespace dt::sim
