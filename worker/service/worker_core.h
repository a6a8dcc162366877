// A worker from its welcome to the end of the job: opens its data, takes the plan, carries out
// orders. Its connections are given to it, so that simulations can give it their own.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "common/cluster/latest_view.h"
#include "common/cluster/view.h"
#include "common/control/control_link.h"
#include "worker/collective/mesh.h"
#include "worker/data/stream/message_reader.h"
#include "worker/exchange/team_link.h"
#include "worker/service/stream_watch.h"
#include "worker/service/worker.h"
#include "worker/service/worker_activity.h"

namespace dt::worker {

struct WorkerParts {
  const WorkerOptions& options;
  ControlLink& link;         // After its welcome.
  const LatestView& latest;  // The newest that has come through the link.
  WorkerActivity& activity;  // The link reports it.
  Network& data_network;     // To the servers.
  // Connects this worker to the others of a view.
  std::function<Result<std::unique_ptr<Mesh>>(const View& view, uint32_t rank,
                                              const MeshLimits& limits)>
      connect;
  // How it connects its card with those of others. Empty: it cannot.
  std::function<TeamLink::ConnectCards(const View& view, uint32_t rank, const MeshLimits& limits)>
      connect_cards = {};
  Status devices = {};  // Not OK: what cluster.devices asks for is not there.
  OpenStream open_stream = OpenMessages;
  Repeat repeat = RepeatOnThread;
  const Clock& clock = SystemClock();
};

// Like Worker::Run. REQUIRES: the parts outlive the call.
Status RunWorker(const WorkerParts& parts, std::stop_token stop);

}  // namespace dt::worker
