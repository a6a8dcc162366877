#include <cstring>

#include <flatbuffers/flatbuffers.h>

#include "common/wire/aligned.h"
#include "common/wire/budget_reader.h"
#include "common/wire/control.h"
#include "control_generated.h"

namespace dt {
namespace {

namespace fbs = dt::control_fbs;

Problem ReadProblem(BudgetReader& in, const fbs::Problem* from) {
  if (from == nullptr) return {};
  return {in.Text(from->what()), in.Text(from->where()), in.Text(from->hint())};
}

ProcessStats ReadStats(const fbs::Stats* from) {
  if (from == nullptr) return {};
  return {from->cpu_seconds(), from->peak_rss_bytes(), from->bytes_sent(), from->bytes_received()};
}

// The code of a status on the wire.
StatusCode ReadCode(BudgetReader& in, uint32_t code) {
  return in.Code(code, StatusCode::kUnauthenticated);
}

ColumnSpec ReadColumn(BudgetReader& in, const fbs::Column& from) {
  ColumnSpec to;
  to.name = in.Text(from.name());
  to.type = in.Code(from.type(), ColumnType::kStrings);
  to.role = in.Code(from.role(), ColumnRole::kWeight);
  to.separator = in.Text(from.separator());
  to.length = from.length();
  to.max_len = from.max_len();
  to.fill = from.fill();
  to.weighted = from.weighted();
  to.transform = in.Text(from.transform());
  to.of = in.Texts(from.of());
  return to;
}

ServerInfo ReadServer(BudgetReader& in, const fbs::Server& from) {
  return {ProcessId(from.id()), in.Texts(from.endpoints())};
}

ShardMap ReadShardMap(BudgetReader& in, const fbs::ShardMap* from) {
  ShardMap map;
  if (!in.Require(from != nullptr)) return map;
  map.version = MapVersion(from->version());
  const std::vector<uint32_t> members = in.Numbers(from->chain_members());
  size_t next = 0;
  for (uint32_t length : in.Numbers(from->chain_lengths())) {
    if (!in.Require(length <= members.size() - next)) return map;
    if (!in.Charge(1, sizeof(Chain)) || !in.Charge(length, sizeof(ProcessId))) return map;
    Chain& chain = map.chains.emplace_back();
    for (uint32_t i = 0; i < length; ++i) chain.emplace_back(members[next++]);
  }
  map.servers = in.Each(from->servers(), ReadServer);
  in.Require(next == members.size() && CheckShardMap(map).ok());
  return map;
}

DeviceInfo ReadDevice(BudgetReader& in, const fbs::Device& from) {
  return {in.Code(from.kind(), DeviceKind::kEmulated), from.index(), in.Text(from.name()),
          from.memory_bytes(), in.Texts(from.without_kernel())};
}

JoinMessage Read(BudgetReader& in, const fbs::Join& m) {
  JoinMessage to;
  to.role = in.Code(m.role(), Role::kWorker);
  to.incarnation = Incarnation(m.incarnation());
  to.wire_version = m.wire_version();
  to.version = in.Text(m.version());
  to.pid = m.pid();
  to.host = in.Text(m.host());
  to.job_fingerprint = m.job_fingerprint();
  to.endpoints = in.Texts(m.endpoints());
  to.claim = m.claim();
  to.devices = in.Each(m.devices(), ReadDevice);
  to.id = ProcessId(m.id());
  to.address = in.Text(m.address());
  return to;
}

DataReadyMessage Read(BudgetReader& in, const fbs::DataReady& m) {
  return {m.train_rows(),   m.valid_rows(),  m.test_rows(),
          m.rows_skipped(), m.fingerprint(), in.Each(m.columns(), ReadColumn)};
}

ReadyMessage Read(BudgetReader&, const fbs::Ready&) { return {}; }

TableReport ReadTable(BudgetReader& in, const fbs::TableReport& from) {
  return {in.Text(from.name()), from.rows(),         from.rows_in_memory(), from.rows_on_disk(),
          from.bytes(),         from.checksum_low(), from.checksum_high(),  from.pushes_refused(),
          from.rows_expired(),  from.rows_touched(), from.rows_fetched(),   from.rows_written()};
}

HeartbeatMessage Read(BudgetReader& in, const fbs::Heartbeat& m) {
  return {m.step(), m.samples(), ReadStats(m.stats()), m.log_bytes(),
          in.Each(m.tables(), ReadTable)};
}

TrainDone Read(BudgetReader& in, const fbs::TrainDone& m) {
  return {m.end_step(), m.samples(), in.Numbers(m.loss_sums()), in.Numbers(m.first_losses()),
          m.seconds()};
}

LossScores ReadLoss(BudgetReader& in, const fbs::LossScores& m) {
  LossScores to;
  if (m.parts() != nullptr) {
    if (!in.Require(HasAlignedItems(*m.parts(), alignof(fbs::Part)))) return to;
    if (!in.Charge(m.parts()->size(), sizeof(EvaluatePart))) return to;
    for (const fbs::Part* p : *m.parts()) {
      to.parts.push_back({p->batch(), p->samples(), p->loss_sum(), p->label_sum(),
                          p->prediction_sum(), p->hits()});
    }
  }
  to.scores = in.Numbers(m.scores());
  to.labels = in.Numbers(m.labels());
  in.Require(to.scores.size() == to.labels.size());
  return to;
}

EvaluateDone Read(BudgetReader& in, const fbs::EvaluateDone& m) {
  return {in.Each(m.losses(), ReadLoss)};
}

CheckpointFile ReadFile(BudgetReader& in, const fbs::File& from) {
  return {in.Text(from.name()), from.bytes(), from.digest()};
}

SaveDone Read(BudgetReader& in, const fbs::SaveDone& m) {
  return {in.Each(m.files(), ReadFile), m.writing()};
}

LoadDone Read(BudgetReader&, const fbs::LoadDone&) { return {}; }

FinishDone Read(BudgetReader& in, const fbs::FinishDone& m) {
  FinishDone to;
  to.tables = in.Each(m.tables(), ReadTable);
  to.dense_checksum = in.Text(m.dense_checksum());
  to.stats = ReadStats(m.stats());
  return to;
}

OrderDoneMessage Read(BudgetReader& in, const fbs::OrderDone& m) {
  OrderDoneMessage to{m.order(), {}};
  if (!in.Require(m.result() != nullptr)) return to;
  switch (m.result_type()) {
    case fbs::Done::TrainDone:
      to.result = Read(in, *m.result_as_TrainDone());
      break;
    case fbs::Done::EvaluateDone:
      to.result = Read(in, *m.result_as_EvaluateDone());
      break;
    case fbs::Done::SaveDone:
      to.result = Read(in, *m.result_as_SaveDone());
      break;
    case fbs::Done::LoadDone:
      to.result = Read(in, *m.result_as_LoadDone());
      break;
    case fbs::Done::FinishDone:
      to.result = Read(in, *m.result_as_FinishDone());
      break;
    default:
      in.Require(false);
  }
  return to;
}

FailedMessage Read(BudgetReader& in, const fbs::Failed& m) {
  return {ReadCode(in, m.code()), ReadProblem(in, m.problem())};
}

SavedMessage Read(BudgetReader& in, const fbs::Saved& m) {
  return {m.step(), in.Each(m.files(), ReadFile)};
}

LeavingMessage Read(BudgetReader&, const fbs::Leaving&) { return {}; }

KvPutMessage Read(BudgetReader& in, const fbs::KvPut& m) {
  return {in.Text(m.key()), in.Bytes(m.value())};
}

KvGetMessage Read(BudgetReader& in, const fbs::KvGet& m) { return {in.Text(m.key())}; }

StatusRequestMessage Read(BudgetReader&, const fbs::StatusRequest&) { return {}; }

WelcomeMessage Read(BudgetReader&, const fbs::Welcome& m) {
  return {ProcessId(m.id()), Term(m.term()), Duration(m.lease_ns()), m.returned()};
}

RefusedMessage Read(BudgetReader& in, const fbs::Refused& m) {
  return {ReadCode(in, m.code()), ReadProblem(in, m.problem())};
}

StartMessage Read(BudgetReader& in, const fbs::Start& m) {
  StartMessage to;
  to.generation = Generation(m.generation());
  to.slices = m.slices();
  to.map = ReadShardMap(in, m.map());
  for (uint32_t worker : in.Numbers(m.workers())) to.workers.emplace_back(worker);
  to.plan = in.Bytes(m.plan());
  for (uint64_t table : in.Numbers(m.tables_on_worker())) to.tables_on_worker.emplace_back(table);
  return to;
}

TrainOrder Read(BudgetReader& in, const fbs::TrainOrder& m) {
  return {m.epoch(),    m.epoch_first_step(), m.first_step(),
          m.end_step(), m.rate_scale(),       in.Numbers(m.slice_owner())};
}

EvaluateOrder Read(BudgetReader& in, const fbs::EvaluateOrder& m) {
  return {m.step(), in.Code(m.split(), SplitKind::kTest)};
}

SaveOrder Read(BudgetReader& in, const fbs::SaveOrder& m) { return {m.step(), in.Text(m.name())}; }

LoadOrder Read(BudgetReader& in, const fbs::LoadOrder& m) {
  return {m.step(), in.Text(m.folder()), Generation(m.generation())};
}

FinishOrder Read(BudgetReader&, const fbs::FinishOrder&) { return {}; }

OrderMessage Read(BudgetReader& in, const fbs::Order& m) {
  OrderMessage to{m.number(), {}};
  if (!in.Require(m.what() != nullptr)) return to;
  switch (m.what_type()) {
    case fbs::What::TrainOrder:
      to.what = Read(in, *m.what_as_TrainOrder());
      break;
    case fbs::What::EvaluateOrder:
      to.what = Read(in, *m.what_as_EvaluateOrder());
      break;
    case fbs::What::SaveOrder:
      to.what = Read(in, *m.what_as_SaveOrder());
      break;
    case fbs::What::LoadOrder:
      to.what = Read(in, *m.what_as_LoadOrder());
      break;
    case fbs::What::FinishOrder:
      to.what = Read(in, *m.what_as_FinishOrder());
      break;
    default:
      in.Require(false);
  }
  return to;
}

KvValueMessage Read(BudgetReader& in, const fbs::KvValue& m) {
  return {in.Text(m.key()), in.Bytes(m.value())};
}

StopMessage Read(BudgetReader& in, const fbs::Stop& m) {
  return {ReadCode(in, m.code()), ReadProblem(in, m.problem())};
}

StatusReplyMessage Read(BudgetReader& in, const fbs::StatusReply& m) { return {in.Text(m.json())}; }

SplitRequestMessage Read(BudgetReader&, const fbs::SplitRequest& m) { return {m.order()}; }

SplitMessage Read(BudgetReader& in, const fbs::Split& m) {
  in.Require(m.begin() <= m.end());
  return {m.order(), m.begin(), m.end()};
}

KeptMessage Read(BudgetReader& in, const fbs::Kept& m) {
  return {Generation(m.generation()), m.step(), in.Text(m.folder())};
}

Result<ControlMessage> ReadBody(BudgetReader& in, const fbs::Control& control) {
  switch (control.body_type()) {
#define DT_BODY(Name)   \
  case fbs::Body::Name: \
    return ControlMessage(Read(in, *control.body_as_##Name()))
    DT_BODY(Join);
    DT_BODY(DataReady);
    DT_BODY(Ready);
    DT_BODY(Heartbeat);
    DT_BODY(OrderDone);
    DT_BODY(Failed);
    DT_BODY(Saved);
    DT_BODY(Leaving);
    DT_BODY(KvPut);
    DT_BODY(KvGet);
    DT_BODY(StatusRequest);
    DT_BODY(Welcome);
    DT_BODY(Refused);
    DT_BODY(Start);
    DT_BODY(Order);
    DT_BODY(KvValue);
    DT_BODY(Stop);
    DT_BODY(StatusReply);
    DT_BODY(SplitRequest);
    DT_BODY(Split);
    DT_BODY(Kept);
#undef DT_BODY
    case fbs::Body::NONE:
      break;
  }
  return Malformed("a control message without a known body");
}

}  // namespace

Result<ControlMessage> DecodeControl(std::span<const std::byte> bytes) {
  // Aligned: small messages arrive at any address.
  constexpr size_t kWord = sizeof(uint64_t);
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kWord != 0) {
    std::vector<uint64_t> aligned((bytes.size() + kWord - 1) / kWord);
    std::memcpy(aligned.data(), bytes.data(), bytes.size());
    return DecodeControl({reinterpret_cast<const std::byte*>(aligned.data()), bytes.size()});
  }
  const uint8_t* data = reinterpret_cast<const uint8_t*>(bytes.data());
  flatbuffers::Verifier verifier(data, bytes.size());
  if (bytes.size() < 8 || !fbs::VerifyControlBuffer(verifier)) {
    return Malformed("a control message of {} bytes that does not follow the schema", bytes.size());
  }
  BudgetReader in(bytes.size());
  const fbs::Control& control = *fbs::GetControl(data);
  if (control.body() == nullptr) return Malformed("a control message without a body");
  DT_TRY(ControlMessage message, ReadBody(in, control));
  if (!in.ok()) return Malformed("a {} message with values out of range", NameOf(message));
  return message;
}

}  // namespace dt
