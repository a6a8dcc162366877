#include "test/support/tiny_model.h"

#include "common/base/hash.h"

namespace dt::test {

ColumnSpec TinyColumn(std::string name, ColumnType type, ColumnRole role) {
  ColumnSpec column;
  column.name = std::move(name);
  column.type = type;
  column.role = role;
  if (type == ColumnType::kIds || type == ColumnType::kStrings) column.length = 0;
  return column;
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

}  // namespace dt::test
