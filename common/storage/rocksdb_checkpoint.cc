#include "common/storage/rocksdb_checkpoint.h"

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <vector>

#include <rocksdb/env.h>

#include "common/storage/copy_file.h"

namespace dt {
namespace {

namespace fs = std::filesystem;

rocksdb::Status ToRocks(const std::error_code& error, const fs::path& path) {
  return error == std::errc::no_space_on_device
             ? rocksdb::Status::NoSpace(path.string(), error.message())
             : rocksdb::Status::IOError(path.string(), error.message());
}

struct LiveFiles {
  std::vector<std::string> names;  // Each begins with "/".
  // Size of the database's list of its files. RocksDB may be appending to it.
  uint64_t list_bytes = 0;
};

rocksdb::Status CopyFiles(rocksdb::DB& db, const std::string& to, const LiveFiles& files) {
  for (const std::string& each : files.names) {
    const fs::path source = db.GetName() + each, target = to + each;
    const std::string name = target.filename();
    if (name == "CURRENT") continue;  // It only names the list, which may be another one by now.
    const bool is_list = name.starts_with("MANIFEST-");
    const std::error_code error = target.extension() == ".sst" ? LinkOrCopy(source, target)
                                  : is_list ? CopyFile(source, target, files.list_bytes)
                                            : CopyFile(source, target);
    if (error) return ToRocks(error, target);
    if (!is_list) continue;
    const rocksdb::Status named =
        rocksdb::WriteStringToFile(db.GetEnv(), name + "\n", to + "/CURRENT");
    if (!named.ok()) return named;
  }
  return rocksdb::Status::OK();
}

}  // namespace

// Not rocksdb::Checkpoint: it also asks for the logs of writes, and RocksDB 7.8 may wait for ever
// before it tells them, because FindObsoleteFiles does not wake those who wait for it when it has
// found nothing to remove (mended in RocksDB 10).
rocksdb::Status CheckpointTo(const std::string& to, rocksdb::DB& db) {
  std::error_code error;
  if (!fs::create_directory(to, error)) {
    return error ? ToRocks(error, to) : rocksdb::Status::InvalidArgument(to, "exists already");
  }
  rocksdb::Status done = db.DisableFileDeletions();
  if (done.ok()) {
    LiveFiles files;
    done = db.GetLiveFiles(files.names, &files.list_bytes, /*flush_memtable=*/false);
    if (done.ok()) done = CopyFiles(db, to, files);
    const rocksdb::Status enabled = db.EnableFileDeletions(/*force=*/false);
    if (done.ok()) done = enabled;
  }
  if (!done.ok()) fs::remove_all(to, error);
  return done;
}

}  // namespace dt
