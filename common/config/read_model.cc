#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "common/base/text.h"
#include "common/config/load_job.h"
#include "common/config/read_sections.h"
#include "common/config/reader/values.h"
#include "common/specs/loss_type.h"

namespace dt {
namespace {

void ReadAttrs(const MapReader& in, Attrs& attrs) {
  const std::vector<std::string> known = NamesOf(KeysOf("node"));
  for (size_t i = 0; i < in.node()->keys.size(); ++i) {
    const std::string& key = in.node()->keys[i];
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const ConfigNode& value = in.node()->items[i];
    const auto attr = AttrOf(value);
    if (attr.has_value()) attrs[key] = *attr;
    if (attr.has_value()) continue;
    in.Report(key, fmt::format("found {}, expected a number, true or false, a text, or a list of "
                               "one of them",
                               value.is_list() ? "a mixed list" : Describe(value)));
  }
}

// ---------------------------------------------------------------- names

// The names that a node may use: feature columns and the nodes before it.
struct Names {
  std::vector<std::string> features, labels, tables;
  std::set<std::string, std::less<>> nodes;
  std::vector<std::string> matched;  // The features that patterns stand for: those in files.
  std::map<std::string, std::vector<std::string>> reads;  // The inputs of every node in the list.
  // False if earlier problems hide names: then missing names are not reported.
  bool columns_known = false, nodes_known = false, tables_known = false;

