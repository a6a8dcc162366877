#include "common/config/reader/prepare.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <utility>

#include "common/base/text.h"
#include "common/base/written_paths.h"
#include "common/config/reader/key_table.h"
#include "common/config/reader/map_reader.h"
#include "common/config/reader/values.h"
#include "common/config/reader/yaml_parse.h"

namespace dt {
namespace {

// Returns the text that replaces ${inside}, or reports a problem and returns nothing.
using Lookup = std::function<std::optional<std::string>(std::string_view inside)>;

ConfigNode* Enter(ConfigNode& node, std::string_view key) {
  if (!node.is_list()) return node.Find(key);
  if (const auto index = ParseUint(key); index.has_value() && *index < node.items.size()) {
    return &node.items[*index];
  }
  for (ConfigNode& item : node.items) {
    const ConfigNode* name = item.Find("name");
    if (name != nullptr && name->is_scalar() && name->text == key) return &item;
  }
  return nullptr;
}

struct Replaced {
  std::string text;
  size_t end = 0;          // Position in `text` after the last replaced value.
  size_t written_end = 0;  // Position in the original text after the last ${…}.
};

Replaced ReplaceInText(const std::string& text, const Lookup& lookup) {
  Replaced out;
  size_t& at = out.written_end;
  for (size_t begin; (begin = text.find("${", at)) != std::string::npos;) {
    const size_t end = text.find('}', begin);
    if (end == std::string::npos) break;
    out.text += text.substr(at, begin - at);
    const std::string inside = text.substr(begin + 2, end - begin - 2);
    out.text += lookup(inside).value_or("");
    out.end = out.text.size();
    at = end + 1;
  }
  out.text += text.substr(at);
  return out;
}

// Registers the path so that it is printed as it is written.
void NotePath(const Replaced& path, const ConfigNode& written) {
  const std::string completed = path.text.substr(0, path.end);
  const char next = path.written_end == written.text.size() ? '/' : written.text[path.written_end];
  const bool goes_on = next != '/';
  for (const std::string& form : {completed, BesideFile(completed, written.mark)}) {
    NoteWrittenPath({form, written.text.substr(0, path.written_end), goes_on});
  }
}

struct Parameters {
  const ConfigNode* given = nullptr;     // The values in model.with; may be null.
  const ConfigNode* declared = nullptr;  // The template's parameters with their defaults.

  const ConfigNode* Find(std::string_view name) const {
    if (declared == nullptr || declared->Find(name) == nullptr) return nullptr;
    const ConfigNode* value = given == nullptr ? nullptr : given->Find(name);
    return value != nullptr ? value : declared->Find(name);
  }
};

// Expands ${…} in every scalar below `node`.
class Expander {
 public:
  Expander(Parameters parameters, Problems& problems)
      : parameters_(parameters), problems_(problems) {}

  void Expand(ConfigNode& node, const std::string& path) {
    if (node.is_scalar()) {
      ExpandScalar(node, path);
      return;
    }
    std::vector<ConfigNode> items;
    for (size_t i = 0; i < node.items.size(); ++i) {
      ConfigNode& item = node.items[i];
      const bool placeholder = Placeholder(item) != nullptr;
      Expand(item, JoinPath(path, node.NameOfItem(i)));
      const bool spliced = item.is_list() || item.is_null();  // Null: reported as missing.
      if (node.is_list() && placeholder && spliced) {
        std::move(item.items.begin(), item.items.end(), std::back_inserter(items));
      } else {
        items.push_back(std::move(item));
      }
    }
    node.items = std::move(items);
  }

 private:
  // The parameter's node, if the scalar is exactly ${parameter}.
  const ConfigNode* Placeholder(const ConfigNode& node) const {
    const std::string& text = node.text;
    if (!node.is_scalar() || !text.starts_with("${") || !text.ends_with("}")) return nullptr;
    return parameters_.Find(std::string_view(text).substr(2, text.size() - 3));
  }

