// The parts of a RowsDb (rocksdb_rows.h): column families, each with one range of keys. A part is
// made when its first record comes, so that ranges without records cost nothing. Only for the files
// of this directory.
#pragma once

#include <atomic>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rocksdb/db.h>

namespace dt {

class RowsParts {
 public:
  // `first_keys`: of each part, ascending from "".
  explicit RowsParts(std::vector<std::string> first_keys)
      : first_keys_(std::move(first_keys)), parts_(first_keys_.size()) {}
  // The first keys of the parts that a database in `folder` has.
  static rocksdb::Status FindFirstKeys(const rocksdb::Options& options, const std::string& folder,
                                       std::vector<std::string>& first_keys);

  size_t count() const { return parts_.size(); }
  size_t PartOf(std::string_view key) const;
  // Any thread; null if the part has no records.
  rocksdb::ColumnFamilyHandle* Find(size_t part) const { return parts_[part].load(); }

  // Opens the first `existing` parts, which are those that the database has. The database must be
  // closed before `*this` is destroyed, and the parts before it: Close.
  rocksdb::Status Open(const rocksdb::Options& options, const std::string& folder, bool read_only,
                       size_t existing, rocksdb::DB** db);
  // Makes parts that are not there yet. One thread. One call for many, because at the end of each
  // call RocksDB writes a file with all of its options.
  rocksdb::Status Make(const rocksdb::Options& options, std::span<const size_t> parts,
                       rocksdb::DB& db);
  void Close(rocksdb::DB& db);

 private:
  std::string NameOf(size_t part) const;

  const std::vector<std::string> first_keys_;
  std::vector<std::atomic<rocksdb::ColumnFamilyHandle*>> parts_;
};

}  // namespace dt
