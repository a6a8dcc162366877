// What RocksDB tells of itself, in our log. Only for the files of this directory.
#pragma once

#include <memory>

#include <rocksdb/env.h>

namespace dt {

// Warnings and errors, as debug events. In the place of RocksDB's own LOG files: the writer of
// these goes on after its first error, upon which Debian's library, built with assertions, aborts
// the process: a full disk would end it without a word.
std::shared_ptr<rocksdb::Logger> RocksInfoLog();

}  // namespace dt
