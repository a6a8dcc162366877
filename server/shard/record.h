// Everything that changes a shard is a record, numbered from 1 without gaps. The state of a shard
// is a function of its records up to a position: what depends on a clock, on the order of arrival
// or on chance is decided before the record is made, and stands in it. So whoever follows the
// records of a shard has the same bits as the shard that made them. A record changes the shard at
// once and as a whole.
#pragma once

#include <vector>

#include "common/base/clock.h"
#include "server/shard/contribution.h"

namespace dt::server {

// Number of a record. The position of a shard is the number of its last record; 0: none.
using Position = uint64_t;

enum class RecordKind : uint8_t {
  // A piece of a push is held. With asynchronous workers the last piece applies the push.
  kContribution,
  // All workers are past `step`, all of whose contributions are held: they are applied.
  kComplete,
  // `contribution` has values for rows that are absent; rows that exist stay.
  kFirstValues,
  // The shard has run for `elapsed` since the last such record; rows may expire.
  kTime,
  // Asynchronous training: the workers are `workers` from now on, those of view `step`. What is
  // held of pushes counts as never sent.
  kWorkers,
};

struct Record {
  Position position = 0;
  RecordKind kind = RecordKind::kContribution;
  Contribution contribution = {};
  Step step = 0;
  Duration elapsed{};
  std::vector<ProcessId> workers = {};
};

// Gets each record that a shard makes, before anybody is told of its effect. It may keep the
// record, which keeps the memory of the contribution.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual void OnRecord(ShardId shard, const Record& record) = 0;
};

}  // namespace dt::server
