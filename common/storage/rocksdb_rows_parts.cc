#include "common/storage/rocksdb_rows_parts.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>

namespace dt {
namespace {

// The inverse of NameOf.
std::string FirstKeyOf(const std::string& name) {
  std::string key;
  if (name == rocksdb::kDefaultColumnFamilyName) return key;
  for (size_t at = 0; at + 1 < name.size(); at += 2) {
    key += static_cast<char>(std::strtoul(name.substr(at, 2).c_str(), nullptr, 16));
  }
  return key;
}

}  // namespace

// A part's name is its first key in hex; RocksDB's default column family is the first part.
std::string RowsParts::NameOf(size_t part) const {
  if (part == 0) return rocksdb::kDefaultColumnFamilyName;
  std::string name;
  for (const char c : first_keys_[part]) {
    name += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return name;
}

rocksdb::Status RowsParts::FindFirstKeys(const rocksdb::Options& options, const std::string& folder,
                                         std::vector<std::string>& first_keys) {
  std::vector<std::string> names;
  rocksdb::Status listed = rocksdb::DB::ListColumnFamilies(options, folder, &names);
  first_keys.resize(names.size());
  std::ranges::transform(names, first_keys.begin(), FirstKeyOf);
  std::ranges::sort(first_keys);
  return listed;
}

size_t RowsParts::PartOf(std::string_view key) const {
  return static_cast<size_t>(std::ranges::upper_bound(first_keys_, key) - first_keys_.begin()) - 1;
}

rocksdb::Status RowsParts::Open(const rocksdb::Options& options, const std::string& folder,
                                bool read_only, size_t existing, rocksdb::DB** db) {
  std::vector<rocksdb::ColumnFamilyDescriptor> parts;
  for (size_t part = 0; part < existing; ++part) parts.emplace_back(NameOf(part), options);
  std::vector<rocksdb::ColumnFamilyHandle*> opened;
  rocksdb::Status status = read_only
                               ? rocksdb::DB::OpenForReadOnly(options, folder, parts, &opened, db)
                               : rocksdb::DB::Open(options, folder, parts, &opened, db);
  for (size_t part = 0; part < opened.size(); ++part) parts_[part] = opened[part];
  return status;
}

rocksdb::Status RowsParts::Make(const rocksdb::Options& options, std::span<const size_t> parts,
                                rocksdb::DB& db) {
  std::vector<std::string> names;
  for (const size_t part : parts) names.push_back(NameOf(part));
  std::vector<rocksdb::ColumnFamilyHandle*> made;
  rocksdb::Status status = db.CreateColumnFamilies(options, names, &made);
  for (size_t i = 0; i < made.size(); ++i) parts_[parts[i]] = made[i];
  return status;
}

void RowsParts::Close(rocksdb::DB& db) {
  for (auto& part : parts_) {
    if (rocksdb::ColumnFamilyHandle* const made = part.exchange(nullptr); made != nullptr) {
      db.DestroyColumnFamilyHandle(made);
    }
  }
}

}  // namespace dt
