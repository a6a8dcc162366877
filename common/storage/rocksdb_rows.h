// Many small records on disk, below a cache in memory. They are written as sorted files, which are
// built outside the database and then added, and read by sorted batches of keys. RocksDB with
// options for this use (rocksdb_rows_options.cc). Later files take precedence over earlier ones.
//
// Files are merged in the background. Records under merge exist twice until the merge ends.
// Therefore the records are divided into parts (ranges of keys), and one part is merged at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace dt {

// Errors say what was done and where: DataLoss names the damaged file; Unavailable is a full disk
// or a missing permission.
class RowsDb {
  struct Impl;

 public:
  explicit RowsDb(std::unique_ptr<Impl> impl);
  // Returns whether merges may drop a record. Called on RocksDB's threads; outlives the RowsDb.
  using Useless = std::function<bool(std::string_view key, std::string_view value)>;
  struct Options {
    uint64_t cache_bytes = 0;  // For blocks, filters and indexes of all files.
    // About this many files stay open, besides those being read or merged. A low number also limits
    // how many files may overlap before writes wait for merges.
    uint64_t open_files = 1024;
    Useless useless = nullptr;
    // The first key of each part except the first, ascending. Only for Create. Parts without
    // records cost nothing.
    std::vector<std::string> cuts = {};
  };
  // Creates an empty database; earlier content of the folder is removed.
  static Result<std::unique_ptr<RowsDb>> Create(const std::string& folder, Options options);
  // Opens a copy made by Checkpoint for use, with its parts; the folder becomes the database's own.
  static Result<std::unique_ptr<RowsDb>> Open(const std::string& folder, Options options);
  // Opens a copy made by Checkpoint for reading only; nothing in the folder changes.
  static Result<std::unique_ptr<RowsDb>> OpenToRead(const std::string& folder);
  ~RowsDb();

  // A file (one for each part) that is filled and then added. One thread at a time.
  class File {
    struct Impl;

   public:
    explicit File(std::unique_ptr<Impl> impl);
    ~File();
    // REQUIRES: the key is greater than the previous one.
    Status Add(std::string_view key, std::string_view value);

   private:
    friend class RowsDb;
    const std::unique_ptr<Impl> impl_;
  };
  // `bytes_expected` is used in the message about a full disk.
  std::unique_ptr<File> NewFile(uint64_t bytes_expected);
  // After an error, some of the records may have been added. REQUIRES: at least one record.
  Status Ingest(std::unique_ptr<File> file);
  // Removes the records from `begin` to `end`, excluded; their space is free when their part has
  // been merged. REQUIRES: no cut is between them.
  Status RemoveRange(std::string_view begin, std::string_view end);
  // So many sorted files overlap that reading becomes slow: add none for now.
  bool Crowded() const;
  // The error of the last merge; OK if it succeeded. RocksDB retries every few seconds.
  Status merge_problem() const;

  // Visits the value of each key, in the order of `keys`; nothing for an absent key. Any thread.
  // REQUIRES: ascending keys.
  using Visit = std::function<void(size_t key, std::optional<std::string_view> value)>;
  Status MultiGet(std::span<const std::string_view> keys, const Visit& visit) const;

  // Reads records in key order; records written meanwhile may or may not be seen. One thread; must
  // not outlive the RowsDb.
  class Cursor {
    struct Impl;

   public:
    explicit Cursor(std::unique_ptr<Impl> impl);
    ~Cursor();
    // Moves to the first record whose key is not less than `key`.
    Status Seek(std::string_view key);
    Status Next();
    // False at the end. The views are valid until the next Seek or Next.
    bool valid() const;
    std::string_view key() const;
    std::string_view value() const;

   private:
    friend class RowsDb;
    const std::unique_ptr<Impl> impl_;
  };
  std::unique_ptr<Cursor> Read() const;

  // Makes a copy of the current state in `folder`, which must not exist. On the same file system it
  // consists of hard links, which stay valid when either copy is removed.
  Status Checkpoint(const std::string& folder);
  // Waits for the running merge; no other begins until ReleaseMerges. One thread for both.
  void HoldMerges();
  void ReleaseMerges();

  uint64_t bytes_on_disk() const;

 private:
  const std::unique_ptr<Impl> impl_;
};

}  // namespace dt
