// Adds operators, parameters and inputs to a graph while expand walks the user's nodes. Each
// operator's shape is inferred at once, so a mistake is reported at the node that makes it.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/config/job_config.h"
#include "common/graph/graph.h"
#include "common/specs/column.h"

namespace dt::scheduler {

// What a name in `inputs` stands for: a column of the data, or a value of the graph.
struct Operand {
  std::string name;
  ValueIndex value = kNone;
  uint32_t column = kNone;  // Of the data set; the value is then kNone.
};

// Weights, their first values, and the fans that Xavier's need.
struct NewParameter {
  std::string part;  // Name: "<node>.<part>".
  std::vector<int64_t> shape;
  InitSpec init;
  int64_t fan_in = 0, fan_out = 0;
  bool trained = true;
};

// The inputs of one use of a table, as the operators over it take them; kNone where it has none.
struct LookupValues {
  ValueIndex rows = kNone, index = kNone, row_ends = kNone, row_order = kNone;
  ValueIndex ends = kNone, weights = kNone;
};

class GraphBuilder {
 public:
  // All outlive the builder. `columns`: of the data set, in its order. `on_worker`: tables that are
  // there though the job does not say so.
  GraphBuilder(const JobConfig& job, std::span<const ColumnSpec> columns,
               const std::set<std::string, std::less<>>& on_worker)
      : job_(job), columns_(columns), on_worker_(on_worker) {}

  // What is added from now on comes from this node: its names begin with the node's.
  void Enter(const NodeConfig& node) {
    user_ = &node;
    parts_.clear();
  }
  const NodeConfig& user() const { return *user_; }
  const JobConfig& job() const { return job_; }
  const ColumnSpec& column(uint32_t i) const { return columns_[i]; }
  std::span<const ColumnSpec> columns() const { return columns_; }
  Graph& graph() { return graph_; }
  const SymShape& shape(ValueIndex v) const { return graph_.value(v).shape; }

  // The operator "<node>.<part>" ("<node>" if part is empty); its first output.
  Result<ValueIndex> Add(std::string_view op, std::string_view part, std::vector<ValueIndex> inputs,
                         Attrs attrs = {});
  Result<ValueIndex> Parameter(const NewParameter& parameter);
  // Float columns side by side: [B, columns].
  ValueIndex Floats(const std::vector<uint32_t>& columns);
  // A label or sample weight: [B, 1].
  ValueIndex Target(InputKind kind, uint32_t column);
  // Key columns of the table that the node names in `table`. Looking up the same columns again
  // gives the same values.
  Result<LookupValues> Lookup(const std::vector<uint32_t>& columns, std::string_view part);
  const LookupSpec& lookup_of(ValueIndex index) const;

  // A further result of the current node, which later nodes read as "<node>.<part>".
  void NamePart(std::string part, ValueIndex value) { parts_[std::move(part)] = value; }
  const std::map<std::string, ValueIndex>& parts() const { return parts_; }

  // Operands as values. Float columns become inputs: those next to each other one input if
  // `grouped`.
  Result<std::vector<ValueIndex>> Values(std::span<const Operand> operands, bool grouped);
  // [B, …] → [B, n]; several are laid side by side.
  Result<ValueIndex> Flat(std::vector<ValueIndex> values, std::string_view part);
  // [B, D] and [B, F, D] → [B, fields, D].
  Result<ValueIndex> Fields(std::vector<ValueIndex> values);

  // Invalid with the current node's name and place.
  template <class... Args>
  Status Error(fmt::format_string<Args...> format, Args&&... args) const {
    return ErrorText(fmt::format(format, std::forward<Args>(args)...));
  }
  Status ErrorText(std::string_view text) const;

 private:
  std::string Name(std::string_view part) const;
  ValueIndex Input(InputSpec spec, Value value);
  Result<uint32_t> Table();
  ValueIndex Rows(uint32_t table);
  Result<ValueIndex> RowsOnWorker(uint32_t table, const TableConfig& config);
  Result<LookupSpec> DescribeLookup(const std::vector<uint32_t>& columns, std::string_view part);
  LookupValues BindLookup(uint32_t lookup);

  const JobConfig& job_;
  const std::span<const ColumnSpec> columns_;
  const std::set<std::string, std::less<>>& on_worker_;
  const NodeConfig* user_ = nullptr;
  std::map<std::string, ValueIndex> parts_;  // Of the current node.
  Graph graph_;
  std::map<std::string, std::string> parameter_owner_;  // Parameter name → node.
};

}  // namespace dt::scheduler
