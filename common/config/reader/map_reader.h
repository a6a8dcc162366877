// Reads a map of the job file with the help of the table of keys. The constructor reports unknown
// and missing keys, wrong types, values out of range and values that are not available yet. Read
// functions then return only right values and otherwise leave the given default.
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
  // A null `node` is an absent map: all values are defaults, and `mark` is where the map would be.
  // The node and the problems must outlive the reader.
  MapReader(const ConfigNode* node, std::string_view section, std::string path, SourceMark mark,
            Problems& problems);

  // The value, if it is present and right. REQUIRES: the section has this key.
  const ConfigNode* Find(std::string_view name) const;
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  // Whether the value is one of the words that are allowed beside numbers, such as "auto".
  bool IsWord(std::string_view name) const;

  // A word such as "auto" leaves `out` unchanged.
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
  std::vector<float> Floats(std::string_view name) const;
  // A path in a file is relative to that file, a path in a flag to the working directory.
  std::vector<std::string> Paths(std::string_view name) const;

  MapReader Sub(std::string_view name) const;
  struct Named;
  // The maps of a kMapOf or kListOf key, in order. An item of a list is named by its `name`, or
  // else its index.
  std::vector<Named> Items(std::string_view name) const;

  // The position of the key, or of the map if the key is absent.
  const SourceMark& MarkOf(std::string_view name) const;
  const SourceMark& mark() const { return mark_; }
  const std::string& path() const { return path_; }
  const ConfigNode* node() const { return node_; }
  std::string PathOf(std::string_view name) const { return JoinPath(path_, name); }
  // Reports a problem of this key.
  void Report(std::string_view name, std::string_view text) const;
  Problems& problems() const { return problems_; }

 private:
  void CheckKeys();
  bool CheckValue(const KeySpec& key, const ConfigNode& value);
  // If the value is a list or map with items that are not maps, reports these.
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

// `path` relative to the folder of the file that `mark` names; an absolute or remote path as it is.
std::string BesideFile(const std::string& path, const SourceMark& mark);

}  // namespace dt
