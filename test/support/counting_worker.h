// A worker that counts: every push to a key takes exactly 1 off its row. So a row tells how many
// pushes it has seen, and a push that was lost or applied twice is found by the next pull.
//
// It plays the one worker of a job whose scheduler and server are real processes: joins, carries
// out training orders with pushes of its own making, and checks every row that it pulls against its
// own count. One thread.
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

// The text of its job file: one table of `dim` floats, SGD with rate 1, zeros, two slices a step.
std::string CountingJob(uint32_t dim, const std::string& more);

class CountingWorker {
 public:
  struct Options {
    uint32_t keys = 2000;  // 0, 1, 2, …
    uint32_t keys_a_push = 300;
    bool shared_memory = true;  // Else tcp.
    Duration resend_after = milliseconds(100);
    Duration timeout = seconds(60);
  };
  CountingWorker(const JobConfig& job, const std::string& scheduler, const Options& options);

  // Carries out orders until `done` says so between two steps. Not OK: the job has ended, a row is
  // not what was counted, or a request is not answered in time.
  Status Run(const std::function<bool()>& done);
  // Pulls every key and compares.
  Status CheckAll();

  // Any thread.
  Step steps() const { return steps_; }
  uint64_t pushes() const { return pushes_; }  // Acknowledged.
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
  const std::unique_ptr<Network> data_network_;  // Through shared memory.
  std::unique_ptr<ControlLink> link_;
  Status opened_;
  std::unique_ptr<worker::PsClient> client_;
  std::map<Key, uint32_t> counts_;
  uint32_t slices_ = 1;
  bool stopped_ = false;  // Within an order.
  std::atomic<Step> steps_ = 0;
  std::atomic<uint64_t> pushes_ = 0;
  std::atomic<double> seconds_ = 0;
};

}  // namespace dt::test
