#include "common/storage/rocksdb_status.h"

#include <filesystem>
#include <optional>

#include "common/base/text.h"

namespace dt {
namespace {

// Free bytes of the disk that contains `path`, which need not exist yet.
std::optional<uint64_t> FreeBytes(const std::string& path) {
  std::error_code error;
  std::filesystem::path at = path;
  while (at.has_relative_path() && !std::filesystem::exists(at, error)) at = at.parent_path();
  if (at.empty()) at = ".";
  const auto space = std::filesystem::space(at, error);
  return error ? std::nullopt : std::optional<uint64_t>(space.available);
}

Status DiskFull(std::string_view doing, const std::string& path, uint64_t bytes_needed) {
  const std::optional<uint64_t> free = FreeBytes(path);
  const std::string need = bytes_needed == 0 ? "" : BytesText(bytes_needed) + " needed, ";
  return WithHint(Unavailable("{} {}: the disk is full ({}{} free)", doing, path, need,
                              free ? BytesText(*free) : "unknown"),
                  "make room there, or choose another folder");
}

}  // namespace

Status CheckRoom(std::string_view doing, const std::string& path, uint64_t bytes_needed) {
  const std::optional<uint64_t> free = FreeBytes(path);
  return free.has_value() && *free < bytes_needed ? DiskFull(doing, path, bytes_needed)
                                                  : OkStatus();
}

Status FromRocks(const rocksdb::Status& status, std::string_view doing, const std::string& path,
                 uint64_t bytes_needed) {
  if (status.ok()) return OkStatus();
  const std::string text = status.ToString();
  const auto says = [&text](const char* words) { return text.find(words) != std::string::npos; };
  if (status.IsNotFound()) return NotFound("{} {}: {}", doing, path, text);
  if (status.IsCorruption()) return DataLoss("{} {}: the data is damaged: {}", doing, path, text);
  if (status.IsNoSpace() || says("No space left")) return DiskFull(doing, path, bytes_needed);
  if (says("File too large")) {
    return WithHint(Unavailable("{} {}: {}", doing, path, text),
                    "raise the limit on the size of files (ulimit -f)");
  }
  if (says("Permission denied") || says("Read-only file system")) {
    return WithHint(Unavailable("{} {}: permission denied", doing, path),
                    "give this user write access, or choose another folder");
  }
  if (says("lock")) {
    return WithHint(Unavailable("{} {}: another process has it open", doing, path),
                    "end that process, or choose another folder");
  }
  return Unavailable("{} {}: {}", doing, path, text);
}

}  // namespace dt
