// Lists every key of the job file once: type, who must agree on its value, range, default,
// availability and meaning. The reader, the suggestions for unknown keys, the fingerprints, the
// JSON Schema and the test of docs/job-file.md all use this table (keys_model.h, keys_run.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dt {

enum class KeyType {
  kBool,
  kUint,
  kFloat,
  kText,
  kFloats,  // A list of numbers.
  kTexts,   // A text or a list of texts.
  kPath,    // A text that names a file or a folder.
  kPaths,   // A path or a list of paths.
  kChoice,  // One of `values`.
  kDuration,
  kSize,
  kMap,     // A map whose keys are section `values`.
  kMapOf,   // Names chosen by the user → maps as in kMap.
  kListOf,  // A list of maps as in kMap.
  kFree,    // Any value; separate code reads it.
};

// Who must agree on a key's value. There is no default value, so that every key has to state its
// scope.
enum class KeyScope : uint8_t {
  kModel,     // All users of a checkpoint: another value is another model.
  kTraining,  // All who resume a training; evaluations do not depend on it.
  kRun,       // The processes of one run; a resumed run may change the value.
  kNobody,    // Nobody: each process may have its own value.
  // The key is a map, a list of maps or the name of one; the keys inside it have scopes.
  kInside,
};

// Stands in keys_model.h and keys_run.h for all numbers of optimizers (common/specs/optimizer.h);
// AllKeys replaces it by one key for each number.
inline constexpr std::string_view kEachOptimizerNumber = "<each number of an optimizer>";

struct KeySpec {
  std::string_view section;  // "" is the top level.
  std::string_view name;     // "*": the section also accepts any other key.
  KeyType type;
  KeyScope scope;
  // For kChoice "a|b", in the enum's order; for kMap, kMapOf and kListOf a section; for other types
  // words that are allowed besides.
  std::string_view values;
  double min = 0, max = 0;    // For kUint, kFloat and kFloats (inclusive).
  std::string_view fallback;  // The default as text; "required"; "" for none.
  // "a|b": the other values are valid but not available yet; "": all are available.
  std::string_view available;
  std::string_view meaning;  // One line.

  // Whether only the default is available yet.
  constexpr bool is_fixed() const { return !available.empty() && available == fallback; }
  // Whether some processes must agree on the value.
  constexpr bool is_compared() const {
    return scope != KeyScope::kNobody && scope != KeyScope::kInside && !is_fixed();
  }
};

inline constexpr std::string_view kRequired = "required";

// Bounds that error messages do not mention.
inline constexpr double kAnyCount = 4294967295.0;
inline constexpr double kAnyWhole = 1e18;
inline constexpr double kAnyNumber = 1e30;

const std::vector<KeySpec>& AllKeys();
// The keys of a section in the table's order. REQUIRES: the section exists.
std::span<const KeySpec> KeysOf(std::string_view section);
// REQUIRES: the key exists.
const KeySpec& KeyOf(std::string_view section, std::string_view name);
// The key at a position in a job file, such as "model.tables.user.optimizer.lr"; null if there is
// none.
const KeySpec* KeyAt(std::string_view path);
// Whether the value at this position of a job file ("data.train.0") is a path.
bool IsPath(std::string_view path_of_key);
std::vector<std::string> NamesOf(std::span<const KeySpec> keys);
// Describes the allowed values: "a whole number (1 to 64)", "one of a, b", …
std::string Expected(const KeySpec& key);
std::vector<std::string> Alternatives(std::string_view values);

}  // namespace dt
