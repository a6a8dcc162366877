// The parsed command line. The only code that uses CLI11.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/log.h"

namespace dt::cli {

struct CommandLine {
  std::string command;   // "train", "data generate", "bench store", …
  std::string job_path;  // JOB.yaml
  std::vector<std::string> overrides;
  std::string result_path;
  std::string resume = "never";  // never | auto | DIR
  std::string init;              // Replaces init.from: DIR | JOB
  LogLevel log_level = LogLevel::kWarn;
  bool no_progress = false;
  bool json = false;
  // The process id that `launch` gave this process. Only `launch` then prints errors, so that each
  // is shown once.
  std::optional<uint32_t> child;
  bool follows_killed = false;  // `launch` starts this scheduler because the one before was killed.

  std::string scheduler;                  // tcp://HOST:PORT
  uint32_t server = 0;                    // drain
  std::string role;                       // scale: servers or workers
  uint32_t count = 0;                     // scale
  std::string key_path;                   // status, drain, scale, keygen
  std::string listen;                     // scheduler, server, worker
  std::string checkpoint;                 // eval, predict, export, checkpoint verify|inspect
  std::vector<std::string> data_paths;    // predict: files, globs, "-" for standard input
  std::vector<std::string> kept_columns;  // predict
  std::string truth_path;                 // report
  std::string out_path;                   // predict, data generate, report, export
  uint64_t rows = 1'000'000;
  uint64_t seed = 1;
  std::string table;    // export --table
  bool budget = false;  // bench train
  std::string pass;     // plan --after
  uint32_t rank = 0;    // plan --rank
  std::string schema = "job";
  std::string format = "text";
  std::string program;  // argv[0], for starting further processes.
};

// Parses the arguments. Prints help, the completion script or a usage error itself. Returns -1 if
// the command is to run, else the exit code.
int ParseCommandLine(int argc, char** argv, CommandLine& out);

// The flags that `launch` also passes to its child processes, as arguments.
std::vector<std::string> SharedArguments(const CommandLine& line);

}  // namespace dt::cli