  void ExpandScalar(ConfigNode& node, const std::string& path) {
    if (node.text.find("${") == std::string::npos) return;
    if (const ConfigNode* whole = Placeholder(node)) {
      node = ConfigNode(*whole);
      return;
    }
    from_environment_ = false;
    Replaced replaced = ReplaceInText(
        node.text, [&](std::string_view inside) { return Value(node, path, inside); });
    // The shell expands variables in the command, so that no secret of the environment is printed,
    // appears in the list of processes, or becomes part of the fingerprint. Here they are only
    // checked.
    if (path == "data.command") return;
    if (from_environment_ && IsPath(path)) NotePath(replaced, node);
    node.written = std::exchange(node.text, std::move(replaced.text));
  }

  std::optional<std::string> Value(const ConfigNode& node, const std::string& path,
                                   std::string_view inside) {
    if (const ConfigNode* parameter = parameters_.Find(inside)) {
      if (parameter->is_scalar()) return parameter->text;
      problems_.Add(node.mark, path,
                    fmt::format("${{{}}} is {}, expected a single value inside a text", inside,
                                Describe(*parameter)));
      return std::nullopt;
    }
    const size_t dash = inside.find(":-");
    const std::string name(inside.substr(0, dash));
    const char* value = std::getenv(name.c_str());
    if (value != nullptr && *value != '\0') {
      from_environment_ = true;
      return std::string(value);
    }
    if (dash != std::string_view::npos) return std::string(inside.substr(dash + 2));
    const std::string near =
        parameters_.declared == nullptr ? "" : DidYouMean(name, parameters_.declared->keys);
    problems_.Add(node.mark, path,
                  fmt::format("the environment variable {0} is not set; write ${{{0}:-default}} to "
                              "give a default{1}",
                              name, near));
    return std::nullopt;
  }

