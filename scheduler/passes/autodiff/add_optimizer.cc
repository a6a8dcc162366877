#include <algorithm>
#include <map>

#include "ops/op_spec.h"
#include "ops/update/attrs.h"
#include "ops/update/update.h"
#include "scheduler/composites/infer_node.h"
#include "scheduler/passes/autodiff/autodiff.h"
#include "scheduler/passes/autodiff/fuse_sums.h"

namespace dt::scheduler {
namespace {

// Numbers of communication nodes that run once in a step, after those of slices.
constexpr int64_t kFirstShared = 32768;
constexpr int64_t kFirstNorms = 49152;
// The group of the only position in a team of one.
constexpr GroupIndex kAlone = 0;

class StepNodes {
 public:
  StepNodes(Graph graph, const PlanRequest& request)
      : graph_(std::move(graph)),
        job_(request.job),
        config_(request.job.optimizer),
        slices_(request.slices),
        servers_update_(request.job.train.asynchronous()),
        joined_(request.slices > 1 || (request.workers > 1 && !servers_update_)),
        workers_(request.workers),
        held_(request.held) {
    if (held_.empty()) graph_.groups = {GroupSpec{{0}}};
  }

  Result<Graph> Run() {
    const OptimizerInfo& optimizer = InfoOf(config_.spec.kind);
    if (IsForTablesOnly(optimizer)) {
      return Invalid("optimizer.name: {} is for tables; dense parameters take {}", optimizer.name,
                     InfoOf(ForDense(optimizer)).name);
    }
    std::vector<ParameterSpec> trained;
    for (const ParameterSpec& p : graph_.parameters) {
      if (p.trained && p.grad != kNone) trained.push_back(p);
    }
    DT_TRY(std::vector<ValueIndex> grads, Sums(trained));
    DT_TRY_STATUS(Gathers());
    DT_TRY_STATUS(Regularise(trained, grads));
    DT_TRY_STATUS(Clip(trained, grads));
    for (size_t i = 0; i < trained.size(); ++i) {
      if (servers_update_) {
        Push(trained[i].value, grads[i]);
      } else {
        DT_TRY_STATUS(Update(trained[i], grads[i]));
      }
    }
    for (uint32_t t = 0; t < graph_.tables.size(); ++t) DT_TRY_STATUS(UpdateRows(t));
    for (const Running& r : running_) {
      DT_TRY_STATUS(Append(r.op, r.name, r.inputs, r.attrs, 0).status());
    }
    return std::move(graph_);
  }

 private:
  struct Running {
    std::string_view op;
    std::string name;
    std::vector<ValueIndex> inputs;
    Attrs attrs;
  };

  std::string NameOf(const ParameterSpec& p) const { return graph_.value(p.value).name; }

  Result<std::vector<ValueIndex>> Append(std::string_view op, std::string name,
                                         std::vector<ValueIndex> inputs, Attrs attrs,
                                         size_t outputs) {
    Node node;
    node.name = std::move(name);
    node.op = op;
    node.inputs = std::move(inputs);
    node.attrs = std::move(attrs);
    const bool joins = op == "sum_slices" || op == "gather_slices" || op == "sum_rows";
    node.phase = joins ? Phase::kJoin : Phase::kStep;
    const NodeIndex index = graph_.AddNode(std::move(node), outputs);
    DT_TRY_STATUS(InferNode(graph_, index));
    return graph_.nodes[index].outputs;
  }
  Result<ValueIndex> Step(std::string_view op, std::string name, std::vector<ValueIndex> inputs,
                          Attrs attrs = {}) {
    DT_TRY(const std::vector<ValueIndex> outputs,
           Append(op, std::move(name), std::move(inputs), std::move(attrs), 1));
    return outputs[0];
  }
  // By parameter: the gradient's sum over all slices, or itself if there is nothing to add.
  Result<std::vector<ValueIndex>> Sums(const std::vector<ParameterSpec>& trained) {
    std::vector<ValueIndex> grads;
    for (const ParameterSpec& p : trained) grads.push_back(p.grad);
    if (!joined_) return grads;
    std::vector<SumToFuse> sums;
    for (const ParameterSpec& p : trained) {
      SumToFuse& sum = sums.emplace_back();
      sum.producer = graph_.value(p.grad).producer;
      sum.bytes = WholeBytes(p);
      sum.held = HeldAttrs(p.grad);
      sum.fusion = FusionOf(NameOf(p));
      if (IsShared(p)) sum.held["rows"] = std::string("own");
    }
    const std::vector<uint32_t> numbers = FuseSums(sums, job_.parallel.fusion);
    for (size_t i = 0; i < trained.size(); ++i) {
      Attrs attrs = sums[i].held;
      bucket_of_[attrs] = std::max(bucket_of_[attrs], int64_t{numbers[i]});
      buckets_ = std::max(buckets_, int64_t{numbers[i]} + 1);
      if (IsShared(trained[i])) attrs["rows"] = AddPart(trained[i]);
      attrs["number"] = int64_t{numbers[i]};
      if (job_.parallel.wire == "bf16") attrs["wire"] = job_.parallel.wire;
      DT_TRY(grads[i],
             Step("sum_slices", "sum." + NameOf(trained[i]), {grads[i]}, std::move(attrs)));
    }
    return grads;
  }
  // The `fusion` number of the node that has the weight; 0 if it has none.
  uint32_t FusionOf(const std::string& weight) const {
    for (const NodeConfig& node : job_.model.nodes) {
      if (node.fusion != 0 && weight.starts_with(node.name + ".")) return node.fusion;
    }
    return 0;
  }
  double WholeBytes(const ParameterSpec& p) const {
    double bytes = sizeof(float);
    for (const Dim& dim : graph_.value(p.value).shape) {
      if (p.whole.empty()) bytes *= static_cast<double>(dim.times);
    }
    for (const int64_t size : p.whole) bytes *= static_cast<double>(size);
    return bytes;
  }

