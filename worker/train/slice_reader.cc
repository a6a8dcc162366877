#include "worker/train/slice_reader.h"

#include <cmath>
#include <set>

#include "common/base/check.h"
#include "common/base/thread_name.h"
#include "common/layout/sample_part.h"
#include "common/runtime/work_span.h"
#include "common/specs/loss_type.h"

namespace dt::worker {
namespace {

constexpr SpanLabel kGather{Track::kReader, "gather samples"};
constexpr SpanLabel kFindKeys{Track::kReader, "find keys"};

constinit WorkKind kGatherWork{"reader: samples"};
constinit WorkKind kKeysWork{"reader: distinct keys"};

// A loss takes the labels 0 to the result - 1; if the result is 0, it takes any number.
int64_t LabelsOf(const Graph& graph, const LossSpec& loss) {
  if (loss.label_column == kNone || loss.type == "mse") return 0;
  return loss.type == "softmax_cross_entropy" ? graph.value(loss.output).shape[1].times : 2;
}

Status WrongLabel(const LossSpec& loss, int64_t labels, std::string_view found) {
  if (loss.type != "softmax_cross_entropy") {
    const bool value = IsBinaryLoss(loss.type);
    return WithHint(
        Malformed("{}; {} takes labels 0 and 1", found, loss.type),
        value ? "map the labels to 0 and 1, or use the loss mse" : "map the labels to 0 and 1");
  }
  return WithHint(Malformed("{}; {} takes the numbers of its {} classes, 0 to {}", found, loss.type,
                            labels, labels - 1),
                  "number the classes from 0, or give the loss's input a column for each");
}

}  // namespace

Status CheckLabels(const Graph& graph, const std::vector<ColumnSpec>& columns,
                   const LookupPlan& plan) {
  for (const LossSpec& loss : graph.losses) {
    const int64_t count = LabelsOf(graph, loss);
    if (count == 0) continue;
    const std::vector<float>& labels = plan.batch.columns[loss.label_column].floats;
    for (size_t i = 0; i < labels.size(); ++i) {
      const float label = labels[i];
      const bool in_range = label >= 0.0f && label < static_cast<float>(count);
      // Not a number: the sample has no label; only `predict` reads such samples.
      if (std::isnan(label) || (in_range && label == std::floor(label))) continue;
      return WrongLabel(loss, count,
                        fmt::format("column {} of sample {} is {}", columns[loss.label_column].name,
                                    plan.rows[i] + 1, label));
    }
  }
  return OkStatus();
}

Status CheckIds(const Graph& graph, const std::vector<ColumnSpec>& columns,
                const LookupPlan& plan) {
  for (const InputSpec& input : graph.inputs) {
    if (input.kind != InputKind::kIds || plan.batch.samples == 0) continue;
    size_t position = 0;
    for (const uint32_t c : input.columns) {
      const std::vector<Key>& ids = plan.batch.WithAll(c).keys;
      const size_t length = ids.size() / plan.batch.samples;
      for (size_t i = 0; i < ids.size(); ++i) {
        const size_t p = input.rows.size() == 1 ? 0 : position + i % length;
        if (ids[i] < static_cast<uint64_t>(input.rows[p])) continue;
        return WithHint(Malformed("column {} of sample {} holds id {}; {} has rows 0 to {}",
                                  columns[c].name, plan.rows[i / length] + 1, ids[i],
                                  graph.value(input.value).name, input.rows[p] - 1),
                        "give the embedding more rows, or use a lookup in a table, whose keys may "
                        "be any number or text");
      }
      position += length;
    }
  }
  return OkStatus();
}

SliceReader::SliceReader(Options options)
    : options_(std::move(options)),
      planner_(options_.plan, options_.shards, options_.wire_tables, options_.fixed) {
  std::set<uint32_t> whole;
  for (const InputSpec& input : options_.plan.graph.inputs) {
    const bool of_all = input.kind == InputKind::kIds || input.kind == InputKind::kKeys;
    if (of_all) whole.insert(input.columns.begin(), input.columns.end());
  }
  whole_columns_.assign(whole.begin(), whole.end());
  if (options_.ahead) thread_ = std::jthread([this] { Run(); });
}

SliceReader::~SliceReader() { ready_.Close(); }

Result<std::unique_ptr<LookupPlan>> SliceReader::Next() {
  if (at_end_) return nullptr;
  for (;;) {
    std::optional<Item> item = options_.ahead ? ready_.Pop(milliseconds(100)) : Read();
    if (item) {
      at_end_ = item->plan == nullptr;
      DT_TRY_STATUS(item->status);
      return std::move(item->plan);
    }
    if (options_.interrupted) DT_TRY_STATUS(options_.interrupted());
  }
}

std::optional<std::unique_ptr<LookupPlan>> SliceReader::TryNext() {
  if (at_end_ || !ready_.FrontIs([](const Item& item) { return item.plan != nullptr; })) {
    return std::nullopt;
  }
  return std::move(ready_.Pop(Duration::zero())->plan);
}

void SliceReader::Recycle(std::unique_ptr<LookupPlan> plan) {
  static_cast<void>(options_.spare.TryPush(plan));  // If it is full, the plan is freed.
}

void SliceReader::Run() {
  NameThread("reader");
  for (;;) {
    Item item = Read();
    const bool last = item.plan == nullptr;
    while (!ready_.Push(item, milliseconds(200))) {
      if (ready_.closed()) return;
    }
    if (last) return;
  }
}

SliceReader::Item SliceReader::Read() {
  std::unique_ptr<LookupPlan> plan = options_.spare.Pop(Duration::zero()).value_or(nullptr);
  if (plan == nullptr) plan = std::make_unique<LookupPlan>();
  plan->rows.clear();
  const Result<bool> named = options_.next(*plan);
  if (!named.ok() || !*named) return {.status = named.status(), .plan = nullptr};
  const Plan& of = options_.plan;
  Batch& batch = plan->batch;
  batch.part.reset();
  batch.whole_columns = whole_columns_;
  if (of.devices > 1) {
    const Range own = SamplesOf({of.devices, 1}, std::ssize(plan->rows), of.devices, of.position);
    batch.part = {static_cast<uint64_t>(own.begin), static_cast<uint64_t>(own.end)};
  }
  Status status;
  {
    const TimelineSpan span(options_.timeline, kGather, batch.step, batch.slice);
    const WorkSpan work(kGatherWork);
    status = options_.data.Gather(plan->rows, plan->batch);
  }
  if (status.ok()) status = CheckLabels(options_.plan.graph, options_.data.columns(), *plan);
  if (status.ok()) status = CheckIds(options_.plan.graph, options_.data.columns(), *plan);
  if (status.ok()) {
    const TimelineSpan span(options_.timeline, kFindKeys, batch.step, batch.slice);
    const WorkSpan work(kKeysWork);
    status = planner_.Fill(options_.purpose, *plan);
  }
  if (!status.ok()) return {.status = std::move(status), .plan = nullptr};
  return {.status = OkStatus(), .plan = std::move(plan)};
}

}  // namespace dt::worker
