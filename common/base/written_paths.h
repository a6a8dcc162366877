// Paths as the job file has them. The environment may complete a path (`${DATA}/day1.csv`) with a
// secret, so whatever is printed, logged or told to others shows the written text, while files are
// opened under the completed one. One registry for the process; any thread.
#pragma once

#include <string>
#include <string_view>

namespace dt {

// The beginning of a path, up to its last ${…}.
struct WrittenPath {
  std::string completed;  // With the values of the environment.
  std::string written;    // As the job file has it.
  bool goes_on = false;   // The name of the file goes on behind it: `${DAY}.csv`.
};

// Remembers it, and the absolute forms of `completed`. Ignored where `completed` has fewer than 4
// bytes: it would be found everywhere.
void NoteWrittenPath(WrittenPath path);

// `text` with the written form of every noted path in it, the longest first. A match begins and
// ends with a component: /data/day1 is not found in /data/day12. What stands in ${…} stays, so
// doing it twice changes nothing more.
std::string WithWrittenPaths(std::string_view text);

}  // namespace dt
