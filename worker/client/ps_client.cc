#include "worker/client/ps_client.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::worker {
namespace {

constexpr Duration kRetryBusy = milliseconds(50);      // A full queue.
constexpr Duration kRetryBusyMax = milliseconds(800);  // A request that is refused.
constexpr Duration kPoll = milliseconds(50);           // How soon a wait notices the job's end.

}  // namespace

Result<std::unique_ptr<PsClient>> PsClient::Open(std::shared_ptr<const Routes> routes,
                                                 const Stamp& stamp, Options options) {
  DT_CHECK(options.wire_tables.size() == options.tables.size());
  auto client = std::make_unique<PsClient>(std::move(routes), stamp, std::move(options));
  for (const ExecutorRoute& route : client->routes_->executors) {
    DT_TRY(auto socket, client->options_.network->Connect(route.endpoint));
    client->sockets_.push_back(std::move(socket));
  }
  return client;
}

PsClient::PsClient(std::shared_ptr<const Routes> routes, const Stamp& stamp, Options options)
    : routes_(std::move(routes)), options_(std::move(options)), stamp_(stamp) {}

// ------------------------------------------------------------ requests

void PsClient::Begin(Request request) {
  request.number = next_number_++;
  request.pull.request = request.push.request = request.number;
  request.begun = options_.clock->Now();
  SendNow(request);
  requests_.push_back(std::move(request));
}

void PsClient::SendNow(Request& request) {
  Frames frames = request.kind == Kind::kPull ? Encode(request.pull) : Encode(request.push);
  const Status sent = sockets_[request.executor]->Send(std::move(frames));
  request.next_send = options_.clock->Now() + (sent.ok() ? options_.resend_after : kRetryBusy);
}

bool PsClient::UnderWay(const Awaited& awaited) const {
  return std::ranges::any_of(requests_,
                             [&](const Request& r) { return !r.answered && awaited(r); });
}

// Receives an answer, if one comes soon. REQUIRES: UnderWay(awaited).
Status PsClient::WaitForOne(const Awaited& awaited, TimePoint& checked) {
  const auto waiting =
      std::ranges::find_if(requests_, [&](const Request& r) { return !r.answered && awaited(r); });
  const uint32_t executor = waiting->executor;
  Result<Frames> frames = sockets_[executor]->Receive(kPoll);
  if (frames.ok()) {
    DT_TRY_STATUS(OnReply(executor, *std::move(frames)));
  } else if (frames.status().code() != StatusCode::kDeadlineExceeded) {
    return WithWhere(frames.status(), routes_->executors[executor].endpoint);
  }
  if (options_.clock->Now() - checked < kPoll) return OkStatus();
  DT_TRY_STATUS(CheckTimes());
  checked = options_.clock->Now();
  return OkStatus();
}

// Ends waits that have no point any more, and resends what is overdue.
Status PsClient::CheckTimes() {
  if (options_.interrupted) DT_TRY_STATUS(options_.interrupted());
  const TimePoint now = options_.clock->Now();
  for (Request& request : requests_) {
    if (request.answered) continue;
    if (now - request.begun >= options_.patience) {
      const bool pull = request.kind == Kind::kPull;
      const bool refused = !request.refusal.empty();
      return WithWhere(Timeout("the server {} a {} of step {} {} {:.0f} s{}{}",
                               refused ? "refused" : "did not answer", pull ? "pull" : "push",
                               pull ? request.pull.step : request.push.step, refused ? "for" : "in",
                               std::chrono::duration<double>(options_.patience).count(),
                               refused ? ": " : "", request.refusal),
                       routes_->executors[request.executor].endpoint);
    }
    if (now >= request.next_send) SendNow(request);
  }
  return OkStatus();
}

Status PsClient::OnReply(uint32_t executor, Frames frames) {
  const std::string& endpoint = routes_->executors[executor].endpoint;
  Result<DataReply> reply = DecodeDataReply(std::move(frames));
  if (!reply.ok()) return WithWhere(Prefixed(reply.status(), "answer of a server"), endpoint);
  const auto at = std::ranges::find(requests_, reply->request, &Request::number);
  lookahead_helps_ = lookahead_helps_ || reply->disk;
  // Unknown: the answer to a resend of something that is done.
  if (at == requests_.end() || at->answered) return OkStatus();
  if (at->executor != executor) {
    return WithWhere(Internal("answer of a server to a request made to another one"), endpoint);
  }
  switch (reply->status.code()) {
    case StatusCode::kOk:
      break;
    case StatusCode::kResourceExhausted:  // Busy
    case StatusCode::kDeadlineExceeded:   // Parked too long: the rows are not there yet.
      at->next_send = options_.clock->Now() + at->retry_after;
      at->retry_after = std::min<Duration>(2 * at->retry_after, kRetryBusyMax);
      at->refusal = MessageOf(reply->status);
      return OkStatus();
    default:
      return WithWhere(reply->status, endpoint);
  }
  RecordDone(*at, reply->values.size());
  if (at->kind == Kind::kPush) {
    requests_.erase(at);
  } else {
    at->answered = true;
    at->values = std::move(reply->values);
    at->clock = reply->clock;
  }
  return OkStatus();
}

