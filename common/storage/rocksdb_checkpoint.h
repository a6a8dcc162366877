// Copies of a database in use. Only for the files of this directory.
#pragma once

#include <string>

#include <rocksdb/db.h>

namespace dt {

// Makes a copy of the database in `to`, which must not exist; after an error it does not. Waits for
// nothing but the disk.
// REQUIRES: all records are in sorted files, so that neither memory nor a log of writes has any.
rocksdb::Status CheckpointTo(const std::string& to, rocksdb::DB& db);

}  // namespace dt
