#include "cli/outcome.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace dt::cli {

void PrintError(const Status& status) {
  const Problem problem = ProblemOf(status);
  std::fprintf(stderr, "dovetail: %s", problem.what.c_str());
  // A list of problems names the place of each.
  const bool named = problem.what.find(problem.where) != std::string::npos;
  if (!named) std::fprintf(stderr, " (%s)", problem.where.c_str());
  if (!problem.hint.empty()) std::fprintf(stderr, "\n  %s", problem.hint.c_str());
  std::fprintf(stderr, "\n");
}

Status WriteWholeFile(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  std::error_code ignored;
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  std::FILE* file = std::fopen(part.c_str(), "wb");
  if (file == nullptr) return Unavailable("cannot write {}: {}", path, std::strerror(errno));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed || std::rename(part.c_str(), path.c_str()) != 0) {
    const int why = errno;
    std::remove(part.c_str());
    return Unavailable("cannot write {} bytes to {}: {}", text.size(), path, std::strerror(why));
  }
  return OkStatus();
}

Status CheckWritable(const std::string& path) {
  const std::string part = path + ".part";
  std::error_code ignored;
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  std::FILE* file = std::fopen(part.c_str(), "ab");
  const int why = errno;
  if (file != nullptr) std::fclose(file);
  std::remove(part.c_str());
  if (std::filesystem::is_directory(path, ignored)) {
    return Invalid("the result file {} is a folder", path);
  }
  if (file == nullptr) {
    return Invalid("the result file {} cannot be written: {}", path, std::strerror(why));
  }
  return OkStatus();
}

Result<std::string> ReadWholeFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return NotFound("cannot read {}: {}", path, std::strerror(errno));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

int EndWithError(const CommandLine& line, const std::string& job, const Status& status) {
  if (!line.child) PrintError(status);
  if (!line.result_path.empty()) {
    JobResult result;
    result.job = job;
    result.status = status;
    if (Status s = WriteWholeFile(line.result_path, ToJson(result)); !s.ok()) PrintError(s);
  }
  return ExitCodeOf(status);
}

int EndJob(const CommandLine& line, const JobResult& result, const StopSignals& signals) {
  return EndJobWith(line, result.status, ToJson(result), signals);
}

int EndJobWith(const CommandLine& line, const Status& status, const std::string& result_json,
               const StopSignals& signals) {
  int code = ExitCodeOf(status);
  if (signals.received() != 0 && !status.ok()) {
    code = signals.exit_code();
    if (!line.child) std::fprintf(stderr, "dovetail: stopped by signal %d\n", signals.received());
  } else if (!status.ok() && !line.child) {
    PrintError(status);
  }
  if (!line.result_path.empty()) {
    if (Status s = WriteWholeFile(line.result_path, result_json); !s.ok()) {
      PrintError(s);
      if (code == 0) code = 1;
    }
  }
  return code;
}

}  // namespace dt::cli
