// Collects everything that is wrong with a job, so that a person fixes it in one go.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/config/reader/config_node.h"

namespace dt {

class Problems {
 public:
  // `path` may be empty (a problem of the whole file). `text` says what was found and what is
  // expected.
  void Add(const SourceMark& mark, std::string_view path, std::string_view text);
  // A valid wish whose mechanism does not exist yet.
  void AddNotYet(const SourceMark& mark, std::string_view path, std::string_view text);
  bool empty() const { return entries_.empty(); }
  // Something is wrong with this key or below it.
  bool HasUnder(std::string_view path) const;

  // OK if empty. Otherwise one line each, by file (`first_file` first) and line, then the closing
  // line.
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
