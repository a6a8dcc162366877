// Pulls rows from the servers and pushes gradients to them. Owned by the train thread, which may
// leave a pull and any number of pushes under way while it computes. Requests are resent under the
// same number until their deadline; servers take a push once. All waits end at once when the job
// does.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/metrics/timeline.h"
#include "common/net/socket.h"
#include "common/wire/data.h"
#include "worker/lookup/lookup_plan.h"
#include "worker/lookup/routes.h"

namespace dt::worker {

// By table of the graph: f32 [its distinct keys, dim], in row order. Reused between pulls.
class PulledRows {
 public:
  std::span<const float> table(size_t t) const { return views_[t]; }
  // The least of the answers': see DataReply.
  Step clock() const { return clock_; }

 private:
  friend class PsClient;
  bool whole_ = false;  // Of the pull under way: it is one answer, taken as it is.
  std::vector<std::span<const float>> views_;
  std::vector<std::vector<float>> copies_;  // Where answers are put together.
  Frame frame_;                             // Or the only answer itself.
  Step clock_ = 0;
};

struct PushInfo {
  Step step = 0;
  SliceIndex slice = 0;
  uint32_t slices = 1;
  float rate_scale = 1;
  // Asynchronous training only: see PushRequest.
  ProcessId worker = {};
  Step first_step = 0;
  PushMode mode = PushMode::kGradients;
};

class PsClient {
 public:
  struct Options {
    Network* network = nullptr;
    std::vector<uint32_t> wire_tables;  // By table of the graph: its index in the job.
    std::vector<WireTable> tables;      // By table of the graph: how its rows travel.
    Duration patience = seconds(60);    // For one request, resends included.
    Duration resend_after = seconds(5);
    // Of keys and rows in one message or its answer. So large that what a message costs (four
    // threads woken, on both sides) is little beside its bytes; so small that the server reads rows
    // for one while the network carries another. Measured: docs/performance.md.
    size_t part_bytes_max = 1056 << 10;
    std::function<Status()> interrupted;  // Asked while waiting: not OK ends it.
    const Clock* clock = &SystemClock();
    Timeline* timeline = nullptr;  // Of requests in training; null: not recorded.
  };
  static Result<std::unique_ptr<PsClient>> Open(std::shared_ptr<const Routes> routes,
                                                const Stamp& stamp, Options options);

  // Not connected yet: use Open.
  PsClient(std::shared_ptr<const Routes> routes, const Stamp& stamp, Options options);

  // From now on.
  void SetStamp(const Stamp& stamp) { stamp_ = stamp; }

  // REQUIRES: no pull of this plan is under way; of other plans there may be. `plan` stays where
  // and as it is until FinishPull.
  void BeginPull(const LookupPlan& plan, Step step, PullMode mode);
  // Waits for the answers. The rows stay valid until the next use of `rows`.
  Status FinishPull(const LookupPlan& plan, PulledRows& rows);

  // Some rows are on a server's disk: it helps to announce what will be pulled.
  bool lookahead_helps() const { return lookahead_helps_; }
  // Rows that will be pulled soon. Waits for nothing, and fails silently: the pull will tell.
  void Lookahead(const LookupPlan& plan, Step step);

  // gradients[t]: f32 [distinct keys, dim] of table t of the graph; read before it returns.
  void BeginPush(const PushInfo& info, const LookupPlan& plan,
                 std::span<const std::span<const float>> gradients);
  // As BeginPush, with values for rows that are not there yet.
  void BeginSetAbsent(const LookupPlan& plan, std::span<const std::span<const float>> values);
  // Returns when all pushes are acknowledged; or those of steps before `end`.
  Status WaitForPushes();
  Status WaitForPushesBefore(Step end);

  // Every worker is past the barrier of `step`.
  Status Complete(Step step);

 private:
  enum class Kind { kPull, kPush };
  struct Request {  // Under way, or a pull answered.
    uint64_t number = 0;
    Kind kind = Kind::kPull;
    uint32_t executor = 0;
    const LookupPlan* plan = nullptr;  // Pulls only: whose.
    TimePoint begun{}, next_send{};
    PullRequest pull{};  // The one of its kind, to send again; its frames share their memory.
    PushRequest push{};
    std::string refusal{};                    // Why it is sent again, as the server said.
    PooledVector<RowGroup> groups{};          // Of a pull: where its rows belong.
    Duration retry_after = milliseconds(50);  // When it is refused.
    bool answered = false;
    Frame values{};
    Step clock = 0;
  };
  using Awaited = std::function<bool(const Request&)>;
  struct PartCut;  // Rows of one executor that travel in one message.

  void Begin(Request request);
  void SendNow(Request& request);
  void RecordDone(const Request& request, uint64_t bytes_received) const;
  bool UnderWay(const Awaited& awaited) const;
  Status WaitForOne(const Awaited& awaited, TimePoint& checked);
  Status CheckTimes();
  Status OnReply(uint32_t executor, Frames frames);
  PooledVector<PartCut> CutParts(const ExecutorKeys& keys,
                                 const std::function<bool(uint32_t)>& carries) const;
  Frame KeysOf(const PartCut& part, const ExecutorKeys& keys, const LookupPlan& plan) const;
  PushRequest MakePart(const PartCut& part, uint32_t executor, const LookupPlan& plan,
                       std::span<const std::span<const float>> gradients) const;
  void MakeRoom(const LookupPlan& plan, PulledRows& rows) const;
  Status Place(Request& request, PulledRows& rows) const;

  const std::shared_ptr<const Routes> routes_;
  const Options options_;
  Stamp stamp_;
  std::vector<std::unique_ptr<ClientSocket>> sockets_;  // By executor.
  std::vector<Request> requests_;
  uint64_t next_number_ = 1;
  bool lookahead_helps_ = false;
};

}  // namespace dt::worker
