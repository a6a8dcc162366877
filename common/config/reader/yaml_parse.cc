#include "common/config/reader/yaml_parse.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

namespace dt {
namespace {

// Limits of one document; each use of an alias counts like a copy of the node that it names.
constexpr size_t kNodesMax = 100'000;
constexpr size_t kTextBytesMax = 64u << 20;
constexpr uintmax_t kFileBytesMax = 4u << 20;

// Thrown through the library's parser; ParseYaml catches it.
struct TooLarge {
  std::string what;
};

struct Size {
  size_t nodes = 0, text_bytes = 0;
};

void Add(const ConfigNode& node, Size& size) {
  ++size.nodes;
  size.text_bytes += node.text.size();
  for (const std::string& key : node.keys) size.text_bytes += key.size();
  for (const ConfigNode& item : node.items) Add(item, size);
}

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& file, int first_line, Problems& problems)
      : file_(file), first_line_(first_line), problems_(problems) {}

  ConfigNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    ConfigNode node = Make(ConfigNode::Kind::kNull, mark);
    Complete(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark&, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) return Complete(ConfigNode(), 0);
    Charge(it->second);
    Complete(it->second, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    ConfigNode node = Make(ConfigNode::Kind::kScalar, mark);
    node.text = value;
    node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    Complete(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open_.push_back({Make(ConfigNode::Kind::kList, mark), anchor, {}});
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open_.push_back({Make(ConfigNode::Kind::kMap, mark), anchor, {}});
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Open {
    ConfigNode node;
    YAML::anchor_t anchor;
    std::vector<ConfigNode> pending_key;  // 0 or 1 items: a map's key that waits for its value.
  };

  ConfigNode Make(ConfigNode::Kind kind, const YAML::Mark& mark) {
    ConfigNode node;
    node.kind = kind;
    node.mark = {file_, first_line_ == 0 ? 0 : mark.line + first_line_};
    Charge(node);
    return node;
  }

  // Adds the node to the document's size. Called before the node is copied.
  void Charge(const ConfigNode& node) {
    Add(node, size_);
    if (size_.nodes > kNodesMax) throw TooLarge{fmt::format("{} values", kNodesMax)};
    if (size_.text_bytes > kTextBytesMax) {
      throw TooLarge{
          fmt::format("{} MiB of text with its aliases written out", kTextBytesMax >> 20)};
    }
  }

  void Close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    Complete(std::move(done.node), done.anchor);
  }

  void Complete(ConfigNode node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      Charge(node);
      anchors_[anchor] = node;
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.is_list()) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.pending_key.empty()) {
      parent.pending_key.push_back(std::move(node));
    } else {
      AddPair(parent, std::move(node));
    }
  }

  void AddPair(Open& parent, ConfigNode value) {
    const ConfigNode key = std::move(parent.pending_key.back());
    parent.pending_key.clear();
    if (!key.is_scalar()) {
      problems_.Add(key.mark, Path(),
                    fmt::format("found {} as a key, expected a word", Describe(key)));
      return;
    }
    if (const ConfigNode* first = parent.node.Find(key.text); first != nullptr) {
      const auto index = static_cast<size_t>(first - parent.node.items.data());
      problems_.Add(key.mark, JoinPath(Path(), key.text),
                    fmt::format("duplicate key, already written in line {}",
                                parent.node.key_marks[index].line));
      return;
    }
    parent.node.Append(key.text, key.mark, std::move(value));
  }

  std::string Path() const {
    std::string path;
    for (const Open& open : open_) {
      if (open.node.is_list()) {
        path = JoinPath(path, std::to_string(open.node.items.size()));
      } else if (!open.pending_key.empty()) {
        path = JoinPath(path, open.pending_key.back().text);
      }
    }
    return path;
  }

  const std::string file_;
  const int first_line_;
  Problems& problems_;
  ConfigNode root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, ConfigNode> anchors_;
  Size size_;
};

}  // namespace

namespace {

// The usual reason for a message of the library, in plain words; empty for other messages.
std::string_view UsualReason(const std::string& message) {
  if (message == YAML::ErrorMsg::END_OF_MAP) return "a line has more or less indent than its peers";
  if (message == YAML::ErrorMsg::MAP_VALUE) return "a colon is missing or too many (key: value)";
  if (message == YAML::ErrorMsg::END_OF_SEQ_FLOW) return "a comma or a closing ] is missing";
  if (message == YAML::ErrorMsg::END_OF_MAP_FLOW) return "a comma or a closing } is missing";
  return "";
}

// The text of a syntax error: the usual reason, or else the library's message.
std::string SyntaxText(const std::string& text, const YAML::Exception& error, bool in_file) {
  std::istringstream lines(text);
  std::string line;
  for (int i = 0; !error.mark.is_null() && i <= error.mark.line; ++i) std::getline(lines, line);
  const size_t content = line.find_first_not_of(" \t");
  if (line.substr(0, content).find('\t') != std::string::npos) {
    return "the line is indented with a tab, expected blanks";
  }
  if (line.find_first_of("[{") < line.find("${") && line.find("${") != std::string::npos) {
    return "is not valid YAML: inside [...] and {...}, a text with ${...} needs quotes";
  }
  const std::string_view reason = UsualReason(error.msg);
  if (reason.empty()) return "is not valid YAML: " + error.msg;
  return fmt::format("is not valid YAML{}: {}", in_file ? ", here or just above" : "", reason);
}

}  // namespace

ConfigNode ParseYaml(const std::string& text, const std::string& file, int first_line,
                     Problems& problems) {
  TreeBuilder builder(file, first_line, problems);
  const SourceMark start{file, first_line};
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return builder.TakeRoot();
    ConfigNode root = builder.TakeRoot();
    Problems unused;
    TreeBuilder second(file, first_line, unused);
    if (parser.HandleNextDocument(second)) {
      problems.Add(start, "", "found several YAML documents (---), expected one");
    }
    return root;
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 0 : error.mark.line;
    problems.Add({file, first_line == 0 ? 0 : line + first_line}, "",
                 SyntaxText(text, error, first_line != 0));
  } catch (const TooLarge& too_large) {
    problems.Add(start, "", "holds more than " + too_large.what);
  }
  return {};
}

ConfigNode ParseYamlFile(const std::string& file, const SourceMark& asked_at, std::string_view path,
                         Problems& problems) {
  std::error_code error;
  // The mark names the file already.
  const std::string own = asked_at.file == file ? "" : file + ": ";
  if (!std::filesystem::is_regular_file(file, error)) {
    const bool exists = std::filesystem::exists(file, error);
    const std::string what = exists ? "is not a file, expected a YAML file" : "no such file";
    problems.Add(asked_at, path, own + what);
    return {};
  }
  if (std::filesystem::file_size(file, error) > kFileBytesMax) {
    problems.Add(asked_at, path, own + "is larger than 4 MiB, expected a YAML file");
    return {};
  }
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream.is_open() || text.find_first_not_of(" \t\r\n") == std::string::npos) {
    const std::string what = stream.is_open() ? "is empty" : "cannot be read";
    problems.Add(asked_at, path, own + what + ", expected a YAML file");
    return {};
  }
  return ParseYaml(text, file, 1, problems);
}

}  // namespace dt
