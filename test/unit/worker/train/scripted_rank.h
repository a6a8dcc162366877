// Ranks that train, with everything around them made up: samples, a server, and the other ranks'
// network. Each call that leaves a rank is a point of its script, on each of its threads in the
// same order in every run; at a chosen point the call fails, once or from then on. The engine, the
// client and the communicator are the real ones.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/config/job_config.h"
#include "common/net/socket.h"
#include "common/wire/data.h"
#include "worker/client/ps_client.h"
#include "worker/client/row_cache.h"
#include "worker/engine/engine.h"
#include "worker/exchange/team_link.h"
#include "worker/train/row_puller.h"

namespace dt::worker {

// Something that left or reached a rank.
struct Happening {
  uint32_t rank = 0;
  std::string what;
  Step step = 0;
  SliceIndex slice = 0;
};

// What happened to all ranks, in order. Any thread.
class Journal {
 public:
  void Add(Happening happening);
  std::vector<Happening> all() const;

 private:
  mutable Mutex mutex_;
  std::vector<Happening> all_ DT_GUARDED_BY(mutex_);
};

// Where one rank fails. Any thread.
class Script {
 public:
  enum class Fault { kOnce, kForGood };  // kForGood: its process is dead to others.
  // The train thread's calls, and those of the engine's thread of communication.
  enum class Side { kTrain, kExchange };
  struct Point {
    Side side = Side::kTrain;
    size_t number = ~size_t{0};  // Among those of its side.
  };
  using Points = std::array<std::vector<std::string>, 2>;  // By side.

  void FailAt(const Point& point, Fault fault);
  // Not OK where the script says so.
  Status Reach(std::string_view point, Side side = Side::kTrain);
  Points reached() const;
  bool dead() const;

 private:
  mutable Mutex mutex_;
  Point fail_at_ DT_GUARDED_BY(mutex_);
  Fault fault_ DT_GUARDED_BY(mutex_) = Fault::kOnce;
  bool failed_ DT_GUARDED_BY(mutex_) = false;
  Points reached_ DT_GUARDED_BY(mutex_);
};

inline constexpr uint32_t kShards = 4;
inline constexpr uint32_t kRowsInAll = 4096;
inline constexpr uint64_t kBadRow = kRowsInAll - 1;  // Its label is none that the loss takes.

// The only server, with one executor. Rows are a function of table and key. Any thread.
class ScriptedServer {
 public:
  // `tables`: of the job, as they are numbered in messages.
  ScriptedServer(std::vector<WireTable> tables, Journal& journal)
      : tables_(std::move(tables)), journal_(journal) {}

  struct Answered {
    Frames frames;
    Happening when_received;
  };
  // The answer, if there is one. A pull is a point: the rows of a server that fails are NaN.
  std::optional<Answered> Answer(uint32_t rank, Frames frames, Script& script);
  // Pushes of this step are taken, and never acknowledged.
  void HoldBack(Step step) { held_back_ = step; }
  void SayRowsAreOnDisk() { disk_ = true; }
  Journal& journal() const { return journal_; }

  // By step, slice and worker: all that the push carries.
  std::map<std::tuple<Step, SliceIndex, uint32_t>, std::string> pushes() const;
  // Keys of each pull, in order.
  std::vector<std::vector<Key>> pulled() const;
  static float ValueOf(uint32_t table, Key key, size_t column);

 private:
  Frame RowsOf(const PullRequest& pull, bool broken) const;
  void Take(const PushRequest& push);

  const std::vector<WireTable> tables_;
  Journal& journal_;
  std::optional<Step> held_back_;
  bool disk_ = false;
  mutable Mutex mutex_;
  std::map<std::tuple<Step, SliceIndex, uint32_t>, std::string> pushes_ DT_GUARDED_BY(mutex_);
  std::vector<std::vector<Key>> pulled_ DT_GUARDED_BY(mutex_);
};

// A slice as the reader is told of it.
struct SliceToRead {
  Step step = 0;
  SliceIndex slice = 0;
  uint32_t samples = 4, step_samples = 16;
};

struct RankSetting {
  uint32_t slices = 4;  // Of a step.
  bool overlap = true;
  Step staleness = 0;
  uint32_t workers = 1;  // That share the change of running values.
  std::vector<SliceToRead> read = {};
  Timeline* timeline = nullptr;
  bool read_ahead = false;
  LookupFor purpose = LookupFor::kTrain;
  RowCache* cache = nullptr;
};

// A lookup, two layers with batch norm, one loss.
JobConfig ScriptedJob(const RankSetting& setting);
Plan ScriptedPlan(const RankSetting& setting);
std::vector<WireTable> WireTablesOf(const JobConfig& job);

class ScriptedRank {
 public:
  // `server` and `journal` outlive it.
  ScriptedRank(const RankSetting& setting, std::unique_ptr<Mesh> mesh, ScriptedServer& server,
               Journal& journal);
  // The engine may still compute with the rows of the puller.
  ~ScriptedRank();

  Script script;
  ManualClock clock;  // Moves while the client waits for an answer that has not come.
  std::atomic<size_t> asked_for{0};  // Slices that the reader has asked for.
  const RankSetting setting;
  const JobConfig job;
  TaskPool pool{1};
  TeamLink team;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Network> network;
  std::unique_ptr<PsClient> client;
  std::unique_ptr<Dataset> data;
  SparePlans spare{12};
  std::unique_ptr<SliceReader> reader;
  std::unique_ptr<RowPuller> puller;
};

// The rows that were read, in order, and the epochs for which they were.
struct ReadRows {
  std::vector<uint64_t> rows;
  std::set<uint64_t> epochs;
};
// Samples of a label, a key and a number. Rows that are read go to `gathered`, if it is given; one
// thread reads at a time.
std::unique_ptr<Dataset> MakeSamples(uint64_t rows, ReadRows* gathered = nullptr);

// Ranks that share memory, with a script in front. `interrupted` ends their waits.
std::vector<std::unique_ptr<Mesh>> PlainMeshes(uint32_t ranks,
                                               std::function<Status()> interrupted = {});

}  // namespace dt::worker
