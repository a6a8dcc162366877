// Key files, and the choice of the keys that a process of a job uses.
//
// STEM.key holds a pair, as the lines "public KEY" and "secret KEY", and only its owner can read
// it; STEM.pub holds the public key alone. Anyone who can read a job's STEM.key may do everything
// in the job.
#pragma once

#include <stop_token>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/config/job_config.h"
#include "common/net/socket.h"

namespace dt {

// Writes both files, and creates the folder (0700) if it is absent. Invalid if either file exists.
Status WriteKeyFiles(const std::string& stem, const KeyPair& pair);
// Reads STEM.key or STEM.pub. Invalid: it is absent, is no key file, or others may read its secret.
Result<KeyPair> ReadKeyFile(const std::string& path);

// <run_dir>/keys/job.key, the path of the job's pair unless the job file names another.
std::string DefaultKeyFile(const JobConfig& job);

struct SocketNeeds {
  bool makes_keys = false;  // Creates the pair at DefaultKeyFile if it is absent.
  bool listens = false;     // The process needs the job's secret key.
  Duration timeout{};       // Longest wait for another process to create the pair.
  std::stop_token stop = {};
};
// Socket options for a process of the job, from the job's `security` section.
Result<ZmqOptions> SocketOptionsOf(const JobConfig& job, const SocketNeeds& needs);

}  // namespace dt
