#include "common/base/written_paths.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>

#include "common/base/immortal.h"
#include "common/base/mutex.h"

namespace dt {
namespace {

constexpr size_t kBytesMin = 4;
constexpr size_t kWordBytesMax = 15;

struct LongerFirst {
  bool operator()(const std::string& a, const std::string& b) const {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  }
};

struct Registry {
  std::atomic<bool> any = false;
  Mutex mutex;
  std::map<std::string, WrittenPath, LongerFirst> paths DT_GUARDED_BY(mutex);
};

Registry& TheRegistry() {
  static Immortal<Registry> registry;
  return *registry;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
// Whether `c` is likely part of a file's name, not of the sentence around it.
bool IsOfName(char c) { return IsDigit(c) || IsLetter(c) || c == '_' || c == '-'; }

// A short word or number, which any sentence may contain. It counts as a path only next to a slash.
bool IsPlain(std::string_view text) {
  return text.size() <= kWordBytesMax &&
         (std::ranges::all_of(text, IsDigit) || std::ranges::all_of(text, IsLetter));
}

bool IsPathAt(const WrittenPath& path, std::string_view text, size_t at) {
  if (!text.substr(at).starts_with(path.completed)) return false;
  const char before = at == 0 ? ' ' : text[at - 1];
  const size_t end = at + path.completed.size();
  const char after = end == text.size() ? ' ' : text[end];
  const bool absolute = path.completed.starts_with('/');
  if (IsOfName(before) || before == '.' || (absolute && before == '/')) return false;
  if (!path.goes_on && IsOfName(after)) return false;
  return path.goes_on || before == '/' || after == '/' || !IsPlain(path.completed);
}

std::string WithoutEndSlash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// The folder that contains the glob: the paths of files that a glob finds share only this part with
// it.
std::string WithoutGlob(const std::string& path) {
  const size_t glob = path.find_first_of("*?[");
  return glob == std::string::npos ? path : path.substr(0, path.rfind('/', glob));
}

}  // namespace

void NoteWrittenPath(WrittenPath path) {
  namespace fs = std::filesystem;
  path.completed = WithoutEndSlash(WithoutGlob(path.completed));
  if (path.completed.size() < kBytesMin) return;
  std::error_code absent, unreachable;
  const fs::path absolute = fs::absolute(path.completed, absent);
  const fs::path real = fs::weakly_canonical(absolute, unreachable);
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mutex);
  for (const std::string& form :
       {path.completed, fs::path(path.completed).lexically_normal().string(),
        absolute.lexically_normal().string(), real.string()}) {
    const std::string completed = WithoutEndSlash(form);
    if (completed.size() < kBytesMin) continue;
    WrittenPath& noted =
        registry.paths.try_emplace(completed, WrittenPath{completed, path.written}).first->second;
    noted.goes_on = noted.goes_on || path.goes_on;
  }
  registry.any = true;
}

std::string WithWrittenPaths(std::string_view text) {
  Registry& registry = TheRegistry();
  if (!registry.any) return std::string(text);
  MutexLock lock(registry.mutex);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t bytes = 1;
    std::string_view shown = text.substr(at, 1);
    if (text.substr(at).starts_with("${")) {
      bytes = std::min(text.find('}', at), text.size() - 1) + 1 - at;
      shown = text.substr(at, bytes);
    } else {
      const auto found = std::ranges::find_if(
          registry.paths, [&](const auto& entry) { return IsPathAt(entry.second, text, at); });
      if (found != registry.paths.end()) {
        bytes = found->second.completed.size();
        shown = found->second.written;
      }
    }
    out += shown;
    at += bytes;
  }
  return out;
}

}  // namespace dt
