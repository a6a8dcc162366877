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
// Reads STEM.key or STEM.pub. Invalid: it is absent, is no key file, or others may read its secret.
Result<KeyPair> ReadKeyFile(const std::string& path);

// <run_dir>/keys/job.key, the path of a job's pair unless the job file names another.
std::string DefaultKeyFile(const JobConfig& job);

struct SocketNeeds {
  bool makes_keys = false;  // Makes the pair at DefaultKeyFile if it is absent.
  bool listens = false;     // The job's secret key is needed.
  Duration timeout{};       // The longest wait for another process to make the pair.
  std::stop_token stop = {};
};
// Options for the sockets of a process of the job, from the job's `security` section.
Result<ZmqOptions> SocketOptionsOf(const JobConfig& job, const SocketNeeds& needs);

}  // namespace dt