void PsClient::RecordDone(const Request& request, uint64_t bytes_received) const {
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

// ------------------------------------------------------------ parts

struct PsClient::PartCut {
  PooledVector<RowGroup> groups;
  size_t rows = 0;
};

// Whole groups as long as they fit; a group that does not is cut. Tables that carry nothing are
// left out.
PooledVector<PsClient::PartCut> PsClient::CutParts(
    const ExecutorKeys& keys, const std::function<bool(uint32_t)>& carries) const {
  PooledVector<PartCut> parts(1);
  size_t bytes = 0;
  for (RowGroup group : keys.groups) {
    if (!carries(group.table)) continue;
    const WireTable& wire = options_.tables[group.table];
    const size_t row_bytes = sizeof(Key) + RowBytes(wire.format, wire.dim);
    while (group.rows > 0) {
      const size_t fit =
          (options_.part_bytes_max - std::min(bytes, options_.part_bytes_max)) / row_bytes;
      if (fit == 0 && bytes > 0) {
        parts.emplace_back();
        bytes = 0;
        continue;
      }
      const auto rows =
          static_cast<uint32_t>(std::min<size_t>(group.rows, std::max<size_t>(fit, 1)));
      PartCut& part = parts.back();
      part.groups.push_back({group.shard, group.table, group.first, rows});
      part.rows += rows;
      bytes += rows * row_bytes;
      group.first += rows;
      group.rows -= rows;
    }
  }
  return parts;
}

// Shares the memory of the executor's keys where it is all of them.
Frame PsClient::KeysOf(const PartCut& part, const ExecutorKeys& keys,
                       const LookupPlan& plan) const {
  if (part.rows * sizeof(Key) == keys.keys.size()) return keys.keys;
  Frame frame = options_.network->frames().Make(part.rows * sizeof(Key));
  Key* out = frame.as<Key>().data();
  for (const RowGroup& group : part.groups) {
    out = std::copy_n(plan.tables[group.table].begin() + group.first, group.rows, out);
  }
  return frame;
}

// ------------------------------------------------------------ pull

void PsClient::BeginPull(const LookupPlan& plan, Step step, PullMode mode) {
  DT_CHECK(std::ranges::none_of(requests_, [&](const Request& r) { return r.plan == &plan; }));
  for (uint32_t e = 0; e < plan.executors.size(); ++e) {
    const ExecutorKeys& keys = plan.executors[e];
    if (keys.groups.empty()) continue;
    for (PartCut& part : CutParts(keys, [](uint32_t) { return true; })) {
      PullRequest pull{.stamp = stamp_, .step = step, .mode = mode};
      for (const RowGroup& group : part.groups) {
        pull.groups.push_back({group.shard, options_.wire_tables[group.table], group.rows});
      }
      pull.keys = KeysOf(part, keys, plan);
      Begin({.kind = Kind::kPull,
             .executor = e,
             .plan = &plan,
             .pull = std::move(pull),
             .groups = std::move(part.groups)});
    }
  }
}

Status PsClient::FinishPull(const LookupPlan& plan, PulledRows& rows) {
  MakeRoom(plan, rows);
  TimePoint checked = options_.clock->Now();
  const auto of_plan = [&](const Request& r) { return r.plan == &plan; };
  for (;;) {
    for (Request& request : requests_) {
      if (of_plan(request) && request.answered) DT_TRY_STATUS(Place(request, rows));
    }
    std::erase_if(requests_, [&](const Request& r) { return of_plan(r) && r.answered; });
    if (!UnderWay(of_plan)) return OkStatus();
    DT_TRY_STATUS(WaitForOne(of_plan, checked));
  }
}

// The only answer of a pull of one fp32 table is the rows as they are, and needs no copy.
void PsClient::MakeRoom(const LookupPlan& plan, PulledRows& rows) const {
  const size_t tables = plan.tables.size();
  const auto pulls = std::ranges::count(requests_, &plan, &Request::plan);
  rows.whole_ = tables == 1 && pulls == 1 && options_.tables[0].format == FloatFormat::kFp32;
  rows.clock_ = ~Step{0};
  rows.views_.assign(tables, {});
  rows.copies_.resize(tables);
  for (size_t t = 0; t < tables && !rows.whole_; ++t) {
    rows.copies_[t].resize(plan.tables[t].size() * options_.tables[t].dim);
    rows.views_[t] = rows.copies_[t];
  }
}

Status PsClient::Place(Request& request, PulledRows& rows) const {
  rows.clock_ = std::min(rows.clock_, request.clock);
  uint64_t expected = 0;
  for (const RowGroup& g : request.groups) expected += options_.tables[g.table].BytesOf(g.rows);
  if (request.values.size() != expected) {
    return WithWhere(Internal("a server answered a pull with {} bytes of values, not {}",
                              request.values.size(), expected),
                     routes_->executors[request.executor].endpoint);
  }
  if (rows.whole_) {
    rows.frame_ = std::move(request.values);
    rows.views_[0] = std::as_const(rows.frame_).as<float>();
    return OkStatus();
  }
  const std::byte* from = std::as_const(request.values).bytes().data();
  for (const RowGroup& g : request.groups) {
    const WireTable& wire = options_.tables[g.table];
    const std::span<float> to(rows.copies_[g.table].data() + size_t{g.first} * wire.dim,
                              size_t{g.rows} * wire.dim);
    DecodeRows(wire.format, wire.dim, from, to);
    from += wire.BytesOf(g.rows);
  }
  return OkStatus();
}

void PsClient::Lookahead(const LookupPlan& plan, Step step) {
  for (uint32_t e = 0; e < plan.executors.size(); ++e) {
    const ExecutorKeys& keys = plan.executors[e];
    if (keys.groups.empty()) continue;
    PullRequest request{
        .stamp = stamp_, .step = step, .mode = PullMode::kLookahead, .keys = keys.keys};
    for (const RowGroup& group : keys.groups) {
      request.groups.push_back({group.shard, options_.wire_tables[group.table], group.rows});
    }
    sockets_[e]->Send(Encode(request)).IgnoreError();
  }
}

// ------------------------------------------------------------ push

void PsClient::BeginPush(const PushInfo& info, const LookupPlan& plan,
                         std::span<const std::span<const float>> gradients) {
  for (size_t t = 0; t < gradients.size(); ++t) {
    const bool whole = gradients[t].size() == plan.tables[t].size() * options_.tables[t].dim;
    DT_CHECK(whole || gradients[t].empty());
  }
  for (uint32_t e = 0; e < plan.executors.size(); ++e) {
    const PooledVector<PartCut> parts =
        CutParts(plan.executors[e], [&](uint32_t table) { return !gradients[table].empty(); });
    for (uint32_t i = 0; i < parts.size(); ++i) {
      PushRequest push = MakePart(parts[i], e, plan, gradients);
      push.stamp = stamp_;
      push.step = info.step;
      push.slice = info.slice;
      push.slices = info.slices;
      push.part = i;
      push.parts = static_cast<uint32_t>(parts.size());
      push.rate_scale = info.rate_scale;
      push.worker = info.worker;
      push.first_step = info.first_step;
      push.mode = info.mode;
      Begin({.kind = Kind::kPush, .executor = e, .push = std::move(push)});
    }
  }
}

PushRequest PsClient::MakePart(const PartCut& part, uint32_t executor, const LookupPlan& plan,
                               std::span<const std::span<const float>> gradients) const {
  PushRequest push;
  // Every shard is named, so that the clock of each moves: those without rows by an empty group.
  const std::vector<ShardId>& shards = routes_->executors[executor].shards;
  size_t next = 0;
  const auto name_until = [&](size_t end) {
    for (; next < end; ++next) {
      const bool named = !push.groups.empty() && push.groups.back().shard == shards[next];
      if (!named) push.groups.push_back({shards[next], 0, 0});
    }
  };
  for (const RowGroup& group : part.groups) {
    name_until(std::ranges::lower_bound(shards, group.shard) - shards.begin());
    push.groups.push_back({group.shard, options_.wire_tables[group.table], group.rows});
  }
  name_until(shards.size());
  uint64_t bytes = 0;
  for (const RowGroup& g : part.groups) bytes += options_.tables[g.table].BytesOf(g.rows);
  push.gradients = options_.network->frames().Make(bytes);
  std::byte* out = push.gradients.bytes().data();
  for (const RowGroup& group : part.groups) {
    const WireTable& wire = options_.tables[group.table];
    EncodeRows(wire.format, wire.dim,
               gradients[group.table].subspan(size_t{group.first} * wire.dim,
                                              size_t{group.rows} * wire.dim),
               out);
    out += wire.BytesOf(group.rows);
  }
  push.keys = KeysOf(part, plan.executors[executor], plan);
  return push;
}

void PsClient::BeginSetAbsent(const LookupPlan& plan,
                              std::span<const std::span<const float>> values) {
  BeginPush({.mode = PushMode::kSetAbsent}, plan, values);
}

Status PsClient::WaitForPushes() { return WaitForPushesBefore(~Step{0}); }

Status PsClient::WaitForPushesBefore(Step end) {
  const auto before = [end](const Request& r) {
    return r.kind == Kind::kPush && r.push.step < end;
  };
  TimePoint checked = options_.clock->Now();
  while (UnderWay(before)) DT_TRY_STATUS(WaitForOne(before, checked));
  return OkStatus();
}

Status PsClient::Complete(Step step) {
  for (size_t e = 0; e < sockets_.size(); ++e) {
    const Status sent = sockets_[e]->Send(Encode(CompleteRequest{.stamp = stamp_, .step = step}));
    // A full queue is no loss: the next step's requests imply it.
    if (!sent.ok() && sent.code() != StatusCode::kResourceExhausted) {
      return WithWhere(sent, routes_->executors[e].endpoint);
    }
  }
  return OkStatus();
}

}  // namespace dt::worker
