#include "scheduler/report/timeline_files.h"

#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "common/base/folder.h"
#include "common/storage/files.h"

namespace dt::scheduler {
namespace {

constexpr std::string_view kRoot = "/timeline";
constexpr size_t kBytesMax = 64 << 20;  // The scheduler holds a whole file in memory to send it.

// Accepts "worker-3.json" and "worker-3.txt", and no name that would need an escape in HTML.
bool IsTimeline(std::string_view name) {
  constexpr std::string_view kStart = "worker-";
  const size_t dot = name.find('.');
  if (!name.starts_with(kStart) || dot == std::string_view::npos || dot == kStart.size()) {
    return false;
  }
  const std::string_view number = name.substr(kStart.size(), dot - kStart.size());
  const std::string_view type = name.substr(dot);
  return number.find_first_not_of("0123456789") == std::string_view::npos &&
         (type == ".json" || type == ".txt");
}

std::set<std::string> TimelinesIn(const std::string& folder) {
  std::set<std::string> names;
  for (const std::filesystem::path& path : ListFolderIfAny(folder)) {
    std::string name = path.filename().string();
    if (IsTimeline(name)) names.insert(std::move(name));
  }
  return names;
}

std::string ListPage(const std::set<std::string>& names) {
  std::string items;
  for (const std::string& name : names) {
    items += fmt::format("<li><a href=\"timeline/{0}\">{0}</a></li>\n", name);
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Timelines</title>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<style>:root {{ color-scheme: light dark; }} body {{ font: 15px/1.5 system-ui; }}</style>\n"
      "<h1>Timelines of steps</h1>\n<p>The text says how busy each worker was. The JSON file is "
      "for ui.perfetto.dev or chrome://tracing.</p>\n<ul>\n{}</ul>\n</html>\n",
      items);
}

}  // namespace

std::optional<HttpReply> TimelineReply(const std::string& folder, std::string_view path) {
  if (!path.starts_with(kRoot)) return std::nullopt;
  const std::set<std::string> names = TimelinesIn(folder);
  path.remove_prefix(kRoot.size());
  if (path.empty() && !names.empty()) {
    return HttpReply{200, "text/html; charset=utf-8", ListPage(names)};
  }
  if (!path.starts_with('/') || !names.contains(std::string(path.substr(1)))) return std::nullopt;
  Result<std::string> text = ReadWholeFile(folder + std::string(path), kBytesMax);
  if (!text.ok()) return std::nullopt;
  const bool json = path.ends_with(".json");
  return HttpReply{200, json ? "application/json" : "text/plain; charset=utf-8", *std::move(text)};
}

}  // namespace dt::scheduler
