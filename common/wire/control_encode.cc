#include <flatbuffers/flatbuffers.h>

#include "common/wire/control.h"
#include "control_generated.h"

namespace dt {
namespace {

namespace fbs = dt::control_fbs;
using Builder = flatbuffers::FlatBufferBuilder;
using Text = flatbuffers::Offset<flatbuffers::String>;
// What a union holds: its tag and the table.
template <class Tag>
struct Tagged {
  Tag tag;
  flatbuffers::Offset<void> table;
};
using Body = Tagged<fbs::Body>;

Text TextOf(Builder& to, std::string_view text) {
  return to.CreateString(text.data(), text.size());
}

auto BytesOf(Builder& to, std::string_view bytes) {
  return to.CreateVector(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

auto TextsOf(Builder& to, const std::vector<std::string>& texts) {
  std::vector<Text> all;
  for (const std::string& text : texts) all.push_back(TextOf(to, text));
  return to.CreateVector(all);
}

auto ProblemTable(Builder& to, const Problem& problem) {
  const Text what = TextOf(to, problem.what);
  const Text where = TextOf(to, problem.where);
  return fbs::CreateProblem(to, what, where, TextOf(to, problem.hint));
}

fbs::Stats StatsOf(const ProcessStats& stats) {
  return {stats.cpu_seconds, stats.peak_rss_bytes, stats.bytes_sent, stats.bytes_received};
}

auto ColumnTable(Builder& to, const ColumnSpec& c) {
  const Text name = TextOf(to, c.name);
  const Text separator = TextOf(to, c.separator);
  const Text transform = TextOf(to, c.transform);
  return fbs::CreateColumn(to, name, static_cast<uint8_t>(c.type), static_cast<uint8_t>(c.role),
                           separator, c.length, c.max_len, c.fill, c.weighted, transform,
                           TextsOf(to, c.of));
}

auto ShardMapTable(Builder& to, const ShardMap& map) {
  std::vector<uint32_t> lengths, members;
  for (const Chain& chain : map.chains) {
    lengths.push_back(static_cast<uint32_t>(chain.size()));
    for (ProcessId member : chain) members.push_back(member.value());
  }
  std::vector<flatbuffers::Offset<fbs::Server>> servers;
  for (const ServerInfo& server : map.servers) {
    servers.push_back(fbs::CreateServer(to, server.id.value(), TextsOf(to, server.endpoints)));
  }
  const auto length_vector = to.CreateVector(lengths);
  const auto member_vector = to.CreateVector(members);
  return fbs::CreateShardMap(to, map.version.value(), length_vector, member_vector,
                             to.CreateVector(servers));
}

Body Encode(Builder& to, const JoinMessage& m) {
  const Text version = TextOf(to, m.version);
  const Text host = TextOf(to, m.host);
  const auto endpoints = TextsOf(to, m.endpoints);
  std::vector<flatbuffers::Offset<fbs::Device>> devices;
  for (const DeviceInfo& d : m.devices) {
    devices.push_back(fbs::CreateDevice(to, static_cast<uint8_t>(d.kind), d.index,
                                        TextOf(to, d.name), d.memory_bytes,
                                        TextsOf(to, d.without_kernel)));
  }
  const auto device_vector = to.CreateVector(devices);
  return {fbs::Body::Join,
          fbs::CreateJoin(to, static_cast<uint8_t>(m.role), m.incarnation.value(), m.wire_version,
                          version, m.pid, host, m.job_fingerprint, endpoints, m.claim,
                          device_vector, m.id.value(), TextOf(to, m.address))
              .Union()};
}

Body Encode(Builder& to, const DataReadyMessage& m) {
  std::vector<flatbuffers::Offset<fbs::Column>> columns;
  for (const ColumnSpec& column : m.columns) columns.push_back(ColumnTable(to, column));
  return {fbs::Body::DataReady,
          fbs::CreateDataReady(to, m.train_rows, m.valid_rows, m.test_rows, m.rows_skipped,
                               m.fingerprint, to.CreateVector(columns))
              .Union()};
}

Body Encode(Builder& to, const ReadyMessage&) {
  return {fbs::Body::Ready, fbs::CreateReady(to).Union()};
}

auto TableVector(Builder& to, const std::vector<TableReport>& reports) {
  std::vector<flatbuffers::Offset<fbs::TableReport>> tables;
  for (const TableReport& t : reports) {
    tables.push_back(fbs::CreateTableReport(to, TextOf(to, t.name), t.rows, t.rows_in_memory,
                                            t.rows_on_disk, t.bytes, t.checksum_low,
                                            t.checksum_high, t.pushes_refused, t.rows_expired,
                                            t.rows_touched, t.rows_fetched, t.rows_written));
  }
  return to.CreateVector(tables);
}

Body Encode(Builder& to, const HeartbeatMessage& m) {
  const fbs::Stats stats = StatsOf(m.stats);
  const auto tables = TableVector(to, m.tables);
  return {fbs::Body::Heartbeat,
          fbs::CreateHeartbeat(to, m.step, m.samples, &stats, m.log_bytes, tables).Union()};
}

using Done = Tagged<fbs::Done>;

Done EncodeDone(Builder& to, const TrainDone& m) {
  const auto sums = to.CreateVector(m.loss_sums);
  const auto first = to.CreateVector(m.first_losses);
  return {fbs::Done::TrainDone,
          fbs::CreateTrainDone(to, m.end_step, m.samples, sums, first, m.seconds).Union()};
}

flatbuffers::Offset<fbs::LossScores> Encode(Builder& to, const LossScores& m) {
  std::vector<fbs::Part> parts;
  for (const EvaluatePart& p : m.parts) {
    parts.emplace_back(p.batch, p.samples, p.loss_sum, p.label_sum, p.prediction_sum, p.hits);
  }
  const auto part_vector = to.CreateVectorOfStructs(parts);
  const auto scores = to.CreateVector(m.scores);
  return fbs::CreateLossScores(to, part_vector, scores, to.CreateVector(m.labels));
}

Done EncodeDone(Builder& to, const EvaluateDone& m) {
  std::vector<flatbuffers::Offset<fbs::LossScores>> losses;
  for (const LossScores& loss : m.losses) losses.push_back(Encode(to, loss));
  return {fbs::Done::EvaluateDone, fbs::CreateEvaluateDone(to, to.CreateVector(losses)).Union()};
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fbs::File>>> FilesOf(
    Builder& to, const std::vector<CheckpointFile>& from) {
  std::vector<flatbuffers::Offset<fbs::File>> files;
  for (const CheckpointFile& file : from) {
    files.push_back(fbs::CreateFile(to, TextOf(to, file.name), file.bytes, file.digest));
  }
  return to.CreateVector(files);
}

Done EncodeDone(Builder& to, const SaveDone& m) {
  const auto files = FilesOf(to, m.files);
  return {fbs::Done::SaveDone, fbs::CreateSaveDone(to, files, m.writing).Union()};
}

Done EncodeDone(Builder& to, const LoadDone&) {
  return {fbs::Done::LoadDone, fbs::CreateLoadDone(to).Union()};
}

Done EncodeDone(Builder& to, const FinishDone& m) {
  const fbs::Stats stats = StatsOf(m.stats);
  const auto table_vector = TableVector(to, m.tables);
  const Text dense = TextOf(to, m.dense_checksum);
  return {fbs::Done::FinishDone, fbs::CreateFinishDone(to, table_vector, dense, &stats).Union()};
}

Body Encode(Builder& to, const OrderDoneMessage& m) {
  const Done done =
      std::visit([&](const auto& result) { return EncodeDone(to, result); }, m.result);
  return {fbs::Body::OrderDone, fbs::CreateOrderDone(to, m.order, done.tag, done.table).Union()};
}

Body Encode(Builder& to, const FailedMessage& m) {
  return {
      fbs::Body::Failed,
      fbs::CreateFailed(to, static_cast<uint32_t>(m.code), ProblemTable(to, m.problem)).Union()};
}

Body Encode(Builder& to, const SavedMessage& m) {
  const auto files = FilesOf(to, m.files);
  return {fbs::Body::Saved, fbs::CreateSaved(to, m.step, files).Union()};
}

Body Encode(Builder& to, const LeavingMessage&) {
  return {fbs::Body::Leaving, fbs::CreateLeaving(to).Union()};
}

Body Encode(Builder& to, const KvPutMessage& m) {
  const Text key = TextOf(to, m.key);
  return {fbs::Body::KvPut, fbs::CreateKvPut(to, key, BytesOf(to, m.value)).Union()};
}

Body Encode(Builder& to, const KvGetMessage& m) {
  return {fbs::Body::KvGet, fbs::CreateKvGet(to, TextOf(to, m.key)).Union()};
}

Body Encode(Builder& to, const StatusRequestMessage&) {
  return {fbs::Body::StatusRequest, fbs::CreateStatusRequest(to).Union()};
}

Body Encode(Builder& to, const WelcomeMessage& m) {
  return {
      fbs::Body::Welcome,
      fbs::CreateWelcome(to, m.id.value(), m.term.value(), m.lease.count(), m.returned).Union()};
}

Body Encode(Builder& to, const RefusedMessage& m) {
  return {
      fbs::Body::Refused,
      fbs::CreateRefused(to, static_cast<uint32_t>(m.code), ProblemTable(to, m.problem)).Union()};
}

Body Encode(Builder& to, const StartMessage& m) {
  std::vector<uint32_t> workers;
  for (ProcessId worker : m.workers) workers.push_back(worker.value());
  std::vector<uint64_t> tables;
  for (TableId table : m.tables_on_worker) tables.push_back(table.value());
  const auto map = ShardMapTable(to, m.map);
  const auto worker_vector = to.CreateVector(workers);
  const auto table_vector = to.CreateVector(tables);
  return {fbs::Body::Start, fbs::CreateStart(to, m.generation.value(), m.slices, map, worker_vector,
                                             BytesOf(to, m.plan), table_vector)
                                .Union()};
}

using What = Tagged<fbs::What>;

What EncodeOrder(Builder& to, const TrainOrder& m) {
  const auto owners = to.CreateVector(m.slice_owner);
  return {fbs::What::TrainOrder,
          fbs::CreateTrainOrder(to, m.epoch, m.epoch_first_step, m.first_step, m.end_step,
                                m.rate_scale, owners)
              .Union()};
}

What EncodeOrder(Builder& to, const EvaluateOrder& m) {
  return {fbs::What::EvaluateOrder,
          fbs::CreateEvaluateOrder(to, m.step, static_cast<uint8_t>(m.split)).Union()};
}

What EncodeOrder(Builder& to, const SaveOrder& m) {
  return {fbs::What::SaveOrder, fbs::CreateSaveOrder(to, m.step, TextOf(to, m.name)).Union()};
}

What EncodeOrder(Builder& to, const LoadOrder& m) {
  const Text folder = TextOf(to, m.folder);
  return {fbs::What::LoadOrder,
          fbs::CreateLoadOrder(to, m.step, folder, m.generation.value()).Union()};
}

What EncodeOrder(Builder& to, const FinishOrder&) {
  return {fbs::What::FinishOrder, fbs::CreateFinishOrder(to).Union()};
}

Body Encode(Builder& to, const OrderMessage& m) {
  const What what = std::visit([&](const auto& order) { return EncodeOrder(to, order); }, m.what);
  return {fbs::Body::Order, fbs::CreateOrder(to, m.number, what.tag, what.table).Union()};
}

Body Encode(Builder& to, const KvValueMessage& m) {
  const Text key = TextOf(to, m.key);
  return {fbs::Body::KvValue, fbs::CreateKvValue(to, key, BytesOf(to, m.value)).Union()};
}

Body Encode(Builder& to, const StopMessage& m) {
  return {fbs::Body::Stop,
          fbs::CreateStop(to, static_cast<uint32_t>(m.code), ProblemTable(to, m.problem)).Union()};
}

Body Encode(Builder& to, const StatusReplyMessage& m) {
  return {fbs::Body::StatusReply, fbs::CreateStatusReply(to, TextOf(to, m.json)).Union()};
}

Body Encode(Builder& to, const SplitRequestMessage& m) {
  return {fbs::Body::SplitRequest, fbs::CreateSplitRequest(to, m.order).Union()};
}

Body Encode(Builder& to, const SplitMessage& m) {
  return {fbs::Body::Split, fbs::CreateSplit(to, m.order, m.begin, m.end).Union()};
}

Body Encode(Builder& to, const KeptMessage& m) {
  return {fbs::Body::Kept,
          fbs::CreateKept(to, m.generation.value(), m.step, TextOf(to, m.folder)).Union()};
}

}  // namespace

std::string EncodeControl(const ControlMessage& message) {
  Builder to;
  const Body body = std::visit([&](const auto& m) { return Encode(to, m); }, message);
  to.Finish(fbs::CreateControl(to, body.tag, body.table), fbs::ControlIdentifier());
  return {reinterpret_cast<const char*>(to.GetBufferPointer()), to.GetSize()};
}

}  // namespace dt
