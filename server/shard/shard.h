// One shard: its part of every table, and the clock that says when pushes to it are applied. All
// that changes it is a record (record.h). A shard makes its own records: Take, TakeFirstValues,
// Advance, PassTime. Or it follows those of another: Follow. Owned by its executor's thread; no
// I/O, no time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "server/shard/gradient_sum.h"
#include "server/shard/record.h"
#include "server/shard/residency.h"
#include "server/shard/shard_clock.h"
#include "server/table/embedding_table.h"

namespace dt::server {

// Data that the shards of a thread share. Its memory is kept, so that it allocates nothing in
// steady state.
struct ShardContext {
  Residency* residency = nullptr;  // The disk below memory; null: there is none.
  RecordSink* sink = nullptr;      // Gets every record; null: nobody does.
  Step steps_before = 0;           // See StartMessage: updates and rows count them, clocks do not.
  GradientSum sum = {};
  // Groups of the current pushes, in the order of summing.
  std::vector<const GroupView*> groups = {};
  std::vector<EmbeddingTable::PushRun> pushes = {};
  std::vector<EmbeddingTable::KeyRun> keys = {};
};

class Shard {
 public:
  // `rows`: the rows of all shards of the executor, by table; they outlive the shard.
  Shard(ShardId id, std::span<const std::unique_ptr<TableRows>> rows,
        std::unique_ptr<ShardClock> clock);

  ShardId id() const { return id_; }

  // The place in the chain of those that hold the shard. The head makes the records; the others
  // follow them. The tail counts in sums over servers.
  struct Place {
    bool head = true, tail = true;
    bool syncing = false;  // It is no member: its rows are being copied to here.
  };
  Place place() const { return place_; }
  void SetPlace(Place place) { place_ = place; }

  const ShardClock& clock() const { return *clock_; }
  // Every step before now() is applied.
  Step now() const { return clock_->now(); }

  // The number of its last record.
  Position position() const { return position_; }

  // See ShardClock.
  Status Take(Contribution contribution, ShardContext& context);
  void Advance(Step step, ShardContext& context);
  // Gives values to rows that are absent. Busy: rows that may be there are being read from disk;
  // send it again.
  Status TakeFirstValues(Contribution contribution, ShardContext& context);
  // For expiry by time: adds the time for which the shard has run since the last call.
  void PassTime(Duration elapsed, ShardContext& context);

  // Does what a record of another shard of this id says; a record that it has already is dropped.
  // Busy: its rows are being read from disk; try again. DataLoss: it is not the next record, or it
  // cannot follow the ones before.
  Status Follow(Record record, ShardContext& context);

  // For asynchronous workers: the head makes them those of this view, unless they are already.
  void SetWorkers(ViewNumber view, std::span<const ProcessId> workers, ShardContext& context);
  // Forgets keys, rows, contributions and position.
  void Reset(Step updates, const ClockState& clock);
  // Ends the copying of a shard whose rows are here: the next record has the number `position` + 1.
  // Malformed: as ShardClock::Reset.
  Status Become(const ClockState& clock, Position position);
  // Called after its rows were restored: the next record has the number `position` + 1.
  void SetPosition(Position position) { position_ = position; }

  EmbeddingTable& table(uint32_t index) { return tables_[index]; }
  const EmbeddingTable& table(uint32_t index) const { return tables_[index]; }
  size_t tables() const { return tables_.size(); }
  uint64_t index_bytes() const;  // Indexes and the sketches of admission.
  uint64_t bytes() const;        // Indexes, sketches and the rows in memory.

  // Ends the shard; its rows stay in the memory of all shards until the caller has removed them.
  std::vector<EmbeddingTable> TakeTables() && { return std::move(tables_); }

  // For a shard that moves to another server: the pushes that it holds go along with its rows.
  std::unique_ptr<ShardClock> TakeClock() { return std::move(clock_); }
  void SetClock(std::unique_ptr<ShardClock> clock) { clock_ = std::move(clock); }

 private:
  class Updater;
  void Note(Record record, ShardContext& context);
  Status DoRecord(Record record, ShardContext& context);
  void SetAbsent(const GroupView& group);

  ShardId id_;
  std::span<const std::unique_ptr<TableRows>> rows_;
  std::vector<EmbeddingTable> tables_;
  std::unique_ptr<ShardClock> clock_;
  Position position_ = 0;
  Place place_;
};

}  // namespace dt::server
