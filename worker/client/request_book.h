// The requests of a worker to the servers, from the first sending to the last answer: which are
// under way, when one is sent again, and where it goes when its shard has moved. A state machine
// without socket or clock; PsClient has those. Owned by the train thread.
//
//   Begin ──▶ under way ──OK──▶ done
//               │   ▲ ▲ ▲
//               │   │ │ └ no answer for `resend_after`: sent again
//               │   │ └── Busy, Timeout: sent again a little later
//               │   └──── a shard is refused: its part goes, as the same piece, to the server that
//               │         its new chain names; the other shards of the request are done
//               └─ no answer until `timeout`: an error
//
// Servers apply a push once per (step, slice, shard, piece), so that sending it again does no harm.
// An answer counts only for those shards whose chains, as known when it arrives, have the sender as
// a member.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/cluster/answer_watch.h"
#include "common/cluster/view.h"
#include "common/metrics/timeline.h"
#include "common/net/frame_pool.h"
#include "common/wire/data.h"
#include "worker/client/message_cut.h"
#include "worker/client/pulled_rows.h"
#include "worker/client/routes.h"
#include "worker/lookup/lookup_plan.h"

namespace dt::worker {

struct PushInfo {
  Step step = 0;
  SliceIndex slice = 0;
  uint32_t slices = 1;
  float lr_scale = 1;
  SenderTurn turn = {};  // Set in asynchronous training only.
  PushMode mode = PushMode::kGradients;
};

class RequestBook {
 public:
  struct Options {
    std::vector<uint32_t> wire_tables;  // By table of the graph: its index in the job.
    std::vector<WireTable> tables;      // By table of the graph: the wire format of its rows.
    Duration timeout = seconds(60);     // Limit for one request, however often it is sent.
    Duration resend_after = seconds(5);
    Duration lease = seconds(3);  // See Silent.
    // Limit for the keys and rows in one message or its answer. Large enough that the cost of a
    // message (four threads woken, on both sides) is small beside that of its bytes; small enough
    // that the server reads rows for one message while the network carries another. Measured:
    // docs/performance.md.
    size_t message_bytes_max = 1056 << 10;
    FramePool* frames = &FramePool::Private();  // Makes the frames to send; outlives the book.
    Timeline* timeline = nullptr;               // Records requests in training; null: not recorded.
  };
  RequestBook(const View& view, Options options);

  const Routes& routes() const { return routes_; }
  // Sets the generation of every message from now on.
  void SetGeneration(Generation generation) { stamp_.generation = generation; }
  // Gives up all requests; later ones belong to this view.
  void BeginView(ViewNumber number);
  // Some rows are on a server's disk, so announcing pulls beforehand helps.
  bool prefetch_helps() const { return prefetch_helps_; }

  // REQUIRES: no pull of this plan is under way; pulls of other plans may be. `plan` must not move
  // or change until its rows are taken.
  void BeginPull(TimePoint now, const LookupPlan& plan, Step step, PullMode mode);
  // gradients[t]: f32 [distinct keys, dim] of table t of the graph, or empty; read before the
  // function returns.
  void BeginPush(TimePoint now, const PushInfo& info, const LookupPlan& plan,
                 std::span<const std::span<const float>> gradients);

  // A message for an executor, given by its index in routes(). If `request` is 0, it has no answer.
  struct Outgoing {
    uint64_t request = 0;
    uint32_t executor = 0;
    Frames frames;
  };
  // The messages to send now; they count as sent.
  PooledVector<Outgoing> TakeOutgoing(TimePoint now);
  // Called if a letter could not be sent; it is returned again soon.
  void OnSendFailed(TimePoint now, const Outgoing& letter);
  PooledVector<Outgoing> Prefetch(const LookupPlan& plan, Step step);
  PooledVector<Outgoing> Complete(Step step);

