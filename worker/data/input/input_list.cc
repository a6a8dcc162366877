#include "worker/data/input/input_list.h"

#include <algorithm>
#include <cstring>
#include <errno.h>
#include <filesystem>
#include <sys/stat.h>

#include "common/base/remote_path.h"
#include "common/base/written_paths.h"
#include "worker/data/input/remote_files.h"

namespace dt::worker {

Result<InputList> InputList::OfFiles(const std::vector<std::string>& files,
                                     std::string_view split) {
  InputList list;
  for (const std::string& file : files) {
    DT_TRY_STATUS(IsRemotePath(file) ? list.AddRemote(file, split) : list.AddFile(file, split));
  }
  return list;
}

InputList::File InputList::Describe(const RemoteInfo& remote) {
  return {remote.uri, remote.size, fmt::format("{}", remote.modified_ns / 1'000'000'000)};
}

Result<InputList::File> InputList::Describe(const std::string& path) {
  if (IsRemotePath(path)) {
    DT_TRY(const RemoteInfo remote, DescribeRemoteFile(path));
    return Describe(remote);
  }
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return NotFound("{}", std::strerror(errno));
  return File{path, static_cast<uint64_t>(info.st_size),
              fmt::format("{}.{:09}", info.st_mtim.tv_sec, info.st_mtim.tv_nsec)};
}

Status InputList::AddFile(const std::string& file, std::string_view split) {
  Result<File> described = Describe(file);
  if (!described.ok()) {
    return WithHint(NotFound("{}: the file of data.{} cannot be read: {}", file, split,
                             MessageOf(described.status())),
                    "check the path; configs/README.md says where the shipped configurations look");
  }
  std::error_code error;
  Add(*std::move(described), std::filesystem::absolute(file, error).lexically_normal().string());
  return OkStatus();
}

Status InputList::AddRemote(const std::string& pattern, std::string_view split) {
  const Result<std::vector<RemoteInfo>> files = ListRemoteFiles(pattern);
  if (!files.ok()) return Prefixed(files.status(), fmt::format("data.{}", split));
  for (const RemoteInfo& file : *files) Add(Describe(file), file.uri);
  return OkStatus();
}

void InputList::Add(File file, const std::string& path) {
  paths_text_ += path + "\n";
  // Others may read the cache, so this text, which is in it, has paths as the job file writes
  // them; the cache's name depends on the real paths.
  sources_text_ += fmt::format("{} {} {}\n", WithWrittenPaths(path), file.size, file.modified);
  bytes_ += file.size;
  files_.push_back(std::move(file));
  parts_.emplace_back();
}

InputList InputList::Part(uint32_t number, uint32_t of) const {
  InputList part;
  part.sources_text_ = sources_text_;
  part.paths_text_ = paths_text_;
  __extension__ using Wide = unsigned __int128;
  const auto cut = [&](uint64_t n) { return static_cast<uint64_t>(Wide{bytes_} * n / of); };
  const ByteRange wanted{cut(number), cut(number + uint64_t{1})};
  uint64_t before = 0;  // Bytes of the files before.
  for (const File& file : files_) {
    const uint64_t begin = std::max(wanted.begin, before);
    const uint64_t end = std::min(wanted.end, before + file.size);
    if (begin < end) {
      part.files_.push_back(file);
      part.parts_.push_back({begin - before, end - before});
      part.bytes_ += end - begin;
    }
    before += file.size;
  }
  return part;
}

Status InputList::CheckUnchanged() const {
  for (const File& file : files_) {
    const Result<File> now = Describe(file.path);
    if (now.ok() && *now == file) continue;
    if (!now.ok() && now.status().code() != StatusCode::kNotFound) return now.status();
    return WithHint(Unavailable("{}: the file changed while it was read", file.path),
                    "start the job again when nothing writes to the file");
  }
  return OkStatus();
}

InputList InputList::OfCommand(std::string command) {
  InputList list;
  list.command_ = std::move(command);
  return list;
}

const std::string& InputList::name(size_t input) const {
  static const std::string kCommand = "command";
  return is_command() ? kCommand : files_[input].path;
}

Result<NamedSource> InputList::Open(size_t input) const {
  DT_TRY(auto bytes, is_command() ? OpenPipeSource(command_) : OpenFileSource(files_[input].path));
  return NamedSource{std::move(bytes), name(input), is_command() ? ByteRange() : parts_[input]};
}

}  // namespace dt::worker
