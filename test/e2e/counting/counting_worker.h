// A worker that counts: every push to a key subtracts exactly 1 from its row. A row thus tells how
// many pushes were applied to it, and the next pull detects a push that was lost or applied twice.
//
// The job's scheduler and servers are real processes. The worker joins, carries out training orders
// with pushes of its own making, and compares every row that it pulls with the count. What a worker
// pushes in a step is a function of the step, so each can count for all. A row of a synchronous job
// has all pushes of earlier steps; one of an asynchronous job has this worker's, and of each
// other's at least those that the staleness bound names, and at most those that it has begun. Uses
// one thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/cluster/latest_view.h"
#include "common/config/job_config.h"
#include "common/control/control_link.h"
#include "worker/client/ps_client.h"

namespace dt::test {

// Text of the job file: one table of `dim` floats, initialized to zeros, SGD with rate 1, two
// slices per step.
std::string CountingJob(uint32_t dim, const std::string& more);

// How far the counting workers of a job are. Any thread.
class CountingTeam {
 public:
  explicit CountingTeam(uint32_t workers) : members_(workers) {}

  uint32_t workers() const { return static_cast<uint32_t>(members_.size()); }
  void Begin(uint32_t rank, Step step) { members_[rank].begun = step + 1; }
  void End(uint32_t rank, Step step) { members_[rank].ended = step + 1; }
  Step begun(uint32_t rank) const { return members_[rank].begun; }  // Steps that it has begun.
  // Whether the pushes of all workers are acknowledged, up to this step.
  bool AllEnded(Step step) const {
    return std::ranges::all_of(members_, [&](const Member& member) { return member.ended > step; });
  }

 private:
  struct Member {
    std::atomic<Step> begun = 0, ended = 0;
  };
  std::vector<Member> members_;
};

class CountingWorker {
 public:
  struct Options {
    uint32_t keys = 2000;  // Keys are 0, 1, 2, …
    uint32_t keys_a_push = 300;
    bool shared_memory = true;  // False: TCP is used instead.
    Duration resend_after = milliseconds(100);
    Duration timeout = seconds(60);
    CountingTeam* team = nullptr;                // Null: it is the only worker.
    std::function<void(Step)> before_step = {};  // May wait.
  };
  CountingWorker(const JobConfig& job, const std::string& scheduler, const Options& options);

  // Carries out orders until `done` returns true between two steps, or until the job is complete.
  // Fails if the job ends otherwise, if a row differs from the count, or if a request is not
  // answered in time.
  Status Run(const std::function<bool()>& done);
  // Pulls every key and compares it with the count.
  Status CheckAll();

  // May be called on any thread.
  Step steps() const { return steps_; }
  uint64_t pushes() const { return pushes_; }  // Number of acknowledged pushes.
  double seconds_training() const { return seconds_; }

 private:
  using Plan = worker::LookupPlan;
  // By key: the least and the most that may have been subtracted.
  using Bounds = std::function<std::pair<uint64_t, uint64_t>(Key)>;

  Status Take(const ControlMessage& message, const std::function<bool()>& done);
  Status Start(const StartMessage& start);
  Status Carry(const OrderMessage& order, const std::function<bool()>& done);
  Result<TrainDone> Train(const TrainOrder& order, const std::function<bool()>& done);
  Status SynchronousStep(const TrainOrder& order, Step step);
  Status AsynchronousStep(const TrainOrder& order, Step step);
  Status Push(const worker::PushInfo& info, const Plan& plan);
  Status AwaitOthers(Step step);
  Plan PlanOf(std::vector<Key> keys) const;
  std::vector<Key> KeysOf(Step step, uint32_t part) const;
  void Count(Step step, uint32_t part);
  Status Check(const Plan& plan, Step step, const Bounds& bounds);
  Bounds Counted() const;

  const JobConfig job_;
  const Options options_;
  CountingTeam alone_{1};
  CountingTeam& team_;
  const std::unique_ptr<Network> network_;
  const std::unique_ptr<Network> data_network_;  // Uses shared memory.
  LatestView maps_;
  HeartbeatMessage progress_;
  std::unique_ptr<ControlLink> link_;
  Status opened_;
  std::unique_ptr<worker::PsClient> client_;
  uint32_t rank_ = 0;
  uint32_t parts_ = 1;  // Of a step: slices; with asynchronous training workers.
  std::map<Key, uint64_t> counts_;
  bool stopped_ = false;  // The current order was stopped.
  std::atomic<Step> steps_ = 0;
  std::atomic<uint64_t> pushes_ = 0;
  std::atomic<double> seconds_ = 0;
};

}  // namespace dt::test
