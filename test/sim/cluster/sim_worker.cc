#include "test/sim/cluster/sim_worker.h"

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/control/packet.h"
#include "common/device/devices.h"
#include "common/wire/data.h"

namespace dt::sim {
namespace {

JoinMessage JoinOf(const SimWorker::Options& options, uint64_t incarnation) {
  JoinMessage join;
  join.role = Role::kWorker;
  join.incarnation = Incarnation(incarnation);
  join.wire_version = kWireVersion;
  join.pid = static_cast<int64_t>(incarnation);
  join.host = join.address = "sim";
  join.job_fingerprint = options.job.fingerprint;
  join.id = ProcessId(options.number);
  join.devices = {HostDevice()};
  return join;
}

}  // namespace

// One side of a connection to an executor.
class SimWorker::Socket : public ClientSocket {
 public:
  Socket(SimWorker& worker, std::string endpoint)
      : worker_(worker),
        endpoint_(std::move(endpoint)),
        address_(
            fmt::format("client/{}/{}/{}", worker.incarnation(), endpoint_, worker.sockets_++)) {
    worker_.wires().Listen(
        address_, worker_.node(),
        [&worker, here = std::weak_ptr(arrived_)](const std::string&, const Frames& message) {
          worker.WhenAwake([&worker, here, message] {
            const auto arrived = here.lock();
            if (arrived == nullptr) return;  // It has been closed meanwhile.
            arrived->push_back(message);
            worker.Wake();
          });
        });
  }
  ~Socket() override { worker_.wires().Forget(address_); }

  Status Send(Frames message) override {
    if (worker_.alive()) {
      worker_.wires().Send(worker_.node(), address_, endpoint_, std::move(message));
    }
    return OkStatus();
  }
  Result<Frames> Receive(Duration timeout) override {
    const TimePoint deadline = worker_.world().Now() + timeout;
    while (arrived_->empty()) {
      if (worker_.world().Now() >= deadline) return Timeout("nothing from {}", endpoint_);
      DT_TRY_STATUS(worker_.Wait(deadline));
    }
    Frames message = std::move(arrived_->front());
    arrived_->pop_front();
    return message;
  }

