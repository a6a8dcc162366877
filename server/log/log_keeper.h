// What a server that keeps a log knows of itself on the disk: who it is to the scheduler, which
// addresses it has, and what its log continues. The server's main thread.
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
  // Takes a directory, that of `id` if it can; one that was used for the same job and `listen` goes
  // on where it was.
  static Result<LogKeeper> Open(const JobConfig& job, const std::string& listen, ProcessId id);

  const std::string& dir() const { return dir_.path(); }
  // The number of the directory, which the server asks for.
  ProcessId id() const { return dir_.id(); }
  uint64_t server_token() const { return identity_.server_token; }
  // To be bound again; none for a new server.
  const std::vector<std::string>& endpoints() const { return identity_.endpoints; }
  // The old addresses cannot be had: another server.
  void BeginAnew();
  Status SetEndpoints(std::vector<std::string> endpoints);

  // Whether the scheduler knows the directory; else what it holds is of another run, and goes.
  void OnWelcome(bool returned);
  // A checkpoint that was completed while this server was away.
  void KeepForStart(const CheckpointCommittedMessage& kept) { kept_ = kept; }
  // What each executor begins with. `generation` of the start; of the log's where it goes on.
  Result<std::vector<std::optional<LogLocation>>> LocationsAtStart(size_t executors,
                                                                   Generation& generation);
  Status OnStarted(std::vector<uint64_t> first_segments);
  // False for a checkpoint before the log's base.
  bool Continues(const CheckpointCommittedMessage& kept) const;
  // On the disk; then the segments before the first ones go.
  Status SetBase(LogBase base);
  // The job is over.
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
