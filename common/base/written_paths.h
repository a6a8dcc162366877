// Paths as the job file writes them. An environment variable in a path (`${DATA}/day1.csv`) may
// hold a secret. Files are opened under the completed path, but all prints, logs and messages show
// the written one. One registry for the process; any thread.
#pragma once

#include <string>
#include <string_view>

namespace dt {

// The beginning of a path, up to its last ${…}.
struct WrittenPath {
  std::string completed;  // The variables are replaced by their values.
  std::string written;    // The text in the job file.
  bool goes_on = false;   // The file's name continues after the last variable: `${DAY}.csv`.
};

// Registers the path and the absolute forms of `completed`. A `completed` of fewer than 4 bytes is
// ignored, because it would match everywhere.
void NoteWrittenPath(WrittenPath path);

// Replaces every registered path in `text` by its written form, longer paths first. Matches begin
// and end with a path component: /data/day1 is not found in /data/day12. Text inside ${…} stays, so
// a second call changes nothing.
std::string WithWrittenPaths(std::string_view text);

}  // namespace dt
