#include "common/config/reader/problems.h"

#include <algorithm>
#include <tuple>

namespace dt {

void Problems::Add(const SourceMark& mark, std::string_view path, std::string_view text) {
  const bool known = std::ranges::any_of(entries_, [&](const Entry& entry) {
    return entry.path == path && entry.text == text && entry.mark == mark;
  });
  if (!known) entries_.push_back({mark, std::string(path), std::string(text), false});
}

void Problems::AddNotYet(const SourceMark& mark, std::string_view path, std::string_view text) {
  entries_.push_back({mark, std::string(path), std::string(text), true});
}

bool Problems::HasUnder(std::string_view path) const {
  return std::any_of(entries_.begin(), entries_.end(), [path](const Entry& entry) {
    return entry.path == path || entry.path.starts_with(std::string(path) + ".");
  });
}

Status Problems::ToStatus(std::string_view first_file) const {
  if (entries_.empty()) return OkStatus();
  std::vector<Entry> sorted = entries_;
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Entry& a, const Entry& b) {
    return std::tuple(a.mark.file != first_file, a.mark.file, a.mark.line) <
           std::tuple(b.mark.file != first_file, b.mark.file, b.mark.line);
  });
  std::string message;
  for (const Entry& entry : sorted) {
    if (!entry.mark.file.empty()) message += MarkText(entry.mark) + ": ";
    // The name of a flag contains the path already.
    const bool named = entry.mark.line == 0 && entry.mark.file.ends_with(" " + entry.path);
    if (!entry.path.empty() && !named) message += entry.path + ": ";
    message += entry.text + "\n";
  }
  message +=
      fmt::format("{} problem{}, nothing started", sorted.size(), sorted.size() == 1 ? "" : "s");
  const bool all_not_yet =
      std::all_of(sorted.begin(), sorted.end(), [](const Entry& e) { return e.not_yet; });
  return WithWhere(
      MakeStatus(all_not_yet ? StatusCode::kUnimplemented : StatusCode::kInvalidArgument, message),
      MarkText(sorted.front().mark));
}

}  // namespace dt
