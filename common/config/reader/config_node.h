// A YAML document as our own values: a light tree in which every node knows where it was written.
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
  std::string text{};               // Scalar.
  std::string written{};            // Scalar: as it is written, where the text was expanded.
  bool quoted = false;              // Scalar: written in quotes, so never a number.
  std::vector<ConfigNode> items{};  // List: items. Map: values, as long as `keys`.
  std::vector<std::string> keys{};  // Map: no two are equal.
  std::vector<SourceMark> key_marks{};
  SourceMark mark{};

  bool is_null() const { return kind == Kind::kNull; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }

  // The value of a map's key; null if absent or if this is no map. Valid until the node changes.
  const ConfigNode* Find(std::string_view key) const;
  ConfigNode* Find(std::string_view key);
  // REQUIRES: a map without this key.
  ConfigNode& Append(std::string key, SourceMark key_mark, ConfigNode value);
  void Remove(std::string_view key);
  // Where the value of "a.b.c" is written, else where the nearest map or list above it is.
  const SourceMark& MarkOf(std::string_view path) const;
  // What item `index` is called in paths: a map's key; in a list, the item's `name`, else the
  // index.
  std::string NameOfItem(size_t index) const;
};

// A scalar, or a list of scalars of one kind (whole numbers beside others become real), as an
// attribute of a node; nothing for anything else.
std::optional<AttrValue> AttrOf(const ConfigNode& node);
// What a person is told was found: `"text"`, `a list`, `a map`, `nothing`.
std::string Describe(const ConfigNode& node);
// "a.b"; either part may be empty.
std::string JoinPath(std::string_view parent, std::string_view key);
// "file:line"; the file alone where no line is known (a --set flag).
std::string MarkText(const SourceMark& mark);

}  // namespace dt
