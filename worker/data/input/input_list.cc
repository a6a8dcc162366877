#include "worker/data/input/input_list.h"

#include <cstring>
#include <errno.h>
#include <filesystem>
#include <sys/stat.h>

#include "common/base/written_paths.h"

namespace dt::worker {

Result<InputList> InputList::OfFiles(const std::vector<std::string>& files,
                                     std::string_view split) {
  InputList list;
  for (const std::string& file : files) {
    struct stat info {};
    if (stat(file.c_str(), &info) != 0) {
      return WithHint(
          NotFound("{}: the file of data.{} cannot be read: {}", file, split, std::strerror(errno)),
          "check the path; configs/README.md says where the shipped configurations look");
    }
    std::error_code error;
    const std::string absolute = std::filesystem::absolute(file, error).lexically_normal().string();
    list.paths_text_ += absolute + "\n";
    // Others may read the cache, so this text, which is in it, has paths as the job file writes
    // them; the cache's name depends on the real paths.
    list.sources_text_ += fmt::format("{} {} {}.{:09}\n", WithWrittenPaths(absolute), info.st_size,
                                      info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    list.bytes_ += static_cast<uint64_t>(info.st_size);
    list.files_.push_back(file);
  }
  return list;
}

InputList InputList::OfCommand(std::string command) {
  InputList list;
  list.command_ = std::move(command);
  return list;
}

const std::string& InputList::name(size_t input) const {
  static const std::string kCommand = "command";
  return is_command() ? kCommand : files_[input];
}

Result<NamedSource> InputList::Open(size_t input) const {
  DT_TRY(auto bytes, is_command() ? OpenPipeSource(command_) : OpenFileSource(files_[input]));
  return NamedSource{std::move(bytes), name(input)};
}

}  // namespace dt::worker
