// The directory of a server that keeps a log: its owner, and what its log is based on.
//
//   lock           held while a process uses the directory
//   identity.json  the job, the server's token for the scheduler, and the addresses it serves
//   base.json      the checkpoint that the log continues, and the first segments that count
//   log-…          record_log.h
//
// The two files carry a checksum each, are replaced as a whole, and are on disk when the function
// that sets them returns. Owned by one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/cluster/taken_parts.h"
#include "common/config/job_config.h"

namespace dt::server {

struct ServerIdentity {
  uint64_t server_token = 0;  // JoinMessage::server_token.
  uint64_t job_fingerprint = 0;
  std::string host;
  std::string listen;                  // The address that was asked for.
  std::vector<std::string> endpoints;  // The addresses that were bound.
};

struct LogBase {
  Generation generation;
  Step step = 0;
  std::string folder;                    // The checkpoint's; empty: no rows, from `step` on.
  std::vector<uint64_t> first_segments;  // One for each executor.
  std::optional<TakenParts> taken = {};  // See RowsToLoad.
};

class ServerDir {
 public:
  // Makes and locks <cluster.server.dir>/server-<id>, or the next one that neither a living process
  // nor another job uses; an id of 0 counts as 1. So a server that was killed finds its own
  // directory again. Errors: Unavailable naming the directory, if it cannot be made or written.
  static Result<ServerDir> Open(const JobConfig& job, ProcessId id);
  // Removes the job's directories on this machine that no living process uses. REQUIRES: no
  // scheduler of the job waits for a server to come back.
  static void RemoveFormer(const JobConfig& job);
  ~ServerDir();
  ServerDir(ServerDir&& other) noexcept;
  ServerDir& operator=(ServerDir&&) = delete;

  const std::string& path() const { return path_; }
  // The number in its name.
  ProcessId id() const { return id_; }

  // Nothing if there is no identity that can be read and is of this host and job.
  std::optional<ServerIdentity> ReadIdentity(const JobConfig& job) const;
  Status SetIdentity(const ServerIdentity& identity) const;
  // Nothing if there is none. Errors: DataLoss naming the file.
  Result<std::optional<LogBase>> ReadBase() const;
  Status SetBase(const LogBase& base) const;
  // Removes the log and its base; the identity stays.
  void RemoveLog() const;
  // Removes everything, because the job does not come back. The directory itself goes with this
  // object.
  void RemoveAll();

 private:
  ServerDir(std::string path, ProcessId id, std::string run_dir, int lock)
      : path_(std::move(path)), id_(id), run_dir_(std::move(run_dir)), lock_(lock) {}

  std::string path_;  // Absolute.
  ProcessId id_;
  std::string run_dir_;  // The job's run directory, absolute.
  bool removed_ = false;
  int lock_ = -1;
};

}  // namespace dt::server
