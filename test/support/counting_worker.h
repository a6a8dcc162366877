// A worker that counts: every push to a key subtracts exactly 1 from its row. A row thus tells how
// many pushes were applied to it, and the next pull detects a push that was lost or applied twice.
//
// It is the only worker of a job whose scheduler and server are real processes: it joins, carries
// out training orders with pushes of its own making, and compares every row that it pulls with its
// own count. Uses one thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/control/control_link.h"
#include "worker/client/ps_client.h"

namespace dt::test {

// Text of the job file: one table of `dim` floats, initialized to zeros, SGD with rate 1, two
// slices per step.
std::string CountingJob(uint32_t dim, const std::string& more);

class CountingWorker {
 public:
  struct Options {
    uint32_t keys = 2000;  // Keys are 0, 1, 2, …
    uint32_t keys_a_push = 300;
    bool shared_memory = true;  // False: TCP is used instead.
    Duration resend_after = milliseconds(100);
    Duration timeout = seconds(60);
  };
  CountingWorker(const JobConfig& job, const std::string& scheduler, const Options& options);

  // Carries out orders until `done` returns true between two steps. Fails if the job has ended, if
  // a row differs from the count, or if a request is not answered in time.
  Status Run(const std::function<bool()>& done);
  // Pulls every key and compares it with the count.
  Status CheckAll();

  // May be called on any thread.
  Step steps() const { return steps_; }
  uint64_t pushes() const { return pushes_; }  // Number of acknowledged pushes.
  double seconds_training() const { return seconds_; }

 private:
  Status Start(const StartMessage& start);
  Status Carry(const OrderMessage& order, const std::function<bool()>& done);
  Status OneStep(Step step);
  worker::LookupPlan PlanOf(std::vector<Key> keys) const;
  std::vector<Key> KeysOf(Step step, SliceIndex slice) const;
  Status Check(const worker::LookupPlan& plan, Step step);

  const JobConfig job_;
  const Options options_;
  const std::unique_ptr<Network> network_;
  const std::unique_ptr<Network> data_network_;  // Uses shared memory.
  std::unique_ptr<ControlLink> link_;
  Status opened_;
  std::unique_ptr<worker::PsClient> client_;
  std::map<Key, uint32_t> counts_;
  uint32_t slices_ = 1;
  bool stopped_ = false;  // The current order was stopped.
  std::atomic<Step> steps_ = 0;
  std::atomic<uint64_t> pushes_ = 0;
  std::atomic<double> seconds_ = 0;
};

}  // namespace dt::test
