#include "worker/client/ps_client.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::worker {
namespace {

constexpr Duration kRetryBusy = milliseconds(50);
constexpr Duration kPoll = milliseconds(50);  // How soon a wait notices the job's end.

}  // namespace

Result<std::unique_ptr<PsClient>> PsClient::Open(std::shared_ptr<const Routes> routes,
                                                 const Stamp& stamp, Options options) {
  DT_CHECK(options.wire_tables.size() == options.dims.size());
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
  // The copy shares the frames' memory, so that a resend needs no second one.
  Frames frames = request.kind == Kind::kPull ? Encode(PullRequest(request.pull))
                                              : Encode(PushRequest(request.push));
  const Status sent = sockets_[request.executor]->Send(std::move(frames));
  request.next_send = options_.clock->Now() + (sent.ok() ? options_.resend_after : kRetryBusy);
}

Status PsClient::Wait(Kind kind) {
  TimePoint checked = options_.clock->Now();
  for (;;) {
    const auto waiting = std::ranges::find_if(
        requests_, [&](const Request& r) { return r.kind == kind && !r.answered; });
    if (waiting == requests_.end()) return OkStatus();
    const uint32_t executor = waiting->executor;
    Result<Frames> frames = sockets_[executor]->Receive(kPoll);
    if (frames.ok()) {
      DT_TRY_STATUS(OnReply(executor, *std::move(frames)));
    } else if (frames.status().code() != StatusCode::kDeadlineExceeded) {
      return WithWhere(frames.status(), routes_->executors[executor].endpoint);
    }
    if (options_.clock->Now() - checked < kPoll) continue;
    DT_TRY_STATUS(CheckTimes());
    checked = options_.clock->Now();
  }
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
      at->next_send = options_.clock->Now() + kRetryBusy;
      at->refusal = MessageOf(reply->status);
      return OkStatus();
    default:
      return WithWhere(reply->status, endpoint);
  }
  if (at->kind == Kind::kPush) {
    requests_.erase(at);
  } else {
    at->answered = true;
    at->values = std::move(reply->values);
  }
  return OkStatus();
}

std::vector<KeyGroup> PsClient::WireGroups(std::span<const RowGroup> groups) const {
  std::vector<KeyGroup> wire;
  wire.reserve(groups.size());
  for (const RowGroup& group : groups) {
    wire.push_back({group.shard, options_.wire_tables[group.table], group.rows});
  }
  return wire;
}

// ------------------------------------------------------------ pull

void PsClient::BeginPull(const LookupPlan& plan, Step step, PullMode mode) {
  DT_CHECK(std::ranges::none_of(requests_, [](const Request& r) { return r.kind == Kind::kPull; }));
  for (uint32_t e = 0; e < plan.executors.size(); ++e) {
    const ExecutorKeys& keys = plan.executors[e];
    if (keys.groups.empty()) continue;
    Begin({.kind = Kind::kPull,
           .executor = e,
           .pull = {.stamp = stamp_,
                    .step = step,
                    .mode = mode,
                    .groups = WireGroups(keys.groups),
                    .keys = keys.keys}});
  }
}

Status PsClient::FinishPull(const LookupPlan& plan, PulledRows& rows) {
  DT_TRY_STATUS(Wait(Kind::kPull));
  Status placed = PlaceRows(plan, rows);
  std::erase_if(requests_, [](const Request& r) { return r.kind == Kind::kPull; });
  return placed;
}

