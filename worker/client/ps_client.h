// Pulls rows from the servers and pushes gradients to them: a RequestBook with sockets and a clock.
// Owned by the train thread, which may leave a pull and any number of pushes under way while it
// computes. All waits end at once when the job ends.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/net/socket.h"
#include "worker/client/pulled_rows.h"
#include "worker/client/request_book.h"
#include "worker/lookup/lookup_plan.h"

namespace dt::worker {

class PsClient {
 public:
  struct Options {
    Network* network = nullptr;
    RequestBook::Options requests;
    std::function<Status()> interrupted = {};  // Called while waiting; not OK ends the wait.
    // Returns the job's map if it is newer than this version. Asked before requests and while
    // waiting.
    std::function<std::optional<ShardMap>(MapVersion)> newer_map = {};
    // Told while waiting, when it changes: whether this client waits, and which servers have not
    // answered for a lease.
    std::function<void(bool waiting, const std::vector<ProcessId>& unreachable)> unreachable = {};
    const Clock* clock = &SystemClock();
  };
  static Result<std::unique_ptr<PsClient>> Open(const View& view, Options options);

  // Does not connect: use Open.
  PsClient(const View& view, Options options);

  // Sets the generation of every message from now on.
  void SetGeneration(Generation generation) { book_.SetGeneration(generation); }
  // Gives up all requests under way; later ones belong to this view.
  void BeginView(ViewNumber number);
  uint32_t shards() const { return book_.routes().map().shards(); }

  // REQUIRES: no pull of this plan is under way; pulls of other plans may be. `plan` must not move
  // or change until FinishPull.
  void BeginPull(const LookupPlan& plan, Step step, PullMode mode);
  // Waits for the answers. The rows stay valid until the next use of `rows`.
  Status FinishPull(const LookupPlan& plan, PulledRows& rows);

  // Some rows are on a server's disk, so announcing pulls beforehand helps.
  bool prefetch_helps() const { return book_.prefetch_helps(); }
  // Announces rows that will be pulled soon. Does not wait, and ignores errors: the pull will tell.
  void Prefetch(const LookupPlan& plan, Step step);

  // gradients[t]: f32 [distinct keys, dim] of table t of the graph; read before the function
  // returns.
  void BeginPush(const PushInfo& info, const LookupPlan& plan,
                 std::span<const std::span<const float>> gradients);
  // Like BeginPush, with values for rows that do not exist yet.
  void BeginSetAbsent(const LookupPlan& plan, std::span<const std::span<const float>> values);
  // Wait until all pushes are acknowledged, or those with a number in SenderTurn below `end`.
  Status WaitForPushes();
  Status WaitForPushesBefore(uint64_t end);

  // Tells the servers that every worker is past the barrier of `step`.
  Status Complete(Step step);

 private:
  Result<ClientSocket*> SocketOf(uint32_t executor);
  Status Send(RequestBook::Outgoing& letter);
  void TakeMap();
  void SendAll();
  Status WaitForOne(uint32_t executor, TimePoint& checked);
  Status WatchServers();
  void TellUnreachable(bool waiting, std::vector<ProcessId> unreachable);

  const Options options_;
  RequestBook book_;
  std::vector<std::unique_ptr<ClientSocket>> sockets_;  // By executor; null: not connected yet.
  // As it was told last.
  bool told_waiting_ = false;
  std::vector<ProcessId> told_unreachable_;
};

}  // namespace dt::worker