  bool Has(const std::string& name) const {
    return Contains(features, name) || nodes.contains(name);
  }
  // Whether `name` is "<node>.<part>" of a known node. Only the planner knows which parts a node
  // has.
  bool HasNodeOf(std::string_view name) const {
    const size_t dot = name.rfind('.');
    return dot != std::string_view::npos && nodes.contains(name.substr(0, dot));
  }
  // The node that `name` refers to: "head.0" is part 0 of node "head". Names of nodes may contain
  // dots, too.
  std::string NodeOf(const std::string& name) const {
    const size_t dot = name.rfind('.');
    if (reads.contains(name) || dot == std::string::npos) return name;
    return name.substr(0, dot);
  }
  // Whether `node` reads `from`, directly or through other nodes.
  bool ReadsFrom(const std::string& node, const std::string& from) const {
    std::vector<std::string> open = {node};
    std::set<std::string> seen;
    while (!open.empty()) {
      const std::string name = std::move(open.back());
      open.pop_back();
      if (name == from) return true;
      const auto found = reads.find(name);
      if (found == reads.end() || !seen.insert(name).second) continue;
      for (const std::string& input : found->second) open.push_back(NodeOf(input));
    }
    return false;
  }
  static bool Contains(const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  std::vector<std::string> Readable() const {
    std::vector<std::string> all = features;
    all.insert(all.end(), nodes.begin(), nodes.end());
    return all;
  }
};

Names NamesOfData(const DataConfig& data) {
  Names names;
  for (const ColumnSpec& column : ConfiguredColumns(data)) {
    (column.role == ColumnRole::kFeature ? names.features : names.labels).push_back(column.name);
    if (column.role == ColumnRole::kFeature && !column.is_derived()) {
      names.matched.push_back(column.name);
    }
  }
  if (InfoOf(data.format).columns == DataColumns::kOneList && data.columns.empty()) {
    names.features = names.matched = {"features"};
    names.labels = {"label"};
  }
  names.columns_known = !names.features.empty() || !names.labels.empty();
  return names;
}

// The message for an input that is the node itself or a node below it.
std::string NotYetThere(const std::string& node, const std::string& input, const Names& names) {
  const std::string source = names.NodeOf(input);
  if (source == node) return fmt::format("\"{}\" is the node itself: a cycle", input);
  if (names.ReadsFrom(source, node)) {
    return fmt::format("\"{}\" is below it and reads \"{}\": a cycle", input, node);
  }
  return fmt::format("\"{}\" is below it, expected a node above; change their order", input);
}

void CheckInput(const MapReader& in, const NodeConfig& node, const std::string& input,
                const Names& names) {
  if (!names.columns_known || names.Has(input) || names.HasNodeOf(input)) return;
  if (input.find_first_of("*?") != std::string::npos) {
    const auto matches = [&](const std::string& name) { return MatchesPattern(name, input); };
    if (std::ranges::any_of(names.matched, matches)) return;
    in.Report("inputs", fmt::format("\"{}\" matches no feature column of the files", input));
    return;
  }
  if (Names::Contains(names.labels, input)) {
    in.Report("inputs", fmt::format("\"{}\" is a label, expected a feature or node", input));
    return;
  }
  if (names.reads.contains(names.NodeOf(input))) {
    in.Report("inputs", NotYetThere(node.name, input, names));
    return;
  }
  in.Report("inputs", fmt::format("\"{}\" is neither a column nor an earlier node{}", input,
                                  DidYouMean(input, names.Readable())));
}

void CheckTable(const MapReader& in, const NodeConfig& node, const Names& names) {
  const auto attr = node.attrs.find("table");
  const bool lookup = node.op == "lookup" || node.op == "bag" || node.op == "sequence";
  if (attr == node.attrs.end()) {
    if (lookup)
      in.problems().Add(in.mark(), in.PathOf("table"), "missing, expected a table's name");
    return;
  }
  const auto* name = std::get_if<std::string>(&attr->second);
  if (name == nullptr) {
    in.Report("table", "expected a table's name");
  } else if (names.tables_known && !Names::Contains(names.tables, *name)) {
    in.Report("table", fmt::format("\"{}\" is no table of model.tables{}", *name,
                                   DidYouMean(*name, names.tables)));
  }
}

// Reads the inputs of all nodes before any node is checked.
void ReadWiring(const std::vector<MapReader::Named>& nodes, Names& names) {
  for (const MapReader::Named& item : nodes) {
    std::string name;
    item.map.Read("name", name);
    names.reads[name] = item.map.Texts("inputs");
  }
}

void ReadNode(const MapReader& in, Names& names, ModelConfig& model) {
  NodeConfig node;
  in.Read("name", node.name);
  in.Read("op", node.op);
  node.inputs = in.Texts("inputs");
  in.Read("device", node.device);
  node.strategy = ReadStrategy(in, "strategy");
  in.Read("fusion", node.fusion);
  node.mark = in.mark();
  ReadAttrs(in, node.attrs);
  for (const std::string& input : node.inputs) CheckInput(in, node, input, names);
  CheckTable(in, node, names);
  if (names.Has(node.name) || Names::Contains(names.labels, node.name)) {
    in.Report("name", fmt::format("\"{}\" is already the name of a {}", node.name,
                                  names.nodes.contains(node.name) ? "node" : "column"));
  }
  if (!node.name.empty()) names.nodes.insert(node.name);
  model.nodes.push_back(std::move(node));
}

void CheckLossNode(const MapReader& in, std::string_view key, const Names& names) {
  if (!in.Has(key) || !names.nodes_known) return;
  const std::string& name = in.Find(key)->text;
  if (names.nodes.contains(name) || names.HasNodeOf(name)) return;
  in.Report(key,
            fmt::format("\"{}\" is no node of the graph{}", name,
                        DidYouMean(name, std::vector(names.nodes.begin(), names.nodes.end()))));
}

// Reads the keys that only some types of losses have.
void ReadTypeKeys(const MapReader& in, const Names& names, LossConfig& loss) {
  struct OfType {
    const char* key;
    bool applies;
    const char* types;
  };
  const bool in_batch = loss.type == "in_batch_softmax";
  const OfType keys[] = {
      {"pos_weight", loss.type == "binary_cross_entropy", "binary_cross_entropy"},
      {"gamma", loss.type == "focal", "focal"},
      {"alpha", loss.type == "focal", "focal"},
      {"negatives", HasNegatives(loss.type), "bpr or sampled_softmax"},
      {"item", in_batch, "in_batch_softmax"},
      {"item_id", in_batch, "in_batch_softmax"},
      {"log_q", in_batch, "in_batch_softmax"},
      {"temperature", in_batch, "in_batch_softmax"},
      {"group", IsBinaryLoss(loss.type), "binary_cross_entropy or focal"}};
  for (const OfType& of : keys) {
    if (!of.applies && in.Has(of.key))
      in.Report(of.key, fmt::format("is for type: {} only", of.types));
  }
  in.Read("pos_weight", loss.pos_weight);
  in.Read("gamma", loss.gamma);
  in.Read("alpha", loss.alpha);
  if (!HasNegatives(loss.type)) return;
  in.Read("negatives", loss.negatives);
  if (!in.Has("negatives")) {
    in.Report("negatives", "missing, expected the node of the negative items' scores");
  }
  CheckLossNode(in, "negatives", names);
}

// Reads the keys of in_batch_softmax: the item of a sample, and the correction of its score.
void ReadItems(const MapReader& in, const Names& names, LossConfig& loss) {
  if (loss.type != "in_batch_softmax") return;
  in.Read("item", loss.item);
  in.Read("item_id", loss.item_id);
  in.Read("log_q", loss.log_q);
  in.Read("temperature", loss.temperature);
  if (!in.Has("item")) in.Report("item", "missing, expected the node of the item vectors");
  CheckLossNode(in, "item", names);
  if (!names.columns_known || !names.nodes_known) return;
  if (in.Has("item_id") && !Names::Contains(names.features, loss.item_id)) {
    in.Report("item_id", fmt::format("\"{}\" is no feature column{}", loss.item_id,
                                     DidYouMean(loss.item_id, names.features)));
  }
  if (in.Has("log_q") && !names.Has(loss.log_q) && !names.HasNodeOf(loss.log_q)) {
    in.Report("log_q", fmt::format("\"{}\" is neither a column nor a node{}", loss.log_q,
                                   DidYouMean(loss.log_q, names.Readable())));
  }
}

// Reads the keys of metrics over groups of samples.
void ReadGroup(const MapReader& in, const Names& names, LossConfig& loss) {
  in.Read("group", loss.group);
  in.Read("top_k", loss.top_k);
  if (!in.Has("group")) {
    if (in.Has("top_k")) in.Report("top_k", "is for a loss with `group` only");
    return;
  }
  if (IsBinaryLoss(loss.type) && names.columns_known &&
      !Names::Contains(names.features, loss.group)) {
    in.Report("group", fmt::format("\"{}\" is no feature column{}", loss.group,
                                   DidYouMean(loss.group, names.features)));
  }
}

void ReadLoss(const MapReader& in, const Names& names, ModelConfig& model) {
  LossConfig loss;
  in.Read("type", loss.type);
  in.Read("input", loss.input);
  const bool has_label = !IsOfPairs(loss.type) || in.Has("label");
  if (has_label) loss.label = "label";
  in.Read("label", loss.label);
  loss.name = has_label ? loss.label : loss.type;
  in.Read("name", loss.name);
  in.Read("weight", loss.weight);
  loss.mark = in.mark();
  CheckLossNode(in, "input", names);
  ReadTypeKeys(in, names, loss);
  ReadItems(in, names, loss);
  ReadGroup(in, names, loss);
  if (has_label && names.columns_known && !Names::Contains(names.labels, loss.label)) {
    in.Report("label", fmt::format("\"{}\" is no column with role label{}", loss.label,
                                   DidYouMean(loss.label, names.labels)));
  }
  for (const LossConfig& other : model.losses) {
    if (other.name != loss.name) continue;
    in.Report("name", fmt::format("\"{}\" is the name of another loss, expected one of its own",
                                  loss.name));
  }
  model.losses.push_back(std::move(loss));
}

// Every node must be read by another node or a loss, and every table by a node. If one is not, it
// was forgotten or its reader's input is misspelt.
void CheckReaders(const MapReader& in, const Names& names, const ModelConfig& model) {
  std::set<std::string> read;
  for (const auto& [name, inputs] : names.reads) {
    for (const std::string& input : inputs) read.insert(names.NodeOf(input));
  }
  for (const LossConfig& loss : model.losses) {
    for (const std::string& input : {loss.input, loss.item, loss.log_q, loss.negatives}) {
      read.insert(names.NodeOf(input));
    }
  }
  for (const NodeConfig& node : model.nodes) {
    if (node.name.empty() || read.contains(node.name)) continue;
    in.problems().Add(node.mark, in.PathOf("graph." + node.name),
                      "no node and no loss reads its output; connect it, or take it out");
  }
  std::set<std::string> looked_up;
  for (const NodeConfig& node : model.nodes) {
    const auto table = node.attrs.find("table");
    if (table != node.attrs.end()) looked_up.insert(std::get<std::string>(table->second));
  }
  for (const TableConfig& table : model.tables) {
    if (looked_up.contains(table.name)) continue;
    in.problems().Add(table.mark, in.PathOf("tables." + table.name),
                      "no node looks it up; name it in a node's `table`, or take it out");
  }
}

}  // namespace

void ReadModel(const MapReader& in, JobConfig& job) {
  if (in.node() == nullptr) return;
  ModelConfig& model = job.model;
  Names names = NamesOfData(job.data);
  const auto hidden = [&in](std::string_view key) {
    return in.node()->Find(key) != nullptr && !in.Has(key);
  };
  names.columns_known = names.columns_known && !in.problems().HasUnder("data.columns");
  names.nodes_known = !hidden("graph");
  names.tables_known = !hidden("tables");
  for (const auto& [name, table] : in.Items("tables")) {
    model.tables.push_back(ReadTable(name, table, job.optimizer.spec, job.parallel.place));
    names.tables.push_back(name);
  }
  const std::vector<MapReader::Named> nodes = in.Items("graph");
  ReadWiring(nodes, names);
  for (const MapReader::Named& item : nodes) ReadNode(item.map, names, model);
  for (const auto& item : in.Items("loss")) ReadLoss(item.map, names, model);
  // Another problem may be the reason why a node has no reader.
  if (!in.problems().HasUnder("model") && !model.losses.empty()) CheckReaders(in, names, model);
  if (in.Has("with") && !in.Has("use")) in.Report("with", "is for a model with `use` only");
  if (in.problems().HasUnder("model.use")) return;
  for (const char* needed : {"graph", "loss"}) {
    const ConfigNode* value = in.node()->Find(needed);
    if (value != nullptr && !value->is_null() && !(value->is_list() && value->items.empty())) {
      continue;
    }
    in.problems().Add(in.mark(), in.PathOf(needed),
                      "missing, expected a list of maps, or a template in model.use");
  }
}

}  // namespace dt
