// Many small records on disk below a cache in memory: written in sorted files that are built
// outside and then added, read by sorted batches of keys. RocksDB with its options for this
// (rocksdb_rows_options.cc). Later files win over earlier ones.
//
// Files are merged in the background; what is merged lies there twice until the merge ends. So the
// records are cut into parts, ranges of keys, and one part is merged at a time.
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

// Errors name what was done and where: DataLoss the damaged file; Unavailable a full disk, missing
// permission.
class RowsDb {
  struct Impl;

 public:
  explicit RowsDb(std::unique_ptr<Impl> impl);
  // Whether a record need not be copied when files are merged. Called on RocksDB's threads;
  // outlives the RowsDb.
  using Useless = std::function<bool(std::string_view key, std::string_view value)>;
  struct Options {
    uint64_t cache_bytes = 0;  // For blocks, filters and indexes of files, all of them.
    // About how many files stay open, besides those being read or merged. A low number also
    // limits how many files may overlap before writes wait for merging.
    uint64_t open_files = 1024;
    Useless useless = nullptr;
    // The first key of each part but the first, ascending. Only of a new RowsDb.
    std::vector<std::string> cuts = {};
  };
  // Holds nothing: what was in the folder is removed.
  static Result<std::unique_ptr<RowsDb>> Create(const std::string& folder, Options options);
  // Goes on with a copy made by Checkpoint, and its parts; the folder becomes its own.
  static Result<std::unique_ptr<RowsDb>> Open(const std::string& folder, Options options);
  // A copy made by Checkpoint, only to be read; nothing in the folder changes.
  static Result<std::unique_ptr<RowsDb>> OpenToRead(const std::string& folder);
  ~RowsDb();

  // A file (one a part) that is filled, then added. One thread at a time.
  class File {
    struct Impl;

   public:
    explicit File(std::unique_ptr<Impl> impl);
    ~File();
    // REQUIRES: the key is greater than the one before.
    Status Add(std::string_view key, std::string_view value);

   private:
    friend class RowsDb;
    const std::unique_ptr<Impl> impl_;
  };
  // `bytes_expected`: for the sentence about a full disk.
  std::unique_ptr<File> NewFile(uint64_t bytes_expected);
  // After an error some of the records may have been added. REQUIRES: at least one record.
  Status Ingest(std::unique_ptr<File> file);
  // So many sorted files lie over one another that reading gets slow: add none for now.
  bool Crowded() const;
  // Why the last merge failed; OK if it did not. RocksDB tries again every few seconds.
  Status merge_problem() const;

  // Any thread. Visits, in the order of `keys`, what each key has: nothing where it is not there.
  // REQUIRES: ascending keys.
  using Visit = std::function<void(size_t key, std::optional<std::string_view> value)>;
  Status MultiGet(std::span<const std::string_view> keys, const Visit& visit) const;

  // In key order; what is written meanwhile may be seen or not. One thread; does not outlive the
  // RowsDb.
  class Cursor {
    struct Impl;

   public:
    explicit Cursor(std::unique_ptr<Impl> impl);
    ~Cursor();
    // To the first record whose key is not less than `key`.
    Status Seek(std::string_view key);
    Status Next();
    // False at the end. The views live until the next Seek or Next.
    bool valid() const;
    std::string_view key() const;
    std::string_view value() const;

   private:
    friend class RowsDb;
    const std::unique_ptr<Impl> impl_;
  };
  std::unique_ptr<Cursor> Read() const;

  // A copy of now in `folder`, which must not exist; hard links on one file system, which last as
  // long as either.
  Status Checkpoint(const std::string& folder);
  // No merge begins until ReleaseMerges; waits for the one under way. One thread for both.
  void HoldMerges();
  void ReleaseMerges();

  uint64_t bytes_on_disk() const;

 private:
  const std::unique_ptr<Impl> impl_;
};

}  // namespace dt
