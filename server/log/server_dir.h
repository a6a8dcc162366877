// The directory of a server that keeps a log: whose it is, and what its log is based on.
//
//   lock           held while a process uses the directory
//   identity.json  the claim by which the scheduler knows it, and the addresses it serves
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
  uint64_t claim = 0;  // JoinMessage::claim.
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
  // Makes and locks the first of <cluster.server.dir>/server-0, server-1, … that no living process
  // has. So a server that was killed finds its own again, without being told. Unavailable naming
  // the directory: it cannot be made or written.
  static Result<ServerDir> Open(const JobConfig& job);
  ~ServerDir();
  ServerDir(ServerDir&& other) noexcept;
  ServerDir& operator=(ServerDir&&) = delete;

  const std::string& path() const { return path_; }

  // Nothing where there is none, or none of this host and job that can be read.
  std::optional<ServerIdentity> ReadIdentity(const JobConfig& job) const;
  Status SetIdentity(const ServerIdentity& identity) const;
  // Nothing where there is none. DataLoss naming the file.
  Result<std::optional<LogBase>> ReadBase() const;
  Status SetBase(const LogBase& base) const;
  // The log goes, and what it is based on; the identity stays.
  void RemoveLog() const;
  // Everything goes but the lock: the job does not come back.
  void RemoveAll() const;

 private:
  ServerDir(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;  // Absolute.
  int lock_ = -1;
};

}  // namespace dt::server
