// The directory of a server that keeps a log: whose it is, and what its log is based on.
//
//   lock           held while a process uses the directory
//   identity.json  the job, the token by which the scheduler knows it, and the addresses it serves
//   base.json      the checkpoint that the log continues, and the first segments that count
//   log-…          push_log.h
//
// The two files carry a checksum of their own, are replaced as a whole, and are on the disk when
// Set returns. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/config/job_config.h"

namespace dt::server {

struct ServerIdentity {
  uint64_t server_token = 0;  // JoinMessage::server_token.
  uint64_t job_fingerprint = 0;
  std::string host;
  std::string listen;                  // As asked for.
  std::vector<std::string> endpoints;  // As bound.
};

struct LogBase {
  Generation generation;
  Step step = 0;
  std::string folder;                    // Of the checkpoint; "": no rows, from `step` on.
  std::vector<uint64_t> first_segments;  // By executor.
};

class ServerDir {
 public:
  // Makes and locks <cluster.server.dir>/server-<id>, or the next one that neither a living process
  // nor another job has; an id of 0 stands for 1. So a server that was killed finds its own again.
  // Unavailable naming the directory: it cannot be made or written.
  static Result<ServerDir> Open(const JobConfig& job, ProcessId id);
  // Removes those of the job on this machine that no living process has. REQUIRES: no scheduler of
  // the job waits for a server to come back.
  static void RemoveFormer(const JobConfig& job);
  ~ServerDir();
  ServerDir(ServerDir&& other) noexcept;
  ServerDir& operator=(ServerDir&&) = delete;

  const std::string& path() const { return path_; }
  // The number in its name.
  ProcessId id() const { return id_; }

  // Nothing where there is none, or none of this host and job that can be read.
  std::optional<ServerIdentity> ReadIdentity(const JobConfig& job) const;
  Status SetIdentity(const ServerIdentity& identity) const;
  // Nothing where there is none. DataLoss naming the file.
  Result<std::optional<LogBase>> ReadBase() const;
  Status SetBase(const LogBase& base) const;
  // The log goes, and what it is based on; the identity stays.
  void RemoveLog() const;
  // The job does not come back: everything goes, the directory itself with this object.
  void RemoveAll();

 private:
  ServerDir(std::string path, ProcessId id, std::string run_dir, int lock)
      : path_(std::move(path)), id_(id), run_dir_(std::move(run_dir)), lock_(lock) {}

  std::string path_;  // Absolute.
  ProcessId id_;
  std::string run_dir_;  // The job's, absolute.
  bool removed_ = false;
  int lock_ = -1;
};

}  // namespace dt::server
