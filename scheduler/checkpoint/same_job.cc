// Decides whether a checkpoint fits a job, and names the keys that differ.
#include <algorithm>
#include <functional>
#include <map>

#include "common/base/text.h"
#include "common/config/reader/key_table.h"
#include "scheduler/checkpoint/manifest.h"

namespace dt::scheduler {
namespace {

constexpr size_t kKeysShown = 8;

// The "key: value" lines of a JobConfig::resume_text. A parent such as "model.tables.user" has a
// line of its own before its keys.
struct Facts {
  std::vector<std::string> keys;  // Keys in the order of the lines.
  std::map<std::string, std::string, std::less<>> values;

  explicit Facts(std::string_view text) {
    for (const std::string_view line : SplitText(text, '\n')) {
      const size_t colon = line.find(": ");
      if (colon == std::string_view::npos) continue;
      keys.emplace_back(line.substr(0, colon));
      values.emplace(keys.back(), line.substr(colon + 2));
    }
  }
  const std::string* Find(const std::string& key) const {
    const auto found = values.find(key);
    return found == values.end() ? nullptr : &found->second;
  }
};

std::string Shown(const std::string* value) {
  if (value == nullptr) return "not set";
  return value->empty() ? "empty" : *value;
}

// A text such as "model.tables.user.dim: 24 there, 8 here" for each key that differs and `matters`.
template <class Matters>
std::vector<std::string> Differences(const Facts& there, const Facts& here, Matters matters) {
  std::vector<std::string> keys = here.keys;
  std::ranges::copy_if(there.keys, std::back_inserter(keys),
                       [&](const std::string& key) { return here.Find(key) == nullptr; });
  std::vector<std::string> all;
  // Tables, nodes and losses that only one side has, each with a dot appended.
  std::vector<std::string> absent;
  for (const std::string& key : keys) {
    const std::string *left = there.Find(key), *right = here.Find(key);
    const bool equal = left != nullptr && right != nullptr && *left == *right;
    const auto above = [&](const std::string& prefix) { return key.starts_with(prefix); };
    if (equal || !matters(key) || std::ranges::any_of(absent, above)) continue;
    const bool whole = std::ranges::any_of(
        keys, [&](const std::string& other) { return other.starts_with(key + "."); });
    if (whole) {
      absent.push_back(key + ".");
      all.push_back(fmt::format("{}: only {}", key, left == nullptr ? "here" : "there"));
    } else {
      all.push_back(fmt::format("{}: {} there, {} here", key, Shown(left), Shown(right)));
    }
  }
  return all;
}

Status Differs(std::vector<std::string> differences, const std::string& folder,
               std::string_view hint) {
  const size_t count = differences.size();
  if (count > kKeysShown) {
    differences.resize(kKeysShown);
    differences.push_back(fmt::format("and {} more", count - kKeysShown));
  }
  return WithHint(WithWhere(Invalid("the checkpoint is of a job with other keys: {}",
                                    JoinText(differences, "; ")),
                            folder),
                  hint);
}

bool EndsWithKey(std::string_view path, std::string_view key) {
  return path.ends_with(key) && path.substr(0, path.size() - key.size()).ends_with('.');
}

// Attributes of operators that only training reads; KeySpec has no entries for single operators.
bool IsOfTraining(std::string_view attribute) {
  constexpr std::string_view kOfTraining[] = {"dropout", "init", "init_value",
                                              "batch_norm_momentum"};
  return std::ranges::find(kOfTraining, attribute) != std::end(kOfTraining);
}

bool ReadByTrainingOnly(std::string_view path) {
  const KeySpec* const key = KeyAt(path);
  if (key == nullptr) return false;  // The name of a table or node.
  if (key->name == "*") return IsOfTraining(path.substr(path.rfind('.') + 1));
  return key->scope == KeyScope::kTraining;
}

// Whether `path` is a number of an optimizer that does not read it. A program that knows more such
// numbers goes on with the checkpoints of one that did not.
bool IsIgnoredByOptimizer(const Facts& facts, std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view section = path.substr(0, dot), number = path.substr(dot + 1);
  if (section != "optimizer" && !section.ends_with(".optimizer")) return false;
  const auto* const known = std::ranges::find(kOptimizerNumbers, number, &OptimizerNumber::name);
  if (known == std::end(kOptimizerNumbers)) return false;
  const std::string* const name = facts.Find(fmt::format("{}.name", section));
  const OptimizerInfo* const optimizer = name == nullptr ? nullptr : FindOptimizer(*name);
  return optimizer != nullptr && !Reads(*optimizer, number);
}

// Whether keys that were never trained get random values.
bool DrawsRows(const JobConfig& job) {
  return std::ranges::any_of(job.model.tables, [](const TableConfig& table) {
    const bool random =
        table.init.kind != InitKind::kZeros && table.init.kind != InitKind::kConstant;
    return random && table.eval_default == EvalDefault::kInitial;
  });
}

// Whether evaluations read the table's initial values, for keys that were never trained.
bool ReadsInit(const JobConfig& job, std::string_view path) {
  return std::ranges::any_of(job.model.tables, [&](const TableConfig& table) {
    return path == "model.tables." + table.name + ".init" &&
           table.eval_default == EvalDefault::kInitial;
  });
}

}  // namespace

Status CheckSameJob(const Manifest& manifest, const JobConfig& job, const std::string& folder) {
  if (manifest.resume_fingerprint == job.resume_fingerprint) return OkStatus();
  Facts there(manifest.resume_text), here(job.resume_text);
  const auto ignored = [&](const std::string& key) { return IsIgnoredByOptimizer(here, key); };
  std::vector<std::string> differences = Differences(there, here, std::not_fn(ignored));
  if (differences.empty()) {
    std::erase_if(there.keys, ignored);
    std::erase_if(here.keys, ignored);
    if (there.keys == here.keys) return OkStatus();
    differences = {"the order of tables, nodes or losses"};
  }
  return Differs(std::move(differences), folder,
                 "start anew with --resume never, or set the keys as they were");
}

Status CheckSameModel(const Manifest& manifest, const JobConfig& job, const std::string& folder) {
  const auto matters = [&](const std::string& key) {
    if (key == "seed") return DrawsRows(job);
    // Constants are no keys; an evaluation has the saved ones.
    if (key.starts_with("data.columns.")) return KeyAt(key) != nullptr;
    if (!key.starts_with("model.")) return false;
    if (key.starts_with("model.tables.") && EndsWithKey(key, "init")) return ReadsInit(job, key);
    return !ReadByTrainingOnly(key);
  };
  std::vector<std::string> differences =
      Differences(Facts(manifest.resume_text), Facts(job.resume_text), matters);
  if (differences.empty()) return OkStatus();
  return Differs(std::move(differences), folder,
                 "set the keys as they were, or use a checkpoint of this job");
}

}  // namespace dt::scheduler
