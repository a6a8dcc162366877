// A map of the job file, read by the table of keys. Construction reports unknown keys, missing
// ones, wrong types, values out of range and values not available yet; reading then only takes what
// is right, and leaves the given default otherwise.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/base/clock.h"
#include "common/config/reader/config_node.h"
#include "common/config/reader/key_table.h"
#include "common/config/reader/problems.h"

namespace dt {

class MapReader {
 public:
  // `node` may be null (absent: all defaults); `mark` is then where something would have been. The
  // node and the problems must outlive the reader.
  MapReader(const ConfigNode* node, std::string_view section, std::string path, SourceMark mark,
            Problems& problems);

  // The value if it is present and right. REQUIRES: the section has this key.
  const ConfigNode* Find(std::string_view name) const;
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  // Present with a value that is one of the words beside numbers, such as "auto".
  bool IsWord(std::string_view name) const;

  // Words leave `out` as it is.
  void Read(std::string_view name, bool& out) const;
  void Read(std::string_view name, uint32_t& out) const;
  void Read(std::string_view name, uint64_t& out) const;
  void Read(std::string_view name, float& out) const;
  void Read(std::string_view name, std::string& out) const;
  void Read(std::string_view name, char& out) const;
  void Read(std::string_view name, Duration& out) const;
  template <class E>
    requires std::is_enum_v<E>
  void Read(std::string_view name, E& out) const {
    if (const int index = ChoiceIndex(name); index >= 0) out = static_cast<E>(index);
  }
  std::vector<std::string> Texts(std::string_view name) const;
  // A text as a path: relative to the file it is written in; in a flag, to the working directory.
  std::vector<std::string> Paths(std::string_view name) const;

  MapReader Sub(std::string_view name) const;
  struct Named;
  // The maps of a kMapOf or kListOf key, in order. A list's item is called by its `name`, else its
  // index.
  std::vector<Named> Items(std::string_view name) const;

  // Where the key is written, else where the map is.
  const SourceMark& MarkOf(std::string_view name) const;
  const SourceMark& mark() const { return mark_; }
  const std::string& path() const { return path_; }
  const ConfigNode* node() const { return node_; }
  std::string PathOf(std::string_view name) const { return JoinPath(path_, name); }
  // A problem of this key.
  void Report(std::string_view name, std::string_view text) const;
  Problems& problems() const { return problems_; }

 private:
  void CheckKeys();
  bool CheckValue(const KeySpec& key, const ConfigNode& value);
  // Reports the items that are no maps, if that is what is wrong.
  bool ReportItems(const KeySpec& key, const ConfigNode& value) const;
  bool IsWellFormed(const KeySpec& key, const ConfigNode& value) const;
  bool IsAvailable(const KeySpec& key, const ConfigNode& value) const;
  int ChoiceIndex(std::string_view name) const;

  const ConfigNode* node_;
  std::string section_, path_;
  SourceMark mark_;
  Problems& problems_;
  std::vector<std::string> wrong_;  // Keys whose values were reported.
};

struct MapReader::Named {
  std::string name;
  MapReader map;
};

// `path` beside the file that `mark` names.
std::string BesideFile(const std::string& path, const SourceMark& mark);

}  // namespace dt
