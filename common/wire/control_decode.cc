#include <cstring>

#include <flatbuffers/flatbuffers.h>

#include "common/wire/aligned.h"
#include "common/wire/control.h"
#include "control_generated.h"

namespace dt {
namespace {

namespace fbs = dt::control_fbs;

// Absent fields read as empty. Enumerations are checked: what is out of range makes `ok` false.
class Reader {
 public:
  static std::string Text(const flatbuffers::String* text) {
    return text == nullptr ? std::string() : text->str();
  }
  static std::string Bytes(const flatbuffers::Vector<uint8_t>* bytes) {
    if (bytes == nullptr || bytes->size() == 0) return {};
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  }
  template <class T>
  static std::vector<T> Numbers(const flatbuffers::Vector<T>* from) {
    if (from == nullptr || from->size() == 0) return {};
    std::vector<T> to(from->size());
    std::memcpy(to.data(), from->data(), to.size() * sizeof(T));
    return to;
  }
  static std::vector<std::string> Texts(
      const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* from) {
    std::vector<std::string> to;
    if (from == nullptr) return to;
    for (const flatbuffers::String* text : *from) to.push_back(Text(text));
    return to;
  }
  template <class Enum>
  Enum Checked(uint8_t value, Enum last) {
    if (value <= static_cast<uint8_t>(last)) return static_cast<Enum>(value);
    ok = false;
    return last;
  }
  StatusCode Code(uint32_t value) {
    if (value > static_cast<uint32_t>(StatusCode::kUnauthenticated)) ok = false;
    return ok ? static_cast<StatusCode>(value) : StatusCode::kUnknown;
  }
  static Problem ReadProblem(const fbs::Problem* from) {
    if (from == nullptr) return {};
    return {Text(from->what()), Text(from->where()), Text(from->hint())};
  }
  static ProcessStats ReadStats(const fbs::Stats* from) {
    if (from == nullptr) return {};
    return {from->cpu_seconds(), from->peak_rss_bytes(), from->bytes_sent(),
            from->bytes_received()};
  }