 private:
  SimWorker& worker_;
  const std::string endpoint_, address_;
  const std::shared_ptr<std::deque<Frames>> arrived_ = std::make_shared<std::deque<Frames>>();
};

SimWorker::SimWorker(World& world, Wires& wires, Node node, uint64_t incarnation, Options options)
    : Process(world, wires, node, incarnation),
      options_(std::move(options)),
      worker_{.job = options_.job,
              .network = *this,
              .scheduler = kSchedulerAddress,
              .threads = 1,
              .more_threads = false},
      core_(world.Now(), {.join = JoinOf(options_, incarnation),
                          .scheduler = kSchedulerAddress,
                          .outage = options_.job.cluster.scheduler_outage,
                          .progress = [this] { return Progress(); }}) {
  wires.Listen(AddressOf(incarnation), node, [this](const std::string&, const Frames& message) {
    WhenAwake([this, message] { OnPacket(message); });
  });
  Later(kTick, [this] { Tick(); });
}

SimWorker::~SimWorker() { Kill(); }

std::string SimWorker::Text() const {
  return fmt::format("worker at step {}, link: {}, {}", progress_.step,
                     core_.all_acknowledged() ? "all acknowledged" : "not all acknowledged",
                     incoming_.empty() ? "no orders left" : "orders left");
}

HeartbeatMessage SimWorker::Progress() const {
  HeartbeatMessage progress = progress_;
  activity_.AddTo(world().Now(), progress);
  return progress;
}

void SimWorker::OnKill() {
  wires().Forget(AddressOf(incarnation()));
  options_.meshes.Break(node());
  // The thread comes out of its waits with errors.
  if (thread_ == nullptr) return;
  ended_ = true;
  while (!thread_->ended()) thread_->Resume();
  thread_.reset();
}

void SimWorker::Begin() {
  const auto timer = [this](TimePoint when, std::function<void()> event) {
    Later(when - world().Now(), std::move(event));
  };
  thread_ = std::make_unique<SimThread>(timer, [this] {
    SetFailpointHandler([this](std::string_view place, uint64_t at) {
      if (options_.dies && alive() && options_.dies(options_.number, place, at)) Die();
      while (hangs_ && place == "slice" && Wait(world().Now() + seconds(1)).ok()) {
      }
    });
    const auto connect =
        [this](const View& view, uint32_t rank,
               const worker::MeshLimits& limits) -> Result<std::unique_ptr<worker::Mesh>> {
      const std::string name = fmt::format("{}{}/{}", options_.mesh_prefix, view.generation.value(),
                                           view.number.value());
      return options_.meshes.Connect(name, rank, static_cast<uint32_t>(view.workers.size()), limits,
                                     {.node = node(),
                                      .wait = [this](TimePoint until) { return Wait(until); },
                                      .wake = [this] { WhenAwake([this] { Wake(); }); }});
    };
    const auto open_stream = [this](const StreamConfig&, std::function<Status()> interrupted) {
      return options_.topic->Open(std::move(interrupted),
                                  [this](TimePoint until) { return Wait(until); });
    };
    const auto repeat = [this](Duration every, std::function<bool()> what) {
      return Repeat(every, std::move(what));
    };
    const Status end = worker::RunWorker({.options = worker_,
                                          .link = *this,
                                          .latest = latest_,
                                          .activity = activity_,
                                          .data_network = *this,
                                          .connect = connect,
                                          .open_stream = open_stream,
                                          .repeat = repeat,
                                          .clock = world()},
                                         {});
    if (alive()) end_ = end;
  });
  thread_->Resume();
}

std::shared_ptr<void> SimWorker::Repeat(Duration every, std::function<bool()> what) {
  const auto repeated = std::make_shared<std::function<bool()>>(std::move(what));
  RepeatWhile(repeated, every);
  return repeated;
}

void SimWorker::RepeatWhile(std::weak_ptr<std::function<bool()>> what, Duration every) {
  Later(every, [this, what = std::move(what), every] {
    const auto repeated = what.lock();
    if (repeated != nullptr && (*repeated)()) RepeatWhile(repeated, every);
  });
}

// Whatever it does afterwards, nobody hears of it.
void SimWorker::Die() {
  world().After(Duration::zero(), [this] { Kill(); });
  while (Wait(world().Now() + seconds(1)).ok()) {
  }
}

Status SimWorker::Wait(TimePoint until) {
  if (alive()) thread_->WaitUntil(until);
  return alive() ? OkStatus() : Cancelled("the process was killed");
}

// ------------------------------------------------------------ on the world's thread

void SimWorker::OnPacket(const Frames& message) {
  Result<Packet> packet = DecodePacket(message);
  DT_CHECK(packet.ok());
  core_.OnPacket(world().Now(), *std::move(packet));
  TakeFromLink();
}

void SimWorker::TakeFromLink() {
  for (ControlMessage& message : core_.TakeMessages()) {
    if (const auto* split = std::get_if<SplitMessage>(&message)) {
      splits_.OnAnswer(*split);
    } else if (auto* map = std::get_if<MapChangedMessage>(&message)) {
      latest_.Set(std::move(map->map));
    } else if (const auto* recall = std::get_if<RecallMessage>(&message)) {
      core_.Send(incoming_.OnRecall(*recall));
    } else {
      if (const auto* next = std::get_if<NewViewMessage>(&message)) {
        incoming_.OnNewView();
        splits_.OnNewView();
        latest_.Announce(next->view.number);
      }
      incoming_.Add(std::move(message));
    }
  }
  if (core_.ended() && !ended_) {
    MutexLock lock(mutex_);
    end_status_ = core_.end_status();
    ended_ = true;
  }
  Flush();
  if (core_.welcome().has_value() && thread_ == nullptr) return Begin();
  if (thread_ != nullptr) thread_->Wake();
}

void SimWorker::Flush() {
  core_.Tick(world().Now());
  for (const Packet& packet : core_.TakePackets()) {
    wires().Send(node(), AddressOf(incarnation()), kSchedulerAddress, EncodePacket(packet));
  }
}

void SimWorker::Tick() {
  TakeFromLink();
  if (!core_.welcome().has_value() && TriedLongEnough()) return Kill();
  if (hangs_ && core_.ended()) return Kill();  // A process aborts then.
  if (thread_ == nullptr ? core_.ended() : thread_->ended()) {
    wires().Forget(AddressOf(incarnation()));
    options_.meshes.Break(node());
    End();
    return core_.end_status().code() == StatusCode::kAborted ? JoinAgain() : void();
  }
  Later(kTick, [this] { Tick(); });
}

// ------------------------------------------------------------ on the worker's thread

void SimWorker::Send(ControlMessage message) {
  if (!alive()) return;
  core_.Send(std::move(message));
  Flush();
}

Result<ControlMessage> SimWorker::Receive(Duration timeout, Orders orders) {
  const TimePoint deadline = world().Now() + timeout;
  for (;;) {
    if (orders == Orders::kDrop) incoming_.DropFirstOrders();
    if (!incoming_.empty()) return incoming_.Take();
    if (ended_) return end_status().ok() ? Cancelled("the job is complete") : end_status();
    if (world().Now() >= deadline) return Timeout("no message from the scheduler");
    DT_TRY_STATUS(Wait(deadline));
  }
}

void SimWorker::Put(const std::string&, std::string) { DT_UNREACHABLE(); }
Result<std::string> SimWorker::Get(const std::string&, Duration) { DT_UNREACHABLE(); }

Result<SplitMessage> SimWorker::NextSplit(uint64_t order, Duration timeout) {
  const TimePoint deadline = world().Now() + timeout;
  for (;;) {
    if (const auto split = splits_.Take(order)) return *split;
    if (splits_.Ask()) Send(SplitRequestMessage{order});
    if (ended_) return end_status().ok() ? Cancelled("the job is complete") : end_status();
    if (world().Now() >= deadline) return Timeout("no more of the order yet");
    DT_TRY_STATUS(Wait(deadline));
  }
}

Status SimWorker::end_status() const {
  MutexLock lock(mutex_);
  return end_status_;
}

void SimWorker::Flush(Duration timeout) {
  const TimePoint deadline = world().Now() + timeout;
  while (!core_.all_acknowledged() && world().Now() < deadline && Wait(deadline).ok()) {
  }
}

Result<std::unique_ptr<ServerSocket>> SimWorker::Bind(const std::string& endpoint) {
  return Internal("a worker does not listen at {}", endpoint);
}

Result<std::unique_ptr<ClientSocket>> SimWorker::Connect(const std::string& endpoint) {
  return std::make_unique<Socket>(*this, endpoint);
}

}  // namespace dt::sim