  // Travels in the last bucket of those who get it.
  Result<ValueIndex> Gather(ValueIndex value) {
    Attrs attrs = HeldAttrs(value);
    const auto [bucket, is_new] = bucket_of_.try_emplace(attrs, buckets_);
    if (is_new) ++buckets_;
    attrs["number"] = bucket->second;
    attrs["slices"] = int64_t{slices_};
    return Step("gather_slices", "gather." + graph_.value(value).name, {value}, std::move(attrs));
  }
  // Who in the team holds the value of a slice.
  HeldGroups HeldBy(ValueIndex value) const {
    return held_.empty() ? HeldGroups{kAlone, kAlone, kAlone} : held_[value];
  }
  Attrs HeldAttrs(ValueIndex value) const {
    const HeldGroups held = HeldBy(value);
    return {{"group", int64_t{held.group}}, {"terms", int64_t{held.terms}}};
  }

  // Gives every rank the losses of all slices, and the statistics that update running values.
  Status Gathers() {
    for (const LossSpec& loss : graph_.losses) DT_TRY_STATUS(Gather(loss.loss).status());
    const size_t count = graph_.nodes.size();
    for (size_t n = 0; n < count; ++n) {
      const Node node = graph_.nodes[n];
      const RunningValues& running = FindOp(node.op)->running;
      if (running.op.empty()) continue;
      std::vector<ValueIndex> inputs;
      for (const size_t i : running.values) inputs.push_back(node.inputs[i]);
      for (const size_t i : running.statistics) {
        DT_TRY(inputs.emplace_back(), Gather(node.outputs[i]));
      }
      running_.push_back({running.op, "running." + node.name, std::move(inputs), node.attrs});
    }
    return OkStatus();
  }

  Status Regularise(const std::vector<ParameterSpec>& trained, std::vector<ValueIndex>& grads) {
    if (config_.spec.l2 == 0) return OkStatus();
    for (size_t i = 0; i < trained.size(); ++i) {
      DT_TRY(grads[i], Step("add_l2", "l2." + NameOf(trained[i]), {grads[i], Updated(trained[i])},
                            {{"l2", double{config_.spec.l2}}}));
    }
    return OkStatus();
  }

  // The norm is that of all gradients, whoever has which part or rows of them. It is the norm of
  // the norms of rows, so that it does not depend on who updates which rows.
  Status Clip(const std::vector<ParameterSpec>& trained, std::vector<ValueIndex>& grads) {
    if (config_.clip_norm == 0 || grads.empty()) return OkStatus();
    std::vector<ValueIndex> inputs = grads, norms;
    for (size_t i = 0; i < trained.size(); ++i) {
      DT_TRY(norms.emplace_back(), Step("row_norms", "norms." + NameOf(trained[i]), {grads[i]}));
    }
    DT_TRY_STATUS(ShareNorms(trained, norms));
    DT_TRY_STATUS(GatherNorms(trained, norms));
    inputs.insert(inputs.end(), norms.begin(), norms.end());
    const Attrs attrs = {{"clip_norm", double{config_.clip_norm}}, {"grads", std::ssize(grads)}};
    DT_TRY(grads, Append("clip_by_global_norm", "clip", std::move(inputs), attrs, grads.size()));
    return OkStatus();
  }

