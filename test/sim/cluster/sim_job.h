// The job that simulations run: small, with every part of a model that could break equality of
// bits, and a table that counts. A row of `counts` moves by kCount with every update, whatever the
// gradient: all labels are 0, so that gradients have one sign, and they are cut to one size.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/config/job_config.h"
#include "scheduler/state/job_environment.h"
#include "server/shard/shard_set.h"
#include "test/sim/cluster/sim_topic.h"
#include "test/support/scratch_folder.h"

namespace dt::sim {

inline constexpr uint32_t kFirstSampleKey = 1000;  // Every sample has a key of its own.
inline constexpr float kCount = 1.0f / 1024;

// With many steps, nothing but training is due in them. With chains, three servers hold every
// shard; with chains and a log, two of three. With many workers there are four instead of two, and
// three servers hold every shard; with tables on workers, too, but for the table that counts. Where
// the best is restored, it is that of the first epoch. A stream grows while the job trains on it,
// and has no end.
enum class Mode {
  kSynchronous,
  kLog,
  kBounded,
  kUnbounded,
  kBoundedLog,
  kManySteps,
  kBoundedManySteps,
  kChains,
  kBoundedChains,
  kRestoredChains,
  kBoundedRestoredChains,
  kLoggedChains,
  kBoundedLoggedChains,
  kManyWorkers,
  kTablesOnWorkers,
  kBoundedManyWorkers,
  kUnboundedManyWorkers,
  kManyWorkersManySteps,
  kStream,
  kBoundedStream,
};
std::string_view NameOf(Mode mode);
inline bool HasManySteps(Mode mode) {
  return mode == Mode::kManySteps || mode == Mode::kBoundedManySteps ||
         mode == Mode::kManyWorkersManySteps;
}
inline bool HasStream(Mode mode) { return mode >= Mode::kStream; }
// How many samples the job trains on in an epoch, or in all if they come as a stream.
inline uint32_t SamplesOf(Mode mode) {
  if (HasStream(mode)) return 320;
  if (mode == Mode::kManyWorkersManySteps) return 480;
  return HasManySteps(mode) ? 1200 : 96;
}
inline uint32_t BatchOf(Mode mode) { return HasManySteps(mode) ? 4 : 16; }
inline uint32_t EpochsOf(Mode mode) { return HasManySteps(mode) || HasStream(mode) ? 1 : 2; }
inline bool RestoresTheBest(Mode mode) {
  return mode == Mode::kRestoredChains || mode == Mode::kBoundedRestoredChains;
}
// The same, with the model of the last epoch at the end.
inline Mode WithoutRestoring(Mode mode) {
  return mode == Mode::kRestoredChains ? Mode::kChains : Mode::kBoundedChains;
}
inline bool HasLog(Mode mode) {
  return mode == Mode::kLog || mode == Mode::kBoundedLog || mode == Mode::kLoggedChains ||
         mode == Mode::kBoundedLoggedChains;
}
inline bool HasChains(Mode mode) { return mode >= Mode::kChains; }
inline uint32_t WorkersOf(Mode mode) { return mode >= Mode::kManyWorkers ? 4 : 2; }
inline bool IsSynchronous(Mode mode) {
  return mode == Mode::kSynchronous || mode == Mode::kLog || mode == Mode::kManySteps ||
         mode == Mode::kChains || mode == Mode::kRestoredChains || mode == Mode::kLoggedChains ||
         mode == Mode::kManyWorkers || mode == Mode::kTablesOnWorkers ||
         mode == Mode::kManyWorkersManySteps || mode == Mode::kStream;
}

// A job with its data and the plan of the real planner, made once.
class SimJob {
 public:
  explicit SimJob(Mode mode);

  const scheduler::MadePlan& plan() const { return plan_; }
  // The job with what it writes in a folder.
  JobConfig In(const std::string& folder) const;
  // Its messages, if it trains on a stream. They begin to come now.
  std::unique_ptr<SimTopic> Topic(const World& world) const;

 private:
  const Mode mode_;
  const test::ScratchFolder folder_;  // Its data.
  JobConfig job_;
  scheduler::MadePlan plan_;
};

// How often each key of the table `counts` was updated, on shards that count.
std::map<Key, long> CountsOf(const server::ShardSet& shards);

}  // namespace dt::sim
