#include "scheduler/service/plan_of.h"

#include <algorithm>

#include "common/base/log.h"
#include "common/runtime/task_pool.h"
#include "scheduler/checkpoint/model_json.h"
#include "scheduler/passes/placement/devices.h"
#include "scheduler/plan/plan.h"
#include "scheduler/report/explain.h"

namespace dt::scheduler {
namespace {

void NoteTables(const PlacementReport& report, MadePlan& made) {
  for (const TableUse& table : made.plan.graph.tables) {
    const auto why = report.table_why.find(table.name);
    if (table.store == kNone || why == report.table_why.end()) continue;
    const std::string text = fmt::format("{}: {}", table.name, why->second);
    LogInfo("plan.table_on_worker", {{"table", text}});
    made.notes.emplace_back("table_on_worker", text);
  }
}

// Adds notes if tags of `gpu` fall back to the CPU or mean an emulated accelerator.
void NoteDevices(const JobConfig& job, bool emulated, const PlacementReport& report,
                 MadePlan& made) {
  if (!report.fallback.empty()) {
    LogWarn("plan.fallback_to_cpu", {{"why", report.fallback}});
    made.notes.emplace_back("fallback_to_cpu", report.fallback);
  }
  NoteTables(report, made);
  const bool used = std::ranges::any_of(
      made.plan.graph.nodes, [](const Node& node) { return node.device == Device::kGpu; });
  if (!used || !emulated) return;
  constexpr char kWhat[] = "what is on gpu runs on an emulated accelerator";
  const bool asked = job.cluster.devices == AcceleratorChoice::kEmulated;
  if (!asked) LogWarn("plan.device_emulated", {{"why", "no worker has a card"}, {"what", kWhat}});
  made.notes.emplace_back("device_emulated", kWhat);
}

}  // namespace

Result<MadePlan> PlanOf(const JobConfig& job, const PlanInput& input) {
  PlanRequest request{job, input.columns, input.slices};
  request.accelerator = CommonAccelerator(input.accelerators, input.workers);
  DT_TRY(request.profile, ProfileOf(job, request.accelerator, TaskPool().threads()));
  if (!job.data.stats.empty()) {
    DT_TRY(request.data_stats, ReadDataStats(job.data.stats));
  }
  request.servers = input.servers;
  request.workers = input.workers;
  request.machine = {input.machine.servers, input.machine.workers, TaskPool().threads()};
  PlacementReport report;
  request.report = &report;
  MadePlan made;
  DT_TRY(const TeamPlans team, MakePlans(request, [&](std::string_view pass, const Plan& plan) {
           if (pass == "infer") made.model = ModelJson(plan, job);
         }));
  made.plan = team.At(0);
  made.plans.clear();
  std::vector<Plan> plans;
  for (uint32_t p = 0; p < team.positions(); ++p) {
    made.plans.push_back({Encode(team.At(p))});
    if (input.begins_from.has_value()) plans.push_back(team.At(p));
  }
  if (input.begins_from.has_value()) {
    DT_TRY(made.taken, TakenFrom(job, WholeArraysOf(plans), *input.begins_from));
  }
  made.step_seconds = report.step.step;
  made.explanation = ExplainJson(made.plan, job, report);
  if (report.automatic) LogInfo("plan.placed", {{"how", report.placement.summary}});
  const bool emulated =
      request.accelerator.has_value() && request.accelerator->kind == DeviceKind::kEmulated;
  NoteDevices(job, emulated, report, made);
  return made;
}

}  // namespace dt::scheduler