  // Makes norms of own rows those of all rows: one communication for each group.
  Status ShareNorms(const std::vector<ParameterSpec>& trained, std::vector<ValueIndex>& norms) {
    std::map<GroupIndex, std::vector<size_t>> of_group;
    for (size_t i = 0; i < trained.size(); ++i) {
      if (const PartSpec* const part = PartOf(trained[i])) of_group[part->group].push_back(i);
    }
    for (const auto& [group, members] : of_group) {
      std::vector<ValueIndex> inputs;
      std::vector<int64_t> sizes;
      for (const size_t i : members) {
        inputs.push_back(norms[i]);
        sizes.push_back(graph_.value(trained[i].value).shape[0].times);
      }
      DT_TRY(const std::vector<ValueIndex> all,
             Append("share_norms", fmt::format("share.norms{}", group), std::move(inputs),
                    {{"group", int64_t{group}}, {"number", next_norms_++}, {"sizes", sizes}},
                    members.size()));
      for (size_t k = 0; k < members.size(); ++k) norms[members[k]] = all[k];
    }
    return OkStatus();
  }

  // Replaces the norms of parameters that are cut over a team by those of all parts.
  Status GatherNorms(const std::vector<ParameterSpec>& trained, std::vector<ValueIndex>& norms) {
    std::map<GroupIndex, std::vector<ValueIndex>> of_group;
    std::vector<ValueIndex> whole;
    for (size_t i = 0; i < trained.size(); ++i) {
      const bool cut = !trained[i].whole.empty();
      (cut ? of_group[held_[trained[i].grad].parts] : whole).push_back(norms[i]);
    }
    for (const auto& [group, parts] : of_group) {
      DT_TRY(const ValueIndex joint,
             Step("joint_norms", fmt::format("norms.parts{}", group), parts));
      const int64_t members = std::ssize(graph_.groups[group].members);
      DT_TRY(whole.emplace_back(), Step("all_gather", fmt::format("gather.parts{}", group), {joint},
                                        {{"group", int64_t{group}},
                                         {"axes", std::vector<int64_t>{members}},
                                         {"dim", int64_t{0}},
                                         {"number", next_norms_++}}));
      graph_.values[whole.back()].shape = {Const(members * std::ssize(parts))};
    }
    norms = std::move(whole);
    return OkStatus();
  }

  // The parameter is on a server, which updates it.
  void Push(ValueIndex parameter, ValueIndex grad) {
    for (ParameterSpec& spec : graph_.parameters) {
      if (spec.value == parameter) spec.pushed = grad;
    }
  }

  // Whether several workers have the parameter, and each updates some of its rows. All
  // workers of a team agree, whatever part of it they have.
  bool IsShared(const ParameterSpec& p) const {
    const ShardConfig& shard = job_.parallel.optimizer;
    const SymShape& shape = graph_.value(p.value).shape;
    if (!shard.on || workers_ == 1 || shape.empty()) return false;
    const int64_t rows = p.whole.empty() ? shape[0].times : p.whole[0];
    return rows >= 2 && WholeBytes(p) >= static_cast<double>(shard.threshold_bytes);
  }
  // Returns the symbol of its rows.
  std::string AddPart(const ParameterSpec& p) {
    const std::string symbol = "O." + NameOf(p);
    Value value;
    value.name = NameOf(p) + ".part";
    value.shape = graph_.value(p.value).shape;
    value.shape[0] = Dim{graph_.SymbolNamed(symbol), 1};
    value.kind = ValueKind::kPart;
    const ValueIndex index = graph_.AddValue(std::move(value));
    graph_.parts.push_back({.value = index, .of = p.value, .group = HeldBy(p.grad).group});
    return symbol;
  }
  const PartSpec* PartOf(const ParameterSpec& p) const {
    const auto part = std::ranges::find(graph_.parts, p.value, &PartSpec::of);
    return part == graph_.parts.end() ? nullptr : &*part;
  }
  // The value that the update changes: the parameter, or this worker's rows of it.
  ValueIndex Updated(const ParameterSpec& p) const {
    const PartSpec* const part = PartOf(p);
    return part == nullptr ? p.value : part->value;
  }

