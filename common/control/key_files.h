// Keys on the disk, and which of them a process of a job uses.
//
// STEM.key holds a pair, as the lines "public KEY" and "secret KEY", closed to other accounts;
// STEM.pub holds the public key alone. Whoever can read a job's STEM.key may do everything in it.
#pragma once

#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/config/job_config.h"
#include "common/net/socket.h"

namespace dt {

// Makes both files, and the folder (0700) if it is absent. Invalid if either exists.
Status WriteKeyFiles(const std::string& stem, const KeyPair& pair);
// Of either file. Invalid: no such file, not one of these, or a secret that others may read.
Result<KeyPair> ReadKeyFile(const std::string& path);

// Where the pair of a job lies that names none: <run_dir>/keys/job.key.
std::string DefaultKeyFile(const JobConfig& job);

struct SocketNeeds {
  bool makes_keys = false;  // The pair of a job that names none is made if it is not there.
  bool listens = false;     // The job's secret is needed.
  Duration patience{};      // For another process to make it.
  std::stop_token stop = {};
};
// What the sockets of a process of the job are made with, by its `security`.
Result<ZmqOptions> SocketOptionsOf(const JobConfig& job, const SocketNeeds& needs);

}  // namespace dt
