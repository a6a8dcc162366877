#include "test/unit/worker/train/scripted_rank.h"

#include <limits>

#include <gtest/gtest.h>

#include "common/config/dense_tables.h"
#include "scheduler/plan/plan.h"
#include "test/support/tiny_model.h"
#include "worker/train/dense_blocks.h"

namespace dt::worker {
namespace {

class ScriptedSocket : public ClientSocket {
 public:
  ScriptedSocket(uint32_t rank, Script& script, ManualClock& clock, ScriptedServer& server,
                 Journal& journal)
      : rank_(rank), script_(script), clock_(clock), server_(server), journal_(journal) {}

  Status Send(Frames message) override {
    DT_TRY_STATUS(script_.Reach("send"));
    auto answer = server_.Answer(rank_, std::move(message), script_);
    if (answer.has_value()) answers_.push_back(*std::move(answer));
    return script_.Reach("sent");
  }
  Result<Frames> Receive(Duration timeout) override {
    if (answers_.empty() && !script_.dead()) {
      clock_.Advance(timeout);
      return Timeout("nothing has arrived");
    }
    DT_TRY_STATUS(script_.Reach("receive"));
    ScriptedServer::Answered answer = std::move(answers_.front());
    answers_.pop_front();
    journal_.Add(answer.when_received);
    return std::move(answer.frames);
  }

 private:
  const uint32_t rank_;
  Script& script_;
  ManualClock& clock_;
  ScriptedServer& server_;
  Journal& journal_;
  std::deque<ScriptedServer::Answered> answers_;
};

class ScriptedNetwork : public Network {
 public:
  ScriptedNetwork(uint32_t rank, Script& script, ManualClock& clock, ScriptedServer& server,
                  Journal& journal)
      : rank_(rank), script_(script), clock_(clock), server_(server), journal_(journal) {}

  Result<std::unique_ptr<ServerSocket>> Bind(const std::string&) override {
    return NotYet("nobody listens here");
  }
  Result<std::unique_ptr<ClientSocket>> Connect(const std::string&) override {
    return std::make_unique<ScriptedSocket>(rank_, script_, clock_, server_, journal_);
  }
  uint64_t bytes_sent() const override { return 0; }
  uint64_t bytes_received() const override { return 0; }

 private:
  const uint32_t rank_;
  Script& script_;
  ManualClock& clock_;
  ScriptedServer& server_;
  Journal& journal_;
};

class ScriptedMesh : public Mesh {
 public:
  ScriptedMesh(std::unique_ptr<Mesh> inner, Script& script, Journal& journal)
      : inner_(std::move(inner)), script_(script), journal_(journal) {}

  uint32_t rank() const override { return inner_->rank(); }
  uint32_t size() const override { return inner_->size(); }
  Status Begin(const MessageTag& tag, std::string_view operation) override {
    side_ = operation == "barrier" ? Script::Side::kTrain : Script::Side::kExchange;
    operation_ = side_ == Script::Side::kTrain ? "barrier" : "exchange";
    part_ = tag.slice;
    DT_TRY_STATUS(script_.Reach("enter " + operation_, side_));
    journal_.Add({rank(), "enter " + operation_, 0, part_});
    return inner_->Begin(tag, operation);
  }
  Status Post(std::span<const Outgoing> send, std::span<const Incoming> receive) override {
    return inner_->Post(send, receive);
  }
  Status WaitFor(size_t received) override { return inner_->WaitFor(received); }
  void Cancel() override {
    Mesh::Cancel();
    inner_->Cancel();
  }
  Status End() override {
    DT_TRY_STATUS(inner_->End());
    journal_.Add({rank(), "leave " + operation_, 0, part_});
    return script_.Reach("leave " + operation_, side_);
  }

 private:
  const std::unique_ptr<Mesh> inner_;
  Script& script_;
  Journal& journal_;
  std::string operation_;
  Script::Side side_ = Script::Side::kTrain;
  SliceIndex part_ = 0;
};

std::vector<ColumnSpec> ScriptedColumns() {
  return {test::TinyColumn("label", ColumnType::kFloat, ColumnRole::kLabel),
          test::TinyColumn("C1", ColumnType::kId), test::TinyColumn("I1", ColumnType::kFloat)};
}

class MadeUpSamples : public Dataset {
 public:
  MadeUpSamples(uint64_t rows, ReadRows* gathered) : rows_(rows), gathered_(gathered) {}
  uint64_t rows() const override { return rows_; }
  const std::vector<ColumnSpec>& columns() const override { return columns_; }
  uint64_t fingerprint() const override { return 1; }
  const OpenStats& open_stats() const override { return stats_; }
  Status Gather(std::span<const uint64_t> rows, Batch& batch) const override {
    batch.samples = static_cast<uint32_t>(rows.size());
    batch.columns.assign(3, {});
    if (gathered_ != nullptr) {
      gathered_->rows.insert(gathered_->rows.end(), rows.begin(), rows.end());
      gathered_->epochs.insert(batch.epoch);
    }
    for (const uint64_t row : rows) {
      const float label = row == kBadRow ? 7.0f : static_cast<float>(row % 2);
      batch.columns[0].floats.push_back(label);
      batch.columns[1].keys.push_back(row * row % 29);
      batch.columns[2].floats.push_back(static_cast<float>(row % 5) / 4);
    }
    return OkStatus();
  }

