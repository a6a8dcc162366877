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

// The meaning of a name in `inputs`: a column of the data, or a value of the graph.
struct Operand {
  std::string name;
  ValueIndex value = kNone;
  uint32_t column = kNone;  // Index in the data set; `value` is then kNone.
};

// A parameter to add: its first values, and the fans that Xavier initialisation needs.
struct NewParameter {
  std::string part;  // The parameter is named "<node>.<part>".
  std::vector<int64_t> shape;
  InitSpec init;
  int64_t fan_in = 0, fan_out = 0;
  bool trained = true;
};

// The inputs that operators on one use of a table take; kNone where an input is absent.
struct LookupValues {
  ValueIndex rows = kNone, index = kNone, row_ends = kNone, row_order = kNone;
  ValueIndex ends = kNone, weights = kNone;
};

class GraphBuilder {
 public:
  // `columns`: the columns of the data set, in its order. `on_worker`: tables of `device: auto`
  // that are on workers. REQUIRES: all arguments outlive the builder.
  GraphBuilder(const JobConfig& job, std::span<const ColumnSpec> columns,
               const std::set<std::string, std::less<>>& on_worker)
      : job_(job), columns_(columns), on_worker_(on_worker) {}

  // Additions from now on belong to this node, and their names begin with its name.
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

  // Adds the operator "<node>.<part>" ("<node>" if part is empty) and returns its first output.
  Result<ValueIndex> Add(std::string_view op, std::string_view part, std::vector<ValueIndex> inputs,
                         Attrs attrs = {});
  Result<ValueIndex> Parameter(const NewParameter& parameter);
  // Float columns side by side: [B, columns].
  ValueIndex Floats(const std::vector<uint32_t>& columns);
  // Ids of key columns of fixed length, side by side, or their values: [B, L]. `rows`: see
  // InputSpec.
  ValueIndex Ids(InputKind kind, const std::vector<uint32_t>& columns,
                 const std::vector<int64_t>& rows);
  // The keys of a column of one key: [B, 2], as InputKind::kKeys.
  ValueIndex Keys(uint32_t column);
  // A label or sample weight: [B, 1].
  ValueIndex Target(InputKind kind, uint32_t column);
  // Looks up key columns in the table that the node names in `table`. The same columns looked up
  // again give the same values.
  Result<LookupValues> Lookup(const std::vector<uint32_t>& columns, std::string_view part);
  const LookupSpec& lookup_of(ValueIndex index) const;

  // Names a further result of the current node; later nodes read it as "<node>.<part>".
  void NamePart(std::string part, ValueIndex value) { parts_[std::move(part)] = value; }
  const std::map<std::string, ValueIndex>& parts() const { return parts_; }

  // Operands as values. Float columns become inputs; with `grouped`, adjacent ones become one
  // input.
  Result<std::vector<ValueIndex>> Values(std::span<const Operand> operands, bool grouped);
  // [B, …] → [B, n]; several values are concatenated.
  Result<ValueIndex> Flat(std::vector<ValueIndex> values, std::string_view part);
  // [B, D] and [B, F, D] → [B, fields, D].
  Result<ValueIndex> Fields(std::vector<ValueIndex> values);

  // Error Invalid, with the current node's name, file and line.
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
  std::map<std::string, ValueIndex> parts_;  // Named results of the current node.
  Graph graph_;
  // Maps parameter names to the nodes that made them.
  std::map<std::string, std::string> parameter_owner_;
};

}  // namespace dt::scheduler
