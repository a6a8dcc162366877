// Which rows of an executor are below its memory, and where. A row is current in one place: in
// memory; else in the newest run on its way to disk that has it; else on disk. What lies below a
// current row is old or equal, and never looked at.
//
//   memory ──Add──▶ open run ──Seal──▶ runs under way, oldest first ──written──▶ disk
//
// The evictor and the saver fill the open run, the fetcher reads from all of it. Owned by the
// executor's thread; runs under way are constant, and the writer's thread reads them, too.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "server/storage/disk_threads.h"
#include "server/storage/expiry_filter.h"
#include "server/storage/key_filter.h"
#include "server/storage/row_run.h"
#include "server/table/row_sink.h"

namespace dt::server {

class RowsBelow : public RowSink {
 public:
  struct Options {
    uint64_t run_bytes = 0;    // A run of so many is sealed.
    uint64_t filter_keys = 0;  // For so many keys on disk the filter is at its best.
  };
  // The other objects outlive it.
  RowsBelow(const Options& options, ExpiryFilter& expired, DiskThreads& disk);

  // A record on its way to disk.
  std::span<std::byte> Add(EmbeddingTable& table, Key key) override;
  void Left(EmbeddingTable& table, Key key) override;
  // A row that was below is in memory again.
  void NoteBack(EmbeddingTable& table);
  // The filter lets the key pass, but there is no such row.
  void NoteNowhere(const EmbeddingTable& table, Key key);

  // Exact, but that rows which have expired may be counted: never too low.
  uint64_t rows() const { return rows_; }
  // The record in the open run or one under way; empty if it is in none of them.
  std::span<const std::byte> FindOnItsWay(const EmbeddingTable& table, Key key) const;
  // False: certainly not below memory.
  bool MayHave(const EmbeddingTable& table, Key key) const;
  bool IsNowhere(const EmbeddingTable& table, Key key) const;
  // Asks the processor for the memory that MayHave will look at.
  void PrefetchFilter(const EmbeddingTable& table, Key key) const;

  // Hands the open run over, however small.
  void Seal();
  // The disk has written the oldest run.
  void OnWritten(const std::shared_ptr<const RowRun>& run);
  const std::deque<std::shared_ptr<const RowRun>>& runs() const { return runs_; }
  // The disk has not been given all runs: what must come after them has to wait.
  bool runs_wait() const { return given_ < runs_.size(); }

  // While a checkpoint is being saved, rows that expire stay: they were there at its cut.
  void SetSaving(bool saving) { saving_ = saving; }
  bool saving() const { return saving_; }

  uint64_t run_bytes() const { return options_.run_bytes; }
  uint64_t filter_bytes() const { return filter_.bytes(); }
  uint64_t bytes() const;  // Of memory.

 private:
  struct Row {
    const EmbeddingTable* table;
    Key key;
    friend bool operator==(const Row&, const Row&) = default;
    template <class H>
    friend H AbslHashValue(H state, const Row& row) {
      return H::combine(std::move(state), row.table, row.key);
    }
  };
  void GiveRuns();

  const Options options_;
  ExpiryFilter& expired_;
  DiskThreads& disk_;
  RowRun open_run_;
  std::deque<std::shared_ptr<const RowRun>> runs_;  // Being written, oldest first.
  size_t given_ = 0;                                // The disk has so many of them.
  KeyFilter filter_;
  absl::flat_hash_set<Row> nowhere_;
  uint64_t rows_ = 0;
  bool saving_ = false;
};

}  // namespace dt::server
