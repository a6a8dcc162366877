// Every key of the job file, once: type, who must agree on its value, range, default, what is
// available, meaning. The reader, the suggestions for unknown keys, the fingerprints, the JSON
// Schema and the test of docs/job-file.md all come from this table (keys_model.h, keys_run.h).
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
  kTexts,   // A text or a list of texts.
  kPath,    // A text that names a file or a folder.
  kPaths,   // A path or a list of paths.
  kChoice,  // One of `values`.
  kDuration,
  kSize,
  kMap,     // Of section `values`.
  kMapOf,   // Names chosen by the user → maps of section `values`.
  kListOf,  // Maps of section `values`.
  kFree,    // Anything: read by code of its own.
};

// Who must agree on a key's value. It has no default: a key that does not say it is no KeySpec.
enum class KeyScope : uint8_t {
  kModel,     // Whoever uses a checkpoint: another value means another model.
  kTraining,  // Whoever resumes a training; evaluations do not depend on it.
  kRun,       // The processes of one run; a resumed run may have another value.
  kNobody,    // Each process may have a value of its own.
  kInside,    // The key is a map, a list of maps or the name of one: the keys inside say it.
};

// Stands in keys_model.h and keys_run.h for the numbers of optimizers (common/specs/optimizer.h):
// AllKeys has a key for each of them.
inline constexpr std::string_view kEachOptimizerNumber = "<each number of an optimizer>";

struct KeySpec {
  std::string_view section;  // "" is the top level.
  std::string_view name;     // "*": this section takes any other key too.
  KeyType type;
  KeyScope scope;
  // kChoice: "a|b", in the enum's order. kMap…: a section. Else: words that are allowed besides.
  std::string_view values;
  double min = 0, max = 0;     // kUint, kFloat (inclusive).
  std::string_view fallback;   // The default as text; "required"; "" for none.
  std::string_view available;  // "a|b": other values are valid but not available yet. "": all are.
  std::string_view meaning;    // One line.

  // The default is all that is available yet.
  constexpr bool is_fixed() const { return !available.empty() && available == fallback; }
  // Some processes must agree on what is written here.
  constexpr bool is_compared() const {
    return scope != KeyScope::kNobody && scope != KeyScope::kInside && !is_fixed();
  }
};

inline constexpr std::string_view kRequired = "required";

// Bounds that are not worth telling.
inline constexpr double kAnyCount = 4294967295.0;
inline constexpr double kAnyWhole = 1e18;
inline constexpr double kAnyNumber = 1e30;

const std::vector<KeySpec>& AllKeys();
// The keys of a section in the table's order. REQUIRES: the section exists.
std::span<const KeySpec> KeysOf(std::string_view section);
// REQUIRES: the key exists.
const KeySpec& KeyOf(std::string_view section, std::string_view name);
// The key of a place in a job file, such as "model.tables.user.optimizer.lr"; null if there is
// none.
const KeySpec* KeyAt(std::string_view path);
// Whether the value at this place of a job file ("data.train.0") is a path.
bool IsPath(std::string_view path_of_key);
std::vector<std::string> NamesOf(std::span<const KeySpec> keys);
// "a whole number (1 to 64)", "one of a, b", …
std::string Expected(const KeySpec& key);
std::vector<std::string> Alternatives(std::string_view values);

}  // namespace dt
