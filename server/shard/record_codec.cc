#include "server/shard/record_codec.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "common/base/hash.h"

namespace dt::server {
namespace {

constexpr Duration kElapsedMax = std::chrono::hours(24 * 366);  // No turn takes longer.

struct RecordHead {
  uint64_t position = 0;
  uint64_t step = 0;  // The contribution's step, or Record::step.
  // The turn of the contribution's sender.
  uint64_t view = 0, order = 0, number = 0, clock = 0, settled = 0;
  uint64_t elapsed_ns = 0;
  uint32_t shard = 0;
  uint32_t kind = 0;
  uint32_t slice = 0, piece = 0, pieces = 0;
  float lr_scale = 0;
  uint32_t worker = 0;
  uint32_t groups = 0;
};
static_assert(sizeof(RecordHead) == 96);

struct GroupHead {
  uint32_t table = 0, rows = 0;
};

template <class T>
void Append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Owns the memory that the spans of a decoded contribution point into.
struct Memory {
  Frame keys, gradients;
  std::vector<GroupView> groups;
};

Status Bad(std::string_view what) { return Malformed("a record of a shard: {}", what); }

Result<GroupView> TakeGroup(const GroupHead& head, std::span<const TableSpec> tables,
                            std::span<const Key>& keys, std::span<const std::byte>& gradients) {
  if (head.table >= tables.size()) return Bad("an unknown table");
  const TableSpec& table = tables[head.table];
  if (head.rows > keys.size()) return Bad("it has fewer keys than rows");
  const uint64_t bytes = WireTable{table.dim, table.wire}.BytesOf(head.rows);
  if (bytes > gradients.size()) return Bad("it has fewer gradients than rows");
  const GroupView group{head.table, keys.first(head.rows), gradients.first(bytes)};
  keys = keys.subspan(head.rows);
  gradients = gradients.subspan(bytes);
  return group;
}

Status CheckShard(const GroupView& group, const TableSpec& table, ShardId shard, uint32_t shards) {
  for (const Key key : group.keys) {
    if (ShardOf(table.id, key, shards) != shard) return Bad("a key of another shard");
  }
  return OkStatus();
}

}  // namespace

RecordBytes Encode(ShardId shard, const Record& record) {
  const Contribution& part = record.contribution;
  const bool has_rows =
      record.kind == RecordKind::kContribution || record.kind == RecordKind::kFirstValues;
  RecordHead head{.position = record.position,
                  .step = has_rows ? part.step : record.step,
                  .view = part.turn.view.value(),
                  .order = part.turn.order,
                  .number = part.turn.number,
                  .clock = part.turn.clock,
                  .settled = part.turn.settled,
                  .elapsed_ns = static_cast<uint64_t>(record.elapsed.count()),
                  .shard = shard.value(),
                  .kind = static_cast<uint32_t>(record.kind),
                  .slice = part.slice,
                  .piece = part.piece,
                  .pieces = part.pieces,
                  .lr_scale = part.lr_scale,
                  .worker = part.turn.worker.value(),
                  .groups = static_cast<uint32_t>(part.groups.size())};
  RecordBytes bytes{
      .head = {}, .keys = KeysOf(part), .gradients = GradientsOf(part), .owner = part.owner};
  bytes.head.reserve(sizeof(head) + part.groups.size() * sizeof(GroupHead));
  Append(bytes.head, head);
  for (const GroupView& group : part.groups) {
    Append(bytes.head, GroupHead{group.table, static_cast<uint32_t>(group.keys.size())});
  }
  if (record.kind == RecordKind::kWorkers) {
    const auto ids = std::make_shared<std::vector<Key>>();
    for (const ProcessId id : record.workers) ids->push_back(id.value());
    bytes.keys = std::as_bytes(std::span(*ids));
    bytes.owner = ids;
  }
  return bytes;
}

Result<ShardRecord> DecodeRecord(const Frame& head_frame, const Frame& keys_frame,
                                 const Frame& gradients_frame, std::span<const TableSpec> tables,
                                 uint32_t shards_of_job) {
  RecordHead head;
  if (head_frame.size() < sizeof(head)) return Bad("its head is too short");
  std::memcpy(&head, head_frame.bytes().data(), sizeof(head));
  const uint64_t group_bytes = head_frame.size() - sizeof(head);
  if (group_bytes != uint64_t{head.groups} * sizeof(GroupHead)) return Bad("the size of its head");
  if (head.kind > static_cast<uint32_t>(RecordKind::kWorkers)) return Bad("its kind is unknown");
  if (head.shard >= shards_of_job) return Bad("a shard that the job has not");
  if (head.pieces > kPiecesMax || head.piece >= head.pieces) return Bad("the number of its piece");
  if (!std::isfinite(head.lr_scale) || head.lr_scale < 0) return Bad("its rate scale");
  if (head.elapsed_ns > static_cast<uint64_t>(kElapsedMax.count())) return Bad("its time");
  if (keys_frame.size() % sizeof(Key) != 0) return Bad("the size of its keys");

  const auto memory = std::make_shared<Memory>(Memory{keys_frame, gradients_frame, {}});
  std::span<const Key> keys = std::as_const(memory->keys).as<Key>();
  std::span<const std::byte> gradients = std::as_const(memory->gradients).bytes();
  const std::byte* at = head_frame.bytes().data() + sizeof(head);
  for (uint32_t g = 0; g < head.groups; ++g, at += sizeof(GroupHead)) {
    GroupHead group;
    std::memcpy(&group, at, sizeof(group));
    DT_TRY(const GroupView view, TakeGroup(group, tables, keys, gradients));
    DT_TRY_STATUS(CheckShard(view, tables[group.table], ShardId(head.shard), shards_of_job));
    memory->groups.push_back(view);
  }
  ShardRecord out{.shard = ShardId(head.shard), .record = {}};
  if (head.kind == static_cast<uint32_t>(RecordKind::kWorkers)) {
    for (const Key id : keys) out.record.workers.emplace_back(static_cast<uint32_t>(id));
    if (keys.empty()) return Bad("it has no workers");
    keys = {};
  }
  if (!keys.empty() || !gradients.empty()) return Bad("it has more rows than its groups say");
  out.record.position = head.position;
  out.record.kind = static_cast<RecordKind>(head.kind);
  out.record.step = head.step;
  out.record.elapsed = Duration(static_cast<Duration::rep>(head.elapsed_ns));
  out.record.contribution = {.step = head.step,
                             .slice = head.slice,
                             .piece = head.piece,
                             .pieces = head.pieces,
                             .lr_scale = head.lr_scale,
                             .groups = memory->groups,
                             .owner = memory,
                             .turn = {ProcessId(head.worker), ViewNumber(head.view), head.order,
                                      head.number, head.clock, head.settled}};
  return out;
}

}  // namespace dt::server
