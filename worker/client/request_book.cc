#include "worker/client/request_book.h"

#include <algorithm>
#include <set>

#include "common/base/check.h"
#include "common/runtime/work_span.h"

namespace dt::worker {
namespace {

constinit WorkKind kRequestWork{"worker: keys and gradients into messages"};
constinit WorkKind kAnswerWork{"worker: rows out of messages"};

constexpr Duration kQueueIsFull = milliseconds(50);  // A letter is tried again after this time.

}  // namespace

RequestBook::RequestBook(const View& view, Options options)
    : options_(std::move(options)),
      routes_(view.map),
      stamp_{view.generation, view.number, {}, {}},
      cutter_(options_.tables, options_.message_bytes_max),
      watch_(options_.lease) {
  DT_CHECK(options_.wire_tables.size() == options_.tables.size());
  for (size_t t = 0; t < options_.tables.size(); ++t) {
    wire_of_[options_.wire_tables[t]] = options_.tables[t];
  }
}

// Answers to what is given up count for nothing: their numbers are not given again.
void RequestBook::BeginView(ViewNumber number) {
  stamp_.view = number;
  requests_.clear();
  watch_ = AnswerWatch(options_.lease);
}

// ------------------------------------------------------------ making requests

void RequestBook::Begin(TimePoint now, Request request) {
  request.number = next_number_++;
  request.pull.request = request.push.request = request.number;
  request.next_send = now;
  (request.kind == Kind::kPull ? request.pull.stamp : request.push.stamp) =
      StampFor(request.executor);
  requests_.push_back(std::move(request));
}

Stamp RequestBook::StampFor(uint32_t executor) const {
  Stamp stamp = stamp_;
  stamp.map = routes_.map().version;
  stamp.server = routes_.executors()[executor].server;
  return stamp;
}

void RequestBook::BeginPull(TimePoint now, const LookupPlan& plan, Step step, PullMode mode) {
  DT_CHECK(std::ranges::none_of(requests_, [&](const Request& r) { return r.plan == &plan; }));
  const auto all = [](uint32_t) { return true; };
  for (MessageCut& cut : cutter_.Cut(plan.groups, routes_.for_pull(), all, false)) {
    Request request{.kind = Kind::kPull, .executor = cut.executor, .plan = &plan, .begun = now};
    request.pull = MakePull(cut, plan);
    request.pull.step = step;
    request.pull.mode = mode;
    request.rows = std::move(cut.groups);
    Begin(now, std::move(request));
  }
}

PullRequest RequestBook::MakePull(const MessageCut& cut, const LookupPlan& plan) const {
  PullRequest pull;
  pull.groups.reserve(cut.groups.size());
  for (const RowGroup& group : cut.groups) {
    pull.groups.push_back({group.shard, options_.wire_tables[group.table], group.rows});
  }
  pull.keys = KeysOf(cut, plan);
  return pull;
}

Frame RequestBook::KeysOf(const MessageCut& cut, const LookupPlan& plan) const {
  const WorkSpan span(kRequestWork);
  kRequestWork.Count(2 * cut.rows * sizeof(Key));
  Frame frame = options_.frames->Make(cut.rows * sizeof(Key));
  Key* out = frame.as<Key>().data();
  for (const RowGroup& group : cut.groups) {
    out = std::copy_n(plan.tables[group.table].begin() + group.first, group.rows, out);
  }
  return frame;
}

void RequestBook::BeginPush(TimePoint now, const PushInfo& info, const LookupPlan& plan,
                            std::span<const std::span<const float>> gradients) {
  for (size_t t = 0; t < gradients.size(); ++t) {
    const bool whole = gradients[t].size() == plan.tables[t].size() * options_.tables[t].dim;
    DT_CHECK(whole || gradients[t].empty());
  }
  const auto carries = [&](uint32_t table) { return !gradients[table].empty(); };
  for (const MessageCut& cut : cutter_.Cut(plan.groups, routes_.for_push(), carries, true)) {
    Begin(now, {.kind = Kind::kPush,
                .executor = cut.executor,
                .begun = now,
                .push = MakePush(cut, info, plan, gradients)});
  }
}

PushRequest RequestBook::MakePush(const MessageCut& cut, const PushInfo& info,
                                  const LookupPlan& plan,
                                  std::span<const std::span<const float>> gradients) const {
  PushRequest push{.step = info.step,
                   .slice = info.slice,
                   .slices = info.slices,
                   .lr_scale = info.lr_scale,
                   .mode = info.mode,
                   .turn = info.turn,
                   .pieces = cut.pieces};
  push.groups.reserve(cut.groups.size());
  uint64_t bytes = 0;
  for (const RowGroup& group : cut.groups) {
    push.groups.push_back({group.shard, options_.wire_tables[group.table], group.rows});
    bytes += options_.tables[group.table].BytesOf(group.rows);
  }
  const WorkSpan span(kRequestWork);
  kRequestWork.Count(2 * bytes);
  push.gradients = options_.frames->Make(bytes);
  std::byte* out = push.gradients.bytes().data();
  for (const RowGroup& group : cut.groups) {
    const WireTable& wire = options_.tables[group.table];
    EncodeRows(wire.format, wire.dim,
               gradients[group.table].subspan(size_t{group.first} * wire.dim,
                                              size_t{group.rows} * wire.dim),
               out);
    out += wire.BytesOf(group.rows);
  }
  push.keys = KeysOf(cut, plan);
  return push;
}

// ------------------------------------------------------------ letters

PooledVector<RequestBook::Outgoing> RequestBook::TakeOutgoing(TimePoint now) {
  RegroupIf(now, [&](const Request& r) { return now >= r.next_send && HasMoved(r); });
  PooledVector<Outgoing> letters;
  for (Request& request : requests_) {
    if (request.answered || now < request.next_send) continue;
    request.next_send = now + options_.resend_after;
    const bool pull = request.kind == Kind::kPull;
    (pull ? request.pull.stamp : request.push.stamp) = StampFor(request.executor);
    letters.push_back(
        {request.number, request.executor, pull ? Encode(request.pull) : Encode(request.push)});
  }
  return letters;
}

void RequestBook::OnSendFailed(TimePoint now, const Outgoing& letter) {
  const auto at = std::ranges::find(requests_, letter.request, &Request::number);
  if (at != requests_.end()) at->next_send = now + kQueueIsFull;
}

PooledVector<RequestBook::Outgoing> RequestBook::Prefetch(const LookupPlan& plan, Step step) {
  PooledVector<Outgoing> letters;
  const auto all = [](uint32_t) { return true; };
  for (const MessageCut& cut : cutter_.Cut(plan.groups, routes_.for_pull(), all, false)) {
    PullRequest pull = MakePull(cut, plan);
    pull.stamp = StampFor(cut.executor);
    pull.step = step;
    pull.mode = PullMode::kPrefetch;
    letters.push_back({0, cut.executor, Encode(pull)});
  }
  return letters;
}

PooledVector<RequestBook::Outgoing> RequestBook::Complete(Step step) {
  PooledVector<Outgoing> letters;
  for (uint32_t e = 0; e < routes_.executors().size(); ++e) {
    if (!routes_.InUse(e)) continue;
    letters.push_back({0, e, Encode(CompleteRequest{.stamp = StampFor(e), .step = step})});
  }
  return letters;
}

// ------------------------------------------------------------ answers

Status RequestBook::OnAnswer(TimePoint now, uint32_t executor, Frames frames) {
  const std::string& endpoint = routes_.executors()[executor].endpoint;
  watch_.OnAnswer(endpoint);
  Result<DataReply> reply = DecodeDataReply(std::move(frames));
  if (!reply.ok()) return WithWhere(Prefixed(reply.status(), "answer of a server"), endpoint);
  const auto at = std::ranges::find(requests_, reply->request, &Request::number);
  prefetch_helps_ = prefetch_helps_ || reply->disk;
  // Unknown: a second answer to a request that was sent twice.
  if (at == requests_.end() || at->answered) return OkStatus();
  if (at->executor != executor) {
    return WithWhere(Internal("answer of a server to a request made to another one"), endpoint);
  }
  switch (reply->status.code()) {
    case StatusCode::kOk:
      break;
    case StatusCode::kResourceExhausted:  // Busy
    // The pull was parked for too long; its rows are not there yet.
    case StatusCode::kDeadlineExceeded:
      at->next_send = now + at->retry_after;
      at->retry_after = std::min<Duration>(2 * at->retry_after, kRetryMax);
      at->refusal = MessageOf(reply->status);
      return OkStatus();
    default:
      return WithWhere(reply->status, endpoint);
  }
  Request request = std::move(*at);
  requests_.erase(at);
  RecordDone(request, reply->values.size());
  const Status taken = TakeAnswer(now, *std::move(reply), request);
  if (!taken.ok()) return WithWhere(taken, endpoint);
  if (request.rows.empty()) return OkStatus();  // A push, or a pull without rows left.
  request.answered = true;
  requests_.push_back(std::move(request));
  return OkStatus();
}

// Sends parts again whose answer does not count; the others stay in the request, with their values.
Status RequestBook::TakeAnswer(TimePoint now, DataReply reply, Request& request) {
  uint64_t expected = 0;
  for (const RowGroup& g : request.rows) {
    const bool refused = std::ranges::binary_search(reply.refused, g.shard);
    if (!refused) expected += options_.tables[g.table].BytesOf(g.rows);
  }
  if (request.kind == Kind::kPull && reply.values.size() != expected) {
    return Internal("a server answered a pull with {} bytes of values, not {}", reply.values.size(),
                    expected);
  }
  bool newer = false;
  if (!reply.refused.empty()) {
    Result<bool> change = routes_.Take(reply.change);
    if (!change.ok()) return Prefixed(change.status(), "answer of a server");
    newer = *change;
  }
  if (newer) {
    RegroupIf(now, [this](const Request& other) { return !routes_.InUse(other.executor); });
  }
  request.values = std::move(reply.values);
  request.clock = reply.clock;
  if (reply.refused.empty() && StampOf(request).map == routes_.map().version) return OkStatus();
  SendAgain(now, reply.refused, request);
  return OkStatus();
}

void RequestBook::RecordDone(const Request& request, uint64_t bytes_received) const {
  Timeline* const timeline = options_.timeline;
  const bool pull = request.kind == Kind::kPull;
  const Step step = pull ? request.pull.step : request.push.step;
  if (timeline == nullptr || !timeline->Wants(step)) return;
  const bool trains =
      pull ? request.pull.mode == PullMode::kTrain : request.push.mode == PushMode::kGradients;
  if (!trains) return;
  const uint64_t sent =
      pull ? request.pull.keys.size() : request.push.keys.size() + request.push.gradients.size();
  timeline->Record({.label = {pull ? Track::kPull : Track::kPush, pull ? "pull" : "push"},
                    .step = step,
                    .slice = pull ? request.plan->batch.slice : request.push.slice,
                    .begin = request.begun,
                    .end = timeline->Now(),
                    .bytes = sent + bytes_received});
}

// ------------------------------------------------------------ waiting

// A pull without keys. Its number is no request's, so that the answer counts for nothing else.
PooledVector<RequestBook::Outgoing> RequestBook::Pings(TimePoint now) {
  PooledVector<Outgoing> letters;
  if (now < next_ping_) return letters;
  next_ping_ = now + options_.lease / 4;
  std::set<uint32_t> owing;
  for (const Request& request : requests_) {
    if (!request.answered) owing.insert(request.executor);
  }
  for (const uint32_t executor : owing) {
    const Routes::Executor& to = routes_.executors()[executor];
    PullRequest ping{.request = next_number_++, .mode = PullMode::kEvaluate};
    ping.stamp = StampFor(executor);
    letters.push_back({0, executor, Encode(ping)});
    watch_.OnAsked(to.server, to.endpoint);
  }
  return letters;
}

std::vector<ProcessId> RequestBook::Silent(TimePoint now) {
  watch_.Pass(now);
  return watch_.Silent();
}

Status RequestBook::CheckTimes(TimePoint now) const {
  for (const Request& request : requests_) {
    if (request.answered || now - request.begun < options_.timeout) continue;
    const bool pull = request.kind == Kind::kPull;
    const bool refused = !request.refusal.empty();
    return WithWhere(Timeout("the server {} a {} of step {} {} {:.0f} s{}{}",
                             refused ? "refused" : "did not answer", pull ? "pull" : "push",
                             pull ? request.pull.step : request.push.step, refused ? "for" : "in",
                             std::chrono::duration<double>(options_.timeout).count(),
                             refused ? ": " : "", request.refusal),
                     routes_.executors()[request.executor].endpoint);
  }
  return OkStatus();
}

std::optional<uint32_t> RequestBook::Awaited(const LookupPlan& plan) const {
  for (const Request& request : requests_) {
    if (!request.answered && request.plan == &plan) return request.executor;
  }
  return std::nullopt;
}

std::optional<uint32_t> RequestBook::AwaitedBefore(uint64_t end) const {
  for (const Request& request : requests_) {
    if (request.kind == Kind::kPush && request.push.turn.number < end) return request.executor;
  }
  return std::nullopt;
}

void RequestBook::BeginRows(const LookupPlan& plan, PulledRows& rows) const {
  rows.clock_ = ~Step{0};
  rows.views_.assign(plan.tables.size(), {});
  rows.copies_.resize(plan.tables.size());
  // The only answer of a pull of one fp32 table is the rows as they are: no copy is needed.
  const auto pulls = std::ranges::count(requests_, &plan, &Request::plan);
  const bool whole =
      plan.tables.size() == 1 && pulls == 1 && options_.tables[0].format == FloatFormat::kFp32;
  if (!whole) MakeRoom(plan, rows);
}

void RequestBook::MakeRoom(const LookupPlan& plan, PulledRows& rows) const {
  for (size_t t = 0; t < plan.tables.size(); ++t) {
    rows.copies_[t].resize(plan.tables[t].size() * options_.tables[t].dim);
    rows.views_[t] = rows.copies_[t];
  }
}

void RequestBook::TakeRows(const LookupPlan& plan, PulledRows& rows) {
  for (Request& request : requests_) {
    if (request.plan == &plan && request.answered) Place(plan, request, rows);
  }
  std::erase_if(requests_, [&](const Request& r) { return r.plan == &plan && r.answered; });
}

void RequestBook::Place(const LookupPlan& plan, Request& request, PulledRows& rows) const {
  rows.clock_ = std::min(rows.clock_, request.clock);
  if (rows.views_.size() == 1 && rows.views_[0].empty()) {
    const size_t all = options_.tables[0].BytesOf(plan.tables[0].size());
    if (request.values.size() == all) {
      rows.frame_ = std::move(request.values);
      rows.views_[0] = std::as_const(rows.frame_).as<float>();
      return;
    }
    MakeRoom(plan, rows);  // Some shards of the pull were refused.
  }
  const WorkSpan span(kAnswerWork);
  kAnswerWork.Count(2 * request.values.size());
  const std::byte* from = std::as_const(request.values).bytes().data();
  for (const RowGroup& g : request.rows) {
    const WireTable& wire = options_.tables[g.table];
    const std::span<float> to(rows.copies_[g.table].data() + size_t{g.first} * wire.dim,
                              size_t{g.rows} * wire.dim);
    DecodeRows(wire.format, wire.dim, from, to);
    from += wire.BytesOf(g.rows);
  }
}

}  // namespace dt::worker