  Parameters parameters_;
  Problems& problems_;
  // A variable of the environment, not only a default, was used in the current scalar.
  bool from_environment_ = false;
};

void CheckParameters(const ConfigNode& with, const Parameters& parameters, const std::string& file,
                     Problems& problems) {
  static const std::vector<std::string> kNone;
  const auto& names = parameters.declared == nullptr ? kNone : parameters.declared->keys;
  for (size_t i = 0; i < with.keys.size(); ++i) {
    if (std::find(names.begin(), names.end(), with.keys[i]) != names.end()) continue;
    const std::string near = DidYouMean(with.keys[i], names);
    problems.Add(with.key_marks[i], JoinPath("model.with", with.keys[i]),
                 fmt::format("unknown parameter of {}{}", file,
                             near.empty() ? "; it has " + JoinText(names, ", ") : near));
  }
}

// Checks the keys at the top level of a template.
void CheckTemplateKeys(const ConfigNode& model, Problems& problems) {
  static const std::vector<std::string> kNames = {"parameters", "tables", "graph", "loss"};
  for (size_t i = 0; i < model.keys.size(); ++i) {
    if (std::find(kNames.begin(), kNames.end(), model.keys[i]) != kNames.end()) continue;
    const std::string near = DidYouMean(model.keys[i], kNames);
    problems.Add(model.key_marks[i], model.keys[i],
                 "unknown key of a model template" +
                     (near.empty() ? "; known here: " + JoinText(kNames, ", ") : near));
  }
}

void ReportMissing(const ConfigNode& use, const Parameters& parameters, Problems& problems) {
  if (parameters.declared == nullptr) return;
  for (size_t i = 0; i < parameters.declared->keys.size(); ++i) {
    const std::string& name = parameters.declared->keys[i];
    if (!parameters.Find(name)->is_null()) continue;
    problems.Add(use.mark, JoinPath("model.with", name),
                 fmt::format("missing, {} needs it", use.text));
  }
}

void UseTemplate(ConfigNode& model, Problems& problems) {
  const ConfigNode use = *model.Find("use");
  for (const char* own : {"tables", "graph", "loss"}) {
    if (model.Find(own) == nullptr) continue;
    problems.Add(model.Find(own)->mark, JoinPath("model", own),
                 "found beside `use`, expected either a template or tables, graph and loss");
    model.Remove(own);
  }
  if (!use.is_scalar()) return;  // The reader reports this.
  const ConfigNode* with = model.Find("with");
  if (with != nullptr && !with->is_map() && !with->is_null()) {
    problems.Add(with->mark, "model.with",
                 fmt::format("found {}, expected a map of parameters", Describe(*with)));
    with = nullptr;
  }
  const std::string file = BesideFile(use.text, use.mark);
  ConfigNode body = ParseYamlFile(file, use.mark, "model.use", problems);
  if (!body.is_map()) {
    if (!problems.HasUnder("model.use")) {
      problems.Add(use.mark, "model.use", file + " is not a map with tables, graph and loss");
    }
    return;
  }
  CheckTemplateKeys(body, problems);
  const ConfigNode* declared = body.Find("parameters");
  const ConfigNode own = declared == nullptr || !declared->is_map() ? ConfigNode() : *declared;
  const Parameters parameters{with, own.is_map() ? &own : nullptr};
  if (with != nullptr) CheckParameters(*with, parameters, file, problems);
  ReportMissing(use, parameters, problems);
  body.Remove("parameters");
  Expander(parameters, problems).Expand(body, "model");
  for (size_t i = 0; i < body.keys.size(); ++i) {
    const bool known =
        body.keys[i] == "tables" || body.keys[i] == "graph" || body.keys[i] == "loss";
    if (known && model.Find(body.keys[i]) == nullptr) {
      model.Append(body.keys[i], body.key_marks[i], std::move(body.items[i]));
    }
  }
}

}  // namespace

void ApplyOverride(const std::string& flag, ConfigNode& root, Problems& problems) {
  const size_t equals = flag.find('=');
  const std::string path = flag.substr(0, equals);
  if (equals == std::string::npos || path.empty()) {
    problems.Add({"--set " + flag, 0}, "", "expected a.b.c=value");
    return;
  }
  const SourceMark mark{"--set " + path, 0};
  ConfigNode value = ParseYaml(flag.substr(equals + 1), mark.file, 0, problems);
  value.mark = mark;
  ConfigNode *parent = nullptr, *at = &root;
  for (const std::string_view key : SplitText(path, '.')) {
    ConfigNode* next = Enter(*at, key);
    if (next == nullptr) {
      if (at->is_null()) *at = {.kind = ConfigNode::Kind::kMap, .mark = mark};
      if (!at->is_map()) {
        problems.Add(mark, "", fmt::format("there is nothing called \"{}\" to set", key));
        return;
      }
      next = &at->Append(std::string(key), mark, {.mark = mark});
    }
    parent = at;
    at = next;
  }
  *at = std::move(value);
  if (parent->is_map()) parent->key_marks[static_cast<size_t>(at - parent->items.data())] = mark;
}

ConfigNode PrepareJob(const std::string& path, const std::vector<std::string>& overrides,
                      Problems& problems) {
  ConfigNode root = ParseYamlFile(path, {path, 0}, "", problems);
  if (!problems.empty() && !root.is_map()) return root;
  if (!root.is_map()) {
    problems.Add({path, root.mark.line}, "",
                 fmt::format("found {}, expected a map of keys", Describe(root)));
    return root;
  }
  for (const std::string& flag : overrides) ApplyOverride(flag, root, problems);
  Expander({}, problems).Expand(root, "");
  ConfigNode* model = root.Find("model");
  if (model != nullptr && model->is_map() && model->Find("use") != nullptr) {
    UseTemplate(*model, problems);
  }
  return root;
}

}  // namespace dt
