#include "test/support/tiny_model.h"

#include "common/base/hash.h"
#include "common/specs/loss_type.h"

namespace dt::test {

ColumnSpec TinyColumn(std::string name, ColumnType type, ColumnRole role) {
  ColumnSpec column;
  column.name = std::move(name);
  column.type = type;
  column.role = role;
  if (type == ColumnType::kIds || type == ColumnType::kStrings) column.length = 0;
  return column;
}

DeviceInfo TinyAccelerator(uint64_t memory_bytes) {
  return {.kind = DeviceKind::kEmulated, .name = "emulated", .memory_bytes = memory_bytes};
}

std::vector<ColumnSpec> TinyColumns() {
  return {TinyColumn("label", ColumnType::kFloat, ColumnRole::kLabel),
          TinyColumn("C1", ColumnType::kId),
          TinyColumn("C2", ColumnType::kId),
          TinyColumn("C3", ColumnType::kString),
          TinyColumn("I1", ColumnType::kFloat),
          TinyColumn("I2", ColumnType::kFloat),
          TinyColumn("tags", ColumnType::kIds)};
}

NodeConfig TinyNode(std::string name, std::string op, std::vector<std::string> inputs, Attrs attrs,
                    int line) {
  NodeConfig node;
  node.name = std::move(name);
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  node.mark = {"model.yaml", line};
  return node;
}

JobConfig TinyJob(std::vector<NodeConfig> nodes) {
  JobConfig job;
  job.job = "tiny";
  job.seed = 7;
  job.train.batch_size = 8;
  for (const auto& [name, dim] : {std::pair{"emb", 4u}, std::pair{"wide", 1u}}) {
    TableConfig table;
    table.name = name;
    table.id = TableIdOf(name);
    table.dim = dim;
    job.model.tables.push_back(table);
  }
  LossConfig loss;
  loss.type = "binary_cross_entropy";
  loss.input = nodes.empty() ? "" : nodes.back().name;
  loss.label = loss.name = "label";
  loss.mark = {"model.yaml", 99};
  job.model.losses.push_back(loss);
  job.model.nodes = std::move(nodes);
  return job;
}

std::vector<NodeConfig> TinyDeepFm() {
  using Ints = std::vector<int64_t>;
  const Attrs deep = {
      {"table", "emb"}, {"units", Ints{5, 3}}, {"batch_norm", true}, {"dropout", 0.25}};
  Attrs mlp = deep;
  mlp.erase("table");
  return {
      TinyNode("first", "linear", {"C*", "I*"}, {{"table", "wide"}}, 1),
      TinyNode("e", "lookup", {"C*"}, {{"table", "emb"}}, 2),
      TinyNode("taste", "bag", {"tags"}, {{"table", "emb"}, {"combiner", "mean"}}, 3),
      TinyNode("second", "fm", {"e", "taste"}, {}, 4),
      TinyNode("numbers", "mlp", {"I*"}, {{"units", Ints{4}}}, 5),
      TinyNode("pairs", "dot", {"numbers", "e"}, {}, 6),
      TinyNode("crosses", "cross", {"e", "I1"}, {{"layers", int64_t{2}}}, 7),
      TinyNode("crosses2", "cross_v2", {"pairs", "I2"},
               {{"layers", int64_t{2}}, {"rank", int64_t{2}}}, 8),
      TinyNode("deep", "mlp", {"e", "taste", "I*"}, mlp, 9),
      TinyNode("top", "dense", {"deep", "crosses", "crosses2"}, {{"units", int64_t{1}}}, 10),
      TinyNode("logit", "sum", {"first", "second", "top"}, {}, 11),
  };
}

std::vector<NodeConfig> TinyDlrm() {
  using Ints = std::vector<int64_t>;
  return {
      TinyNode("e", "lookup", {"C*"}, {{"table", "emb"}}, 1),
      TinyNode("bottom", "mlp", {"I*"}, {{"units", Ints{5, 4}}}, 2),
      TinyNode("pairs", "dot", {"bottom", "e"}, {}, 3),
      TinyNode("logit", "mlp", {"bottom", "pairs"}, {{"units", Ints{6, 1}}, {"dropout", 0.25}}, 4),
  };
}

std::vector<NodeConfig> TinyDin() {
  using Ints = std::vector<int64_t>;
  const std::vector<std::string> attended = {"candidate", "past", "past.mask"};
  const Attrs normed = {{"units", Ints{3}}, {"activation", "dice"}, {"softmax", true}};
  const Attrs mlp = {{"units", Ints{5, 4}}, {"activation", "dice"}, {"dropout", 0.25}};
  return {
      TinyNode("candidate", "bag", {"C1"}, {{"table", "emb"}}, 1),
      TinyNode("past", "sequence", {"tags"}, {{"table", "emb"}, {"max_len", int64_t{2}}}, 2),
      TinyNode("interest", "din_attention", attended, {{"units", Ints{3, 2}}}, 3),
      TinyNode("focus", "din_attention", attended, normed, 4),
      TinyNode("deep", "mlp", {"candidate", "interest", "focus", "I*"}, mlp, 5),
      TinyNode("halves", "split", {"deep"}, {{"axis", int64_t{1}}, {"sizes", Ints{1, 3}}}, 6),
      TinyNode("bent", "prelu", {"halves.1"}, {}, 7),
      TinyNode("logit", "dense", {"halves.0", "bent"}, {{"units", int64_t{1}}}, 8),
  };
}

JobConfig TinyLosses() {
  const auto tower = [](const char* name, std::vector<std::string> inputs, int line) {
    const std::vector<int64_t> units = {5, 3};
    return TinyNode(name, "mlp", std::move(inputs), {{"units", units}, {"activation", "tanh"}},
                    line);
  };
  JobConfig job = TinyJob({
      TinyNode("e", "lookup", {"C2", "C1"}, {{"table", "emb"}}, 1),
      TinyNode("likes", "bag", {"tags"}, {{"table", "emb"}}, 2),
      tower("user", {"likes", "I*"}, 3),
      tower("item", {"e"}, 4),
      TinyNode("logit", "dense", {"user", "item"}, {{"units", int64_t{1}}}, 5),
  });
  const auto add = [&](const char* type, const char* input, float weight) -> LossConfig& {
    LossConfig loss = job.model.losses[0];
    loss.type = loss.name = type;
    loss.input = input;
    loss.weight = weight;
    loss.mark.line += static_cast<int>(job.model.losses.size());
    return job.model.losses.emplace_back(std::move(loss));
  };
  add("mse", "logit", 0.5f);
  add("softmax_cross_entropy", "user", 2.0f);
  LossConfig& pairs = add("in_batch_softmax", "user", 1.5f);
  pairs.item = "item";
  pairs.item_id = "C1";
  pairs.temperature = 0.5f;
  LossConfig& all = add("in_batch_softmax", "item", 1.0f);
  all.name = "all";
  all.item = "user";
  all.label.clear();
  all.log_q = "I1";
  return job;
}

JobConfig TinyMoreLosses() {
  JobConfig job = TinyLosses();
  job.model.nodes.push_back(TinyNode("others", "dense", {"item"}, {{"units", int64_t{4}}}, 6));
  job.model.losses[0].pos_weight = 3;
  for (const auto& [type, label] :
       {std::pair{"bpr", ""}, std::pair{"sampled_softmax", "label"}, std::pair{"focal", "label"}}) {
    LossConfig loss = job.model.losses[0];
    loss.type = loss.name = type;
    loss.label = label;
    loss.pos_weight = 1;
    if (HasNegatives(loss.type)) loss.negatives = "others";
    loss.mark.line += static_cast<int>(job.model.losses.size());
    job.model.losses.push_back(std::move(loss));
  }
  return job;
}

}  // namespace dt::test
