#include "scheduler/plan/step_time.h"

#include <algorithm>

#include "scheduler/plan/table_locations.h"

namespace dt::scheduler {
namespace {

// Requests of a worker to a server in a step: pull, push, and the message that the step is
// complete.
constexpr double kServerRequests = 3;
// Rounds among workers in a step: the exchange of sums, and the barrier.
constexpr double kPeerRounds = 2;

// Processor seconds of one worker, if all cores of its machine work for it. An emulated accelerator
// computes and copies on the same cores.
double ProcessorSeconds(const PlanRequest& request) {
  const Prediction& slice = request.report->placement.prediction;
  const bool emulated =
      request.accelerator.has_value() && request.accelerator->kind == DeviceKind::kEmulated;
  double seconds = slice.computing[kOnCpu];
  if (emulated) {
    seconds +=
        slice.computing[kOnAccelerator] + slice.copying[kOnCpu] + slice.copying[kOnAccelerator];
  }
  return request.report->slices * seconds;
}

}  // namespace

// A message costs its sender and receiver together about as much processor time as the sender waits
// for it: both were measured as 0.1 ms between processes on one machine.
StepTime TimeOfStep(const Graph& graph, const PlanRequest& request) {
  const PlacementReport& report = *request.report;
  const TableTimes tables = TimesOfTables(graph, request);
  const MachineShare& machine = request.machine;
  const double workers = std::max(1u, request.workers);
  const double servers = std::max(1u, request.servers);
  const double latency = request.profile.server.latency_seconds;
  const bool asynchronous = request.job.train.asynchronous();
  const double server_requests = tables.servers > 0 || asynchronous ? kServerRequests : 0;
  const double peer_rounds = asynchronous ? 0 : kPeerRounds;

  StepTime time;
  time.worker = report.slices * report.placement.prediction.seconds;
  time.exchange = tables.exchange;
  time.servers = tables.servers;
  time.messages = latency * (server_requests + (workers > 1 ? peer_rounds : 0));
  const double messages =
      machine.workers * (server_requests * machine.servers + peer_rounds * (machine.workers - 1.0));
  const double work = messages * latency + tables.server_work * machine.servers / servers;
  time.machine = machine.workers * ProcessorSeconds(request) + work / machine.cores;
  const double one_worker = time.worker + time.exchange;
  time.step = time.messages + (request.job.parallel.overlap
                                   ? std::max({one_worker, time.servers, time.machine})
                                   : std::max(one_worker + time.servers, time.machine));
  return time;
}

}  // namespace dt::scheduler
