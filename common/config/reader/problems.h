// Collects everything that is wrong with a job, so that the user can fix it all at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/config/reader/config_node.h"

namespace dt {

class Problems {
 public:
  // `path` is empty for a problem of a whole file. `text` says what was found and what is expected.
  // One that is there already is not added again: a section may be read several times.
  void Add(const SourceMark& mark, std::string_view path, std::string_view text);
  // Adds a valid request whose mechanism does not exist yet.
  void AddNotYet(const SourceMark& mark, std::string_view path, std::string_view text);
  void Append(const Problems& others) {
    entries_.insert(entries_.end(), others.entries_.begin(), others.entries_.end());
  }
  bool empty() const { return entries_.empty(); }
  // Whether there is a problem with this key or below it.
  bool HasUnder(std::string_view path) const;

  // OK if there are no problems. Otherwise one line each, ordered by file (`first_file` first) and
  // line, then the closing line.
  Status ToStatus(std::string_view first_file) const;

 private:
  struct Entry {
    SourceMark mark;
    std::string path;
    std::string text;
    bool not_yet;
  };
  std::vector<Entry> entries_;
};

}  // namespace dt