Status PsClient::PlaceRows(const LookupPlan& plan, PulledRows& rows) {
  const size_t tables = plan.tables.size();
  rows.views_.resize(tables);
  rows.copies_.resize(tables);
  // The answer of one executor for one table is the rows as they are.
  const bool whole = tables == 1 && plan.executors.size() == 1;
  for (size_t t = 0; t < tables && !whole; ++t) {
    rows.copies_[t].resize(plan.tables[t].size() * options_.dims[t]);
    rows.views_[t] = rows.copies_[t];
  }
  if (whole) rows.views_[0] = {};
  for (Request& request : requests_) {
    if (request.kind != Kind::kPull) continue;
    const std::vector<RowGroup>& groups = plan.executors[request.executor].groups;
    size_t expected = 0;
    for (const RowGroup& g : groups) expected += size_t{g.rows} * options_.dims[g.table];
    if (request.values.size() != expected * sizeof(float)) {
      return WithWhere(Internal("a server answered a pull with {} bytes of values, not {}",
                                request.values.size(), expected * sizeof(float)),
                       routes_->executors[request.executor].endpoint);
    }
    if (whole) {
      rows.frame_ = std::move(request.values);
      rows.views_[0] = std::as_const(rows.frame_).as<float>();
      continue;
    }
    const float* from = std::as_const(request.values).as<float>().data();
    for (const RowGroup& g : groups) {
      const size_t dim = options_.dims[g.table];
      std::copy_n(from, g.rows * dim, rows.copies_[g.table].data() + g.first * dim);
      from += g.rows * dim;
    }
  }
  return OkStatus();
}

// ------------------------------------------------------------ push

struct PsClient::PartCut {
  std::vector<RowGroup> groups;
  size_t rows = 0, floats = 0;
};

// Whole groups as long as they fit; a group that does not is cut. Tables without gradient are left
// out.
std::vector<PsClient::PartCut> PsClient::CutParts(
    const ExecutorKeys& keys, std::span<const std::span<const float>> gradients) const {
  std::vector<PartCut> parts(1);
  size_t bytes = 0;
  for (RowGroup group : keys.groups) {
    if (gradients[group.table].empty()) continue;
    const size_t dim = options_.dims[group.table];
    const size_t row_bytes = sizeof(Key) + dim * sizeof(float);
    while (group.rows > 0) {
      size_t fit = (options_.part_bytes_max - std::min(bytes, options_.part_bytes_max)) / row_bytes;
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
      part.floats += rows * dim;
      bytes += rows * row_bytes;
      group.first += rows;
      group.rows -= rows;
    }
  }
  return parts;
}

void PsClient::BeginPush(const PushInfo& info, const LookupPlan& plan,
                         std::span<const std::span<const float>> gradients) {
  for (size_t t = 0; t < gradients.size(); ++t) {
    const bool whole = gradients[t].size() == plan.tables[t].size() * options_.dims[t];
    DT_CHECK(whole || gradients[t].empty());
  }
  for (uint32_t e = 0; e < plan.executors.size(); ++e) {
    const std::vector<PartCut> parts = CutParts(plan.executors[e], gradients);
    for (uint32_t i = 0; i < parts.size(); ++i) {
      PushRequest push = MakePart(parts[i], e, plan, gradients);
      push.stamp = stamp_;
      push.step = info.step;
      push.slice = info.slice;
      push.slices = info.slices;
      push.part = i;
      push.parts = static_cast<uint32_t>(parts.size());
      push.rate_scale = info.rate_scale;
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
  push.gradients = Frame::Of(part.floats * sizeof(float));
  float* floats = push.gradients.as<float>().data();
  for (const RowGroup& group : part.groups) {
    const size_t dim = options_.dims[group.table];
    floats =
        std::copy_n(gradients[group.table].data() + group.first * dim, group.rows * dim, floats);
  }
  const ExecutorKeys& keys = plan.executors[executor];
  if (part.rows * sizeof(Key) == keys.keys.size()) {
    push.keys = keys.keys;
    return push;
  }
  push.keys = Frame::Of(part.rows * sizeof(Key));
  Key* out = push.keys.as<Key>().data();
  for (const RowGroup& group : part.groups) {
    out = std::copy_n(plan.tables[group.table].begin() + group.first, group.rows, out);
  }
  return push;
}

Status PsClient::WaitForPushes() { return Wait(Kind::kPush); }

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
