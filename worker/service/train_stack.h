// The parts of a worker that train: the connections to other workers and to servers, the engine
// and the trainer. The values of dense parameters, the progress and the connections to servers live
// as long as the job; everything else is made anew for each view. Owned by the train thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/runtime/task_pool.h"
#include "worker/service/step_trace.h"
#include "worker/service/worker_core.h"
#include "worker/train/trainer.h"

namespace dt::worker {

class TrainStack {
 public:
  struct Options {
    const WorkerParts& parts;
    const Datasets& data;
    StepTrace& trace;
    TaskPool& pool;
    std::function<Status()> interrupted;  // Not OK ends every wait.
    // See Trainer::Options.
    std::function<Result<SplitMessage>()> next_split;
  };
  explicit TrainStack(Options options) : options_(std::move(options)) {}

  // Errors: those of the plan, the engine and the connections. PeerMayBeLost tells whether another
  // worker may be the cause. A worker that the view lacks joins later: it makes everything ready
  // but the connections to other workers.
  Status Start(const StartMessage& start);
  // Goes on in this view. After an error another view may begin.
  Status BeginView(const View& view, const ViewBeginsMessage& begins);
  // The mesh notices a lost worker at once, the scheduler after its lease; but only the scheduler
  // knows which one it is.
  bool PeerMayBeLost() const { return connecting_ || (team_ && team_->communicator->broken()); }
  ViewReportMessage ReportFor(const View& next) const {
    return {next.number, progress_.step, progress_.entered.has_value(), newcomer_};
  }
  // An order that comes again goes on where it was.
  void BeginOrder(uint64_t number);
  uint64_t order() const { return order_.number; }
  Step step() const { return progress_.step; }
  // The order has ended, with so many samples.
  void OnTrained(uint64_t samples);
  // The rows and values have been replaced by those of a checkpoint.
  void OnLoaded(Step step, Generation generation);

  // REQUIRES: Start has succeeded.
  bool ready() const { return trainer_ != nullptr; }
  uint32_t rank() const { return rank_; }
  Trainer& trainer() { return *trainer_; }
  Engine& engine() { return *engine_; }
  const Engine* other_engine() const { return other_engine_.get(); }
  WorkerTables& tables() { return *tables_; }
  uint32_t shards() const { return client_->shards(); }

 private:
  const JobConfig& job() const { return options_.parts.options.job; }
  bool asynchronous() const { return job().train.asynchronous(); }
  bool WaitsForServers() const;
  Duration Timeout() const;
  Status Connect(const View& view, uint32_t team_size);
  Status OpenEngine(Plan plan);
  Status OpenClient(const View& view);
  RequestBook::Options RequestOptions() const;
  void OpenTrainer(const View& view);
  void NoteStep(Step step);
  Status LeaveView(const View& next, Step complete);
  Status EnterView(const View& view, std::span<const ProcessId> newcomers);
  Status ShareState(const View& view, std::span<const ProcessId> newcomers);

  const Options options_;
  TrainProgress progress_;
  OrderProgress order_;  // The current order's.
  // The progress of orders that this worker has left for another when a view began.
  std::map<uint64_t, OrderProgress> left_;
  uint64_t samples_before_ = 0;  // Trained by orders before it.
  HeartbeatMessage heartbeat_;   // As it was reported last.
  std::optional<TimePoint> last_step_at_;
  bool first_of_view_ = false;  // No step has been done in this view, which is not the first.
  // From one view to the next.
  Plan plan_;
  std::vector<Parameters::Array> values_;

  // Set by Start. Each object uses those before it.
  Step steps_before_ = 0;  // See StartMessage.
  std::vector<uint64_t> stripe_rows_;
  uint32_t rank_ = 0;
  bool newcomer_ = false;    // It has no values of the job yet.
  bool connecting_ = false;  // To the other workers, at this moment.
  std::optional<TeamLink> team_;
  std::unique_ptr<Accelerator> accelerator_;  // Absent if the plan needs none, or options name one.
  std::unique_ptr<WorkerTables> tables_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Engine> other_engine_;  // See Trainer::Options; null: none.
  std::unique_ptr<PsClient> client_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace dt::worker