  bool ok = true;
};

ColumnSpec ReadColumn(Reader& in, const fbs::Column& from) {
  ColumnSpec to;
  to.name = in.Text(from.name());
  to.type = in.Checked(from.type(), ColumnType::kStrings);
  to.role = in.Checked(from.role(), ColumnRole::kWeight);
  to.separator = in.Text(from.separator());
  to.length = from.length();
  to.max_len = from.max_len();
  to.fill = from.fill();
  to.weighted = from.weighted();
  to.transform = in.Text(from.transform());
  to.of = in.Texts(from.of());
  return to;
}

ShardMap ReadShardMap(Reader& in, const fbs::ShardMap* from) {
  ShardMap map;
  if (from == nullptr) {
    in.ok = false;
    return map;
  }
  map.version = MapVersion(from->version());
  const std::vector<uint32_t> members = in.Numbers(from->chain_members());
  size_t next = 0;
  for (uint32_t length : in.Numbers(from->chain_lengths())) {
    if (length > members.size() - next) {
      in.ok = false;
      return map;
    }
    Chain& chain = map.chains.emplace_back();
    for (uint32_t i = 0; i < length; ++i) chain.emplace_back(members[next++]);
  }
  if (from->servers() != nullptr) {
    for (const fbs::Server* server : *from->servers()) {
      map.servers.push_back({ProcessId(server->id()), in.Texts(server->endpoints())});
    }
  }
  in.ok = in.ok && next == members.size() && CheckShardMap(map).ok();
  return map;
}

JoinMessage Read(Reader& in, const fbs::Join& m) {
  JoinMessage to;
  to.role = in.Checked(m.role(), Role::kWorker);
  to.incarnation = Incarnation(m.incarnation());
  to.wire_version = m.wire_version();
  to.version = in.Text(m.version());
  to.pid = m.pid();
  to.host = in.Text(m.host());
  to.job_fingerprint = m.job_fingerprint();
  to.endpoints = in.Texts(m.endpoints());
  to.claim = m.claim();
  if (m.devices() == nullptr) return to;
  for (const fbs::Device* device : *m.devices()) {
    to.devices.push_back({in.Checked(device->kind(), DeviceKind::kEmulated), device->index(),
                          in.Text(device->name()), device->memory_bytes(),
                          in.Texts(device->without_kernel())});
  }
  return to;
}

DataReadyMessage Read(Reader& in, const fbs::DataReady& m) {
  DataReadyMessage to{m.train_rows(),   m.valid_rows(),  m.test_rows(),
                      m.rows_skipped(), m.fingerprint(), {}};
  if (m.columns() == nullptr) return to;
  for (const fbs::Column* column : *m.columns()) to.columns.push_back(ReadColumn(in, *column));
  return to;
}

ReadyMessage Read(Reader&, const fbs::Ready&) { return {}; }

std::vector<TableReport> ReadTables(
    Reader& in, const flatbuffers::Vector<flatbuffers::Offset<fbs::TableReport>>* tables) {
  std::vector<TableReport> reports;
  if (tables == nullptr) return reports;
  for (const fbs::TableReport* t : *tables) {
    reports.push_back({in.Text(t->name()), t->rows(), t->rows_in_memory(), t->rows_on_disk(),
                       t->bytes(), t->checksum_low(), t->checksum_high(), t->pushes_refused(),
                       t->rows_expired(), t->rows_touched(), t->rows_fetched(), t->rows_written()});
  }
  return reports;
}

HeartbeatMessage Read(Reader& in, const fbs::Heartbeat& m) {
  return {m.step(),      m.samples(),
          m.loss(),      in.ReadStats(m.stats()),
          m.log_bytes(), ReadTables(in, m.tables())};
}

TrainDone Read(Reader&, const fbs::TrainDone& m) {
  return {m.end_step(), m.samples(), m.loss_sum(), m.seconds()};
}

LossScores Read(Reader& in, const fbs::LossScores& m) {
  LossScores to;
  if (m.parts() != nullptr) {
    in.ok = in.ok && HasAlignedItems(*m.parts(), alignof(fbs::Part));
    if (!in.ok) return to;
    for (const fbs::Part* p : *m.parts()) {
      to.parts.push_back({p->batch(), p->samples(), p->loss_sum(), p->label_sum(),
                          p->prediction_sum(), p->hits()});
    }
  }
  to.scores = in.Numbers(m.scores());
  to.labels = in.Numbers(m.labels());
  in.ok = in.ok && to.scores.size() == to.labels.size();
  return to;
}

EvaluateDone Read(Reader& in, const fbs::EvaluateDone& m) {
  EvaluateDone to;
  if (m.losses() == nullptr) return to;
  for (const fbs::LossScores* loss : *m.losses()) to.losses.push_back(Read(in, *loss));
  return to;
}

std::vector<CheckpointFile> ReadFiles(
    Reader& in, const flatbuffers::Vector<flatbuffers::Offset<fbs::File>>* files) {
  std::vector<CheckpointFile> to;
  if (files == nullptr) return to;
  for (const fbs::File* f : *files) {
    to.push_back({in.Text(f->name()), f->bytes(), f->digest()});
  }
  return to;
}

SaveDone Read(Reader& in, const fbs::SaveDone& m) {
  return {ReadFiles(in, m.files()), m.writing()};
}

LoadDone Read(Reader&, const fbs::LoadDone&) { return {}; }

FinishDone Read(Reader& in, const fbs::FinishDone& m) {
  FinishDone to;
  to.tables = ReadTables(in, m.tables());
  to.dense_checksum = in.Text(m.dense_checksum());
  to.stats = in.ReadStats(m.stats());
  return to;
}

OrderDoneMessage Read(Reader& in, const fbs::OrderDone& m) {
  OrderDoneMessage to{m.order(), {}};
  if (m.result() == nullptr) {
    in.ok = false;
    return to;
  }
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
      in.ok = false;
  }
  return to;
}

FailedMessage Read(Reader& in, const fbs::Failed& m) {
  return {in.Code(m.code()), in.ReadProblem(m.problem())};
}

SavedMessage Read(Reader& in, const fbs::Saved& m) { return {m.step(), ReadFiles(in, m.files())}; }

LeavingMessage Read(Reader&, const fbs::Leaving&) { return {}; }

KvPutMessage Read(Reader& in, const fbs::KvPut& m) {
  return {in.Text(m.key()), in.Bytes(m.value())};
}

KvGetMessage Read(Reader& in, const fbs::KvGet& m) { return {in.Text(m.key())}; }

StatusRequestMessage Read(Reader&, const fbs::StatusRequest&) { return {}; }

WelcomeMessage Read(Reader&, const fbs::Welcome& m) {
  return {ProcessId(m.id()), Term(m.term()), Duration(m.lease_ns()), m.returned()};
}

RefusedMessage Read(Reader& in, const fbs::Refused& m) {
  return {in.Code(m.code()), in.ReadProblem(m.problem())};
}

StartMessage Read(Reader& in, const fbs::Start& m) {
  StartMessage to;
  to.generation = Generation(m.generation());
  to.slices = m.slices();
  to.map = ReadShardMap(in, m.map());
  for (uint32_t worker : in.Numbers(m.workers())) to.workers.emplace_back(worker);
  to.plan = in.Bytes(m.plan());
  for (uint64_t table : in.Numbers(m.tables_on_worker())) to.tables_on_worker.emplace_back(table);
  return to;
}

TrainOrder Read(Reader& in, const fbs::TrainOrder& m) {
  return {m.epoch(),    m.epoch_first_step(), m.first_step(),
          m.end_step(), m.rate_scale(),       in.Numbers(m.slice_owner())};
}

EvaluateOrder Read(Reader& in, const fbs::EvaluateOrder& m) {
  return {m.step(), in.Checked(m.split(), SplitKind::kTest)};
}

SaveOrder Read(Reader& in, const fbs::SaveOrder& m) { return {m.step(), in.Text(m.name())}; }

LoadOrder Read(Reader& in, const fbs::LoadOrder& m) {
  return {m.step(), in.Text(m.folder()), Generation(m.generation())};
}

FinishOrder Read(Reader&, const fbs::FinishOrder&) { return {}; }

OrderMessage Read(Reader& in, const fbs::Order& m) {
  OrderMessage to{m.number(), {}};
  if (m.what() == nullptr) {
    in.ok = false;
    return to;
  }
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
      in.ok = false;
  }
  return to;
}

KvValueMessage Read(Reader& in, const fbs::KvValue& m) {
  return {in.Text(m.key()), in.Bytes(m.value())};
}

StopMessage Read(Reader& in, const fbs::Stop& m) {
  return {in.Code(m.code()), in.ReadProblem(m.problem())};
}

StatusReplyMessage Read(Reader& in, const fbs::StatusReply& m) { return {in.Text(m.json())}; }

SplitRequestMessage Read(Reader&, const fbs::SplitRequest& m) { return {m.order()}; }

SplitMessage Read(Reader& in, const fbs::Split& m) {
  in.ok = in.ok && m.begin() <= m.end();
  return {m.order(), m.begin(), m.end()};
}

KeptMessage Read(Reader& in, const fbs::Kept& m) {
  return {Generation(m.generation()), m.step(), in.Text(m.folder())};
}

Result<ControlMessage> ReadBody(Reader& in, const fbs::Control& control) {
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
  Reader in;
  const fbs::Control& control = *fbs::GetControl(data);
  if (control.body() == nullptr) return Malformed("a control message without a body");
  DT_TRY(ControlMessage message, ReadBody(in, control));
  if (!in.ok) return Malformed("a {} message with values out of range", NameOf(message));
  return message;
}

}  // namespace dt
