// Turns a loss of the job file into operators. Part of the pass `expand`.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/config/model_config.h"
#include "common/specs/column.h"
#include "scheduler/composites/builder.h"
#include "scheduler/passes/plan_request.h"

namespace dt::scheduler {

// A result of a node, by the name that users give it.
struct NamedValue {
  ValueIndex value = kNone;
  const NodeConfig* node = nullptr;
};
using NamedValues = std::map<std::string, NamedValue>;

// kNone if there is no such column.
uint32_t ColumnIndex(std::span<const ColumnSpec> columns, std::string_view name);

// Adds the loss and its inputs to the builder's graph. Errors: Invalid, naming the loss's place in
// the job file.
Status AddLoss(const LossConfig& loss, const PlanRequest& request, const NamedValues& named,
               GraphBuilder& builder);

}  // namespace dt::scheduler
