// RocksDB's options for rows; the source explains them. Only for the files of this directory.
#pragma once

#include <cstdint>

#include <rocksdb/options.h>

namespace dt {

// The parameters are those of RowsDb::Options (rocksdb_rows.h).
rocksdb::Options RowsOptions(uint64_t cache_bytes, uint64_t open_files);

}  // namespace dt
