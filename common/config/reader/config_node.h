// A YAML document as a light tree in which every node knows where it was written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/specs/attrs.h"
#include "common/specs/source_mark.h"

namespace dt {

struct ConfigNode {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  std::string text{};     // A scalar's value.
  std::string written{};  // A scalar's text before expansion, if it was expanded.
  bool quoted = false;    // A scalar in quotes, which is never a number.
  // A list's items, or a map's values in the order of `keys`.
  std::vector<ConfigNode> items{};
  std::vector<std::string> keys{};  // A map's keys; no two are equal.
  std::vector<SourceMark> key_marks{};
  SourceMark mark{};

  bool is_null() const { return kind == Kind::kNull; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }

  // The value of a map's key; null if it is absent or if this is no map. Valid until the node
  // changes.
  const ConfigNode* Find(std::string_view key) const;
  ConfigNode* Find(std::string_view key);
  // REQUIRES: a map without this key.
  ConfigNode& Append(std::string key, SourceMark key_mark, ConfigNode value);
  void Remove(std::string_view key);
  // The position of the value at "a.b.c", or of the nearest map or list above it that exists.
  const SourceMark& MarkOf(std::string_view path) const;
  // The name of item `index` in paths: in a map its key, in a list the item's `name` or else its
  // index.
  std::string NameOfItem(size_t index) const;
};

// Converts a scalar, or a list of scalars of one kind, to an attribute; in a list with real
// numbers, whole numbers become real. Returns nothing for other nodes.
std::optional<AttrValue> AttrOf(const ConfigNode& node);
// Describes the node in an error message: `"text"`, `a list`, `a map`, `nothing`.
std::string Describe(const ConfigNode& node);
// "a.b"; either part may be empty.
std::string JoinPath(std::string_view parent, std::string_view key);
// "file:line", or the file alone if the line is not known (a --set flag).
std::string MarkText(const SourceMark& mark);

}  // namespace dt