  // Errors: the server's own, if the request can have no other answer; Internal, if no server gives
  // such an answer.
  Status OnAnswer(TimePoint now, uint32_t executor, Frames frames);
  // Called with a newer map. Requests to servers that are not in it go to others at once.
  void OnMap(TimePoint now, const ShardMap& map);
  // Errors: Timeout naming request and server, if a request is overdue.
  Status CheckTimes(TimePoint now) const;

  // Questions that servers answer at once, to those that owe an answer to a request; now and then.
  PooledVector<Outgoing> Pings(TimePoint now);
  bool has_pinged() const { return !watch_.empty(); }
  // Servers that have answered nothing for a lease, not even those. Call it while waiting, after
  // OnAnswer for all that has arrived.
  std::vector<ProcessId> Silent(TimePoint now);

  // The executor that owes an answer to the pull of a plan, or to a push with a number in
  // SenderTurn below `end`.
  std::optional<uint32_t> Awaited(const LookupPlan& plan) const;
  std::optional<uint32_t> AwaitedBefore(uint64_t end) const;
  // To be called before the first TakeRows of a pull.
  void BeginRows(const LookupPlan& plan, PulledRows& rows) const;
  // Puts the rows of all answers so far in their places. The pull is done when Awaited(plan) is
  // empty.
  void TakeRows(const LookupPlan& plan, PulledRows& rows);

 private:
  enum class Kind { kPull, kPush };
  struct Request {
    uint64_t number = 0;
    Kind kind = Kind::kPull;
    uint32_t executor = 0;
    const LookupPlan* plan = nullptr;  // The plan of a pull; null for a push.
    TimePoint begun{}, next_send{};
    PullRequest pull{};  // `pull` or `push` is kept to be sent again; its frames share memory.
    PushRequest push{};
    PooledVector<RowGroup> rows{};            // Where the rows of a pull belong.
    std::string refusal{};                    // The server's reason why it is sent again.
    Duration retry_after = milliseconds(50);  // The pause after the next refusal.
    bool answered = false;
    Frame values{};
    Step clock = 0;
  };
  using Shards = std::vector<ShardId>;
  static constexpr Duration kRetryMax = milliseconds(800);  // Limit for Request::retry_after.

  // request_book.cc: requests, letters, answers.
  void Begin(TimePoint now, Request request);
  Stamp StampFor(uint32_t executor) const;
  PullRequest MakePull(const MessageCut& cut, const LookupPlan& plan) const;
  PushRequest MakePush(const MessageCut& cut, const PushInfo& info, const LookupPlan& plan,
                       std::span<const std::span<const float>> gradients) const;
  Frame KeysOf(const MessageCut& cut, const LookupPlan& plan) const;
  Status TakeAnswer(TimePoint now, DataReply reply, Request& request);
  void RecordDone(const Request& request, uint64_t bytes_received) const;
  void MakeRoom(const LookupPlan& plan, PulledRows& rows) const;
  void Place(const LookupPlan& plan, Request& request, PulledRows& rows) const;
  // request_moves.cc: shards that move.
  static const Stamp& StampOf(const Request& request);
  static Shards ShardsOf(const Request& request);  // Ascending.
  uint32_t RouteOf(const Request& request, ShardId shard) const;
  bool HasMoved(const Request& request) const;
  void SendAgain(TimePoint now, const Shards& refused, Request& request);
  void RegroupIf(TimePoint now, const std::function<bool(const Request&)>& condition);
  void Regroup(TimePoint now, const Request& request, const Shards& shards);
  Request Only(const Request& request, const Shards& shards) const;
  void KeepOthers(const Shards& refused, const Shards& again, Request& request) const;

  const Options options_;
  Routes routes_;
  Stamp stamp_;  // StampFor fills in map and server.
  MessageCutter cutter_;
  std::map<uint32_t, WireTable> wire_of_;  // By the table's index in the job.
  std::vector<Request> requests_;
  AnswerWatch watch_;
  TimePoint next_ping_{};
  uint64_t next_number_ = 1;
  bool prefetch_helps_ = false;
};

}  // namespace dt::worker