  // Every worker gets the rows that others have updated.
  Status Share(const ParameterSpec& p) {
    const PartSpec* const part = PartOf(p);
    if (part == nullptr) return OkStatus();
    // Positions have different parts, but the same parameters.
    const auto spec = std::ranges::find(graph_.parameters, p.value, &ParameterSpec::value);
    const int64_t number = kFirstShared + (spec - graph_.parameters.begin());
    return Append("share_rows", "share." + NameOf(p), {p.value, part->value},
                  {{"group", int64_t{part->group}}, {"number", number}}, 0)
        .status();
  }

  Status Update(const ParameterSpec& parameter, ValueIndex grad) {
    std::vector<ValueIndex> inputs = {Updated(parameter), grad};
    for (uint32_t i = 0; i < DenseStates(config_.spec); ++i) {
      Value state;
      state.name = fmt::format("{}.state{}", NameOf(parameter), i);
      state.shape = graph_.value(inputs[0]).shape;
      state.kind = ValueKind::kState;
      ParameterSpec spec;
      spec.init = {InitKind::kConstant, InitialState(config_.spec)};
      spec.whole = parameter.whole;
      spec.first = parameter.first;
      spec.copy = parameter.copy;
      spec.trained = false;
      spec.state_of = parameter.value;
      spec.value = graph_.AddValue(std::move(state));
      graph_.parameters.push_back(spec);
      inputs.push_back(spec.value);
    }
    DT_TRY_STATUS(Append("update", "update." + NameOf(parameter), std::move(inputs),
                         OptimizerAttrs(config_.spec), 0)
                      .status());
    return Share(parameter);
  }

  // Updates a table on the worker with the gradients that would otherwise be pushed.
  Status UpdateRows(uint32_t table) {
    const TableUse use = graph_.tables[table];
    if (use.store == kNone || use.row_grad == kNone) return OkStatus();
    graph_.tables[table].row_grad = kNone;
    DT_TRY(std::vector<ValueIndex> inputs,
           joined_ ? JoinedRows(use) : OwnRows(table, use.row_grad));
    inputs.insert(inputs.begin(), use.store);
    const auto config = std::ranges::find(job_.model.tables, use.name, &TableConfig::name);
    return Append("update_rows", fmt::format("update.{}", use.name), std::move(inputs),
                  RowOptimizerAttrs(config->optimizer, config->scheduled), 0)
        .status();
  }

  // Row numbers, gradients and steps_since_update for the rows of all slices; equal on all workers.
  Result<std::vector<ValueIndex>> JoinedRows(const TableUse& use) {
    graph_.SymbolNamed("S." + use.name);
    const NodeIndex take = graph_.value(use.rows).producer;
    DT_TRY(std::vector<ValueIndex> sums,
           Append("sum_rows", fmt::format("sum.rows({})", use.name),
                  {use.row_grad, graph_.nodes[take].inputs[1]},
                  {{"number", buckets_}, {"slices", int64_t{slices_}}}, 3));
    return std::vector<ValueIndex>{sums[1], sums[0], sums[2]};
  }

  // Row numbers, gradients and steps_since_update for the rows of the only slice.
  Result<std::vector<ValueIndex>> OwnRows(uint32_t table, ValueIndex grad) {
    const TableUse& use = graph_.tables[table];
    Value steps_since_update;
    steps_since_update.name = fmt::format("steps_since_update({})", use.name);
    steps_since_update.dtype = DType::kU32;
    steps_since_update.shape = {graph_.value(use.rows).shape[0]};
    steps_since_update.kind = ValueKind::kInput;
    InputSpec spec;
    spec.kind = InputKind::kStepsSinceUpdate;
    spec.table = table;
    spec.value = graph_.AddValue(std::move(steps_since_update));
    graph_.inputs.push_back(spec);
    const NodeIndex take = graph_.value(use.rows).producer;
    return std::vector<ValueIndex>{graph_.nodes[take].inputs[1], grad, spec.value};
  }

  Graph graph_;
  const JobConfig& job_;
  const DenseOptimizerConfig& config_;
  const uint32_t slices_;
  const bool servers_update_;
  const bool joined_;  // False if a worker's gradients need no sum with others.
  const uint32_t workers_;
  const std::vector<HeldGroups>& held_;
  int64_t next_norms_ = kFirstNorms;  // The number of the next communication of norms.
  std::vector<Running> running_;
  int64_t buckets_ = 0;                 // Number of buckets; rows of tables are joined in one more.
  std::map<Attrs, int64_t> bucket_of_;  // By holders: their last bucket.
};

}  // namespace

Result<Graph> AddOptimizer(Graph graph, const PlanRequest& request) {
  return StepNodes(std::move(graph), request).Run();
}

}  // namespace dt::scheduler