 private:
  const uint64_t rows_;
  ReadRows* const gathered_;
  const std::vector<ColumnSpec> columns_ = ScriptedColumns();
  const OpenStats stats_;
};

// Fills in the slices of `read`, one after the other. Each is a point: the reader that fails finds
// a bad row. Without a script it may read on another thread.
std::function<bool(LookupPlan&)> Next(const std::vector<SliceToRead>& read, Script* script,
                                      std::atomic<size_t>& asked_for) {
  return [&read, script, &asked_for](LookupPlan& plan) {
    const size_t at = asked_for++;
    if (at >= read.size()) return false;
    const SliceToRead& slice = read[at];
    const uint64_t first = 16 * slice.step + 4 * slice.slice;
    for (uint64_t row = first; row < first + slice.samples; ++row) plan.rows.push_back(row);
    if (script != nullptr && !script->Reach("read").ok()) plan.rows.assign(1, kBadRow);
    plan.batch.step = slice.step;
    plan.batch.slice = slice.slice;
    plan.batch.samples = slice.samples;
    plan.batch.step_samples = slice.step_samples;
    plan.batch.first_sample = first;
    return true;
  };
}

}  // namespace

void Journal::Add(Happening happening) {
  MutexLock lock(mutex_);
  all_.push_back(std::move(happening));
}

std::vector<Happening> Journal::all() const {
  MutexLock lock(mutex_);
  return all_;
}

void Script::FailAt(const Point& point, Fault fault) {
  MutexLock lock(mutex_);
  fail_at_ = point;
  fault_ = fault;
}

Status Script::Reach(std::string_view point, Side side) {
  MutexLock lock(mutex_);
  std::vector<std::string>& reached = reached_[static_cast<size_t>(side)];
  const size_t at = reached.size();
  reached.emplace_back(point);
  const bool here = side == fail_at_.side && at == fail_at_.number;
  failed_ = failed_ || here;
  const bool fails = fault_ == Fault::kForGood ? failed_ : here;
  return fails ? Unavailable("the script ends at point {}, {}", at, point) : OkStatus();
}

Script::Points Script::reached() const {
  MutexLock lock(mutex_);
  return reached_;
}

bool Script::dead() const {
  MutexLock lock(mutex_);
  return failed_ && fault_ == Fault::kForGood;
}

// ------------------------------------------------------------ the server

float ScriptedServer::ValueOf(uint32_t table, Key key, size_t column) {
  return 0.01f * static_cast<float>((key * 7 + column * 3 + table * 5) % 11) - 0.05f;
}

std::optional<ScriptedServer::Answered> ScriptedServer::Answer(uint32_t rank, Frames frames,
                                                               Script& script) {
  auto request = DecodeDataRequest(std::move(frames), tables_);
  EXPECT_TRUE(request.ok()) << ToText(request.status());
  if (!request.ok()) return std::nullopt;
  if (request->kind == DataRequest::Kind::kComplete) {
    journal_.Add({rank, "complete", request->complete.step, 0});
    return std::nullopt;
  }
  if (request->kind == DataRequest::Kind::kPush) {
    const PushRequest& push = request->push;
    const bool sets = push.mode == PushMode::kSetAbsent;
    journal_.Add({rank, sets ? "set" : "push", push.step, push.slice});
    if (sets) return Answered{Encode(DataReply{.request = push.request}), {rank, "is set", 0, 0}};
    Take(push);
    if (held_back_ == push.step) return std::nullopt;
    return Answered{Encode(DataReply{.request = push.request}),
                    {rank, "acknowledged", push.step, push.slice}};
  }
  const PullRequest& pull = request->pull;
  if (pull.mode == PullMode::kPrefetch) {
    journal_.Add({rank, "prefetch", pull.step, 0});
    return std::nullopt;
  }
  journal_.Add({rank, "pull", pull.step, 0});
  const bool broken = !script.Reach("rows").ok();
  {
    MutexLock lock(mutex_);
    const auto keys = pull.keys.as<Key>();
    pulled_.emplace_back(keys.begin(), keys.end());
  }
  DataReply reply{.request = pull.request, .values = RowsOf(pull, broken), .disk = disk_};
  return Answered{Encode(reply), {rank, "rows", pull.step, 0}};
}

Frame ScriptedServer::RowsOf(const PullRequest& pull, bool broken) const {
  std::vector<float> values;
  const Key* key = pull.keys.as<Key>().data();
  for (const KeyGroup& group : pull.groups) {
    for (uint32_t i = 0; i < group.rows; ++i, ++key) {
      for (size_t c = 0; c < tables_[group.table].dim; ++c) {
        values.push_back(broken ? std::numeric_limits<float>::quiet_NaN()
                                : ValueOf(group.table, *key, c));
      }
    }
  }
  return Frame::CopyOf(std::as_bytes(std::span(values)));
}

void ScriptedServer::Take(const PushRequest& push) {
  EXPECT_EQ(push.pieces.size(), kShards) << "every shard's clock moves";
  std::string content = fmt::format("{} {} {};", push.lr_scale, push.slices, push.turn.order);
  for (const KeyGroup& group : push.groups) {
    content += fmt::format(" {}:{}:{}", group.shard.value(), group.table, group.rows);
  }
  for (const Frame* frame : {&push.keys, &push.gradients}) {
    const auto bytes = frame->as<char>();
    content.append(bytes.begin(), bytes.end());
  }
  MutexLock lock(mutex_);
  const auto [at, first] =
      pushes_.try_emplace({push.step, push.slice, push.turn.worker.value()}, content);
  EXPECT_TRUE(first || at->second == content) << "what is sent again is the same";
}

std::map<std::tuple<Step, SliceIndex, uint32_t>, std::string> ScriptedServer::pushes() const {
  MutexLock lock(mutex_);
  return pushes_;
}

std::vector<std::vector<Key>> ScriptedServer::pulled() const {
  MutexLock lock(mutex_);
  return pulled_;
}

// ------------------------------------------------------------ a rank

JobConfig ScriptedJob(const RankSetting& setting) {
  using Ints = std::vector<int64_t>;
  JobConfig job = test::TinyJob({
      test::TinyNode("e", "lookup", {"C1"}, {{"table", "emb"}}, 1),
      test::TinyNode("deep", "mlp", {"e", "I1"}, {{"units", Ints{3}}, {"batch_norm", true}}, 2),
      test::TinyNode("logit", "dense", {"deep"}, {{"units", int64_t{1}}}, 3),
  });
  job.train.batch_size = 16;
  job.train.staleness = setting.staleness;
  job.optimizer.clip_norm = 5;
  return job;
}

Plan ScriptedPlan(const RankSetting& setting) {
  const JobConfig job = ScriptedJob(setting);
  Result<Plan> plan = scheduler::MakePlan({job, ScriptedColumns(), setting.slices});
  EXPECT_TRUE(plan.ok()) << ToText(plan.status());
  return plan.ok() ? *std::move(plan) : Plan();
}

std::vector<WireTable> WireTablesOf(const JobConfig& job) {
  std::vector<WireTable> tables;
  for (const TableConfig& table : TablesOnServers(job)) tables.push_back({table.dim, table.wire});
  return tables;
}

ScriptedRank::ScriptedRank(const RankSetting& setting_in, std::unique_ptr<Mesh> mesh,
                           ScriptedServer& server, Journal& journal)
    : setting(setting_in),
      job(ScriptedJob(setting)),
      team(std::make_unique<ScriptedMesh>(std::move(mesh), script, journal)) {
  engine = Engine::Create(ScriptedPlan(setting),
                          {.pool = pool, .team = &team, .overlap = setting.overlap})
               .value();
  network = std::make_unique<ScriptedNetwork>(team.mesh->rank(), script, clock, server, journal);
  PsClient::Options options{.network = network.get(), .clock = &clock};
  options.requests.wire_tables = WireTables(engine->plan().graph, job.model.tables);
  std::vector<DenseBlockTable> fixed;
  if (job.train.asynchronous()) fixed = DenseBlocks(job, *engine).tables();
  for (const DenseBlockTable& table : fixed) options.requests.wire_tables.push_back(table.wire);
  const std::vector<WireTable> wire = WireTablesOf(job);
  for (const uint32_t t : options.requests.wire_tables) options.requests.tables.push_back(wire[t]);
  const std::vector<uint32_t> wire_tables = options.requests.wire_tables;
  const View view{Generation(1),
                  ViewNumber(1),
                  MakeShardMap(MapVersion(1), kShards, {{ProcessId(1), {"made up"}}}),
                  {}};
  client = PsClient::Open(view, std::move(options)).value();
  data = MakeSamples(kRowsInAll);
  reader = std::make_unique<SliceReader>(SliceReader::Options{
      .data = *data,
      .plan = engine->plan(),
      .shards = kShards,
      .wire_tables = wire_tables,
      .fixed = fixed,
      .purpose = setting.purpose,
      .spare = spare,
      .interrupted = [] { return OkStatus(); },
      .next = Next(setting.read, setting.read_ahead ? nullptr : &script, asked_for),
      .ahead = setting.read_ahead,
      .timeline = nullptr});
  puller = std::make_unique<RowPuller>(*reader, *client, setting.cache, setting.timeline);
}

ScriptedRank::~ScriptedRank() { engine->Abandon(); }

std::unique_ptr<Dataset> MakeSamples(uint64_t rows, ReadRows* gathered) {
  return std::make_unique<MadeUpSamples>(rows, gathered);
}

std::vector<std::unique_ptr<Mesh>> PlainMeshes(uint32_t ranks,
                                               std::function<Status()> interrupted) {
  return MakeMemoryMesh(ranks, {.interrupted = std::move(interrupted)});
}

}  // namespace dt::worker
