// What a server that keeps a log stores about itself on disk: its identity for the scheduler, its
// addresses, and the checkpoint that its log continues. For the server's main thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/control/messages.h"
#include "server/log/log_location.h"
#include "server/log/server_dir.h"

namespace dt::server {

class LogKeeper {
 public:
  // Takes a directory, that of `id` if possible. A directory that was used for the same job and
  // `listen` is continued.
  static Result<LogKeeper> Open(const JobConfig& job, const std::string& listen, ProcessId id);

  const std::string& dir() const { return dir_.path(); }
  // The number of the directory; the server asks the scheduler for this id.
  ProcessId id() const { return dir_.id(); }
  uint64_t server_token() const { return identity_.server_token; }
  // The addresses to bind again; none for a new server.
  const std::vector<std::string>& endpoints() const { return identity_.endpoints; }
  // Called if the old addresses are not available: becomes a new server, with a new token and no
  // log.
  void BecomeNewServer();
  Status SetEndpoints(std::vector<std::string> endpoints);

  // `returned`: the scheduler knows this server from before. If not, the log is of another run and
  // is removed.
  void OnWelcome(bool returned);
  // Notes a checkpoint that was completed while this server was away.
  void NoteCommitted(const CheckpointCommittedMessage& kept) { kept_ = kept; }
  // Where each executor's log is. `generation` is that of the start; if a log is continued, it
  // becomes that of the log.
  Result<std::vector<std::optional<LogLocation>>> LocationsAtStart(size_t executors,
                                                                   Generation& generation);
  Status OnStarted(std::vector<uint64_t> first_segments);
  // False for a checkpoint of another generation or from before the log's base.
  bool Continues(const CheckpointCommittedMessage& kept) const;
  // Writes the base to disk, then removes the segments before its first ones.
  Status SetBase(LogBase base);
  // Removes everything, because the job is over.
  void Remove() { dir_.RemoveAll(); }

 private:
  LogKeeper(ServerDir dir, bool sync) : dir_(std::move(dir)), sync_(sync) {}

  ServerDir dir_;
  bool sync_ = false;
  ServerIdentity identity_;
  LogBase base_;
  std::optional<CheckpointCommittedMessage> kept_;
};

}  // namespace dt::server
