#include "common/runtime/work_profile.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <sys/resource.h>
#include <utility>

#include "common/base/folder.h"
#include "common/base/immortal.h"

namespace dt {
namespace {

constexpr int64_t kIntervalNanos = 1'000'000;
constexpr size_t kSamplesMax = 1 << 20;

// Taken by the handler of a signal, without locks or allocation.
struct Samples {
  struct Slot {
    uint32_t thread = 0, weight = 0;
    std::atomic<WorkKind*> work = nullptr;  // Set last; null: not complete.
  };
  std::vector<Slot> slots = std::vector<Slot>(kSamplesMax);
  std::atomic<size_t> next = 0;
  std::atomic<bool> open = false;

  void Take(const siginfo_t& info) {
    if (!open.load(std::memory_order_acquire)) return;
    const size_t at = next.fetch_add(1, std::memory_order_relaxed);
    if (at >= slots.size()) return;
    slots[at].thread = static_cast<uint32_t>(info.si_value.sival_int);
    slots[at].weight = static_cast<uint32_t>(1 + info.si_overrun);
    slots[at].work.store(&WorkSpan::current(), std::memory_order_release);
  }
  void Open() {
    for (Slot& slot : slots) slot.work.store(nullptr, std::memory_order_relaxed);
    next = 0;
    open = true;
  }
};
Samples& AllSamples() {
  static Immortal<Samples> samples;
  return *samples;
}

void OnTimer(int, siginfo_t* info, void*) {
  const int before = errno;
  if (info->si_code == SI_TIMER) AllSamples().Take(*info);
  errno = before;
}

double ReadClock(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}
double KernelSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_stime.tv_usec) * 1e-6;
}

// A thread of this process, with a timer of its processor time.
struct Thread {
  std::string name;
  clockid_t clock = 0;
  timer_t timer = {};
  double begin = 0;
};

// The clock of a thread's processor time, made as pthread_getcpuclockid makes it.
clockid_t ClockOf(int thread) {
  return static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6);
}

class Profile : public WorkProfile {
 public:
  ~Profile() override { End(); }

  Status Start() {
    WorkKind::ForgetCounts();
    AllSamples().Open();
    struct sigaction action = {};
    action.sa_sigaction = OnTimer;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGPROF, &action, nullptr);
    WorkKind::counts = true;
    DT_TRY(const std::vector<std::filesystem::path> threads, ListFolder("/proc/self/task"));
    for (const std::filesystem::path& thread : threads) {
      DT_TRY_STATUS(AddThread(std::stoi(thread.filename())));
    }
    begin_ = SystemClock().Now();
    cpu_ = ReadClock(CLOCK_PROCESS_CPUTIME_ID);
    kernel_ = KernelSeconds();
    return OkStatus();
  }

  WorkShares Finish() override {
    WorkShares all{.wall_seconds = SecondsBetween(begin_, SystemClock().Now()),
                   .cpu_seconds = ReadClock(CLOCK_PROCESS_CPUTIME_ID) - cpu_,
                   .kernel_seconds = KernelSeconds() - kernel_};
    std::vector<double> seconds;
    for (const Thread& thread : threads_) {
      seconds.push_back(std::max(0.0, ReadClock(thread.clock) - thread.begin));
    }
    End();
    Divide(seconds, all);
    return all;
  }

 private:
  Status AddThread(int id) {
    Thread thread{.clock = ClockOf(id)};
    std::ifstream("/proc/self/task/" + std::to_string(id) + "/comm") >> thread.name;
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event.sigev_value.sival_int = static_cast<int>(threads_.size());
    event._sigev_un._tid = id;
    if (timer_create(thread.clock, &event, &thread.timer) != 0) {
      if (errno == EINVAL) return OkStatus();  // The thread has ended.
      return Unavailable("no timer for a thread's processor time: {}", std::strerror(errno));
    }
    const timespec interval{.tv_sec = 0, .tv_nsec = kIntervalNanos};
    const itimerspec every{.it_interval = interval, .it_value = interval};
    timer_settime(thread.timer, 0, &every, nullptr);
    thread.begin = ReadClock(thread.clock);
    threads_.push_back(std::move(thread));
    return OkStatus();
  }

  // Signals that are on their way may still come, so their handler stays.
  void End() {
    if (std::exchange(ended_, true)) return;
    for (const Thread& thread : threads_) timer_delete(thread.timer);
    WorkKind::counts = false;
    AllSamples().open = false;
  }

  // A thread's processor time divides as its samples do.
  void Divide(const std::vector<double>& seconds, WorkShares& all) const {
    const Samples& samples = AllSamples();
    std::vector<std::map<WorkKind*, uint64_t>> weights(seconds.size());
    const size_t count = std::min(samples.next.load(), samples.slots.size());
    for (size_t i = 0; i < count; ++i) {
      const Samples::Slot& slot = samples.slots[i];
      WorkKind* const work = slot.work.load(std::memory_order_acquire);
      // A late signal may be of the profile before.
      if (work == nullptr || slot.thread >= weights.size()) continue;
      weights[slot.thread][work] += slot.weight;
    }
    std::map<WorkKind*, WorkShares::Moved> moved;
    for (size_t t = 0; t < seconds.size(); ++t) {
      uint64_t sum = 0;
      for (const auto& [work, weight] : weights[t]) sum += weight;
      // Some threads of libraries block all signals.
      if (sum == 0) all.shares.push_back({&kUnnamedWork, threads_[t].name, seconds[t]});
      for (const auto& [work, weight] : weights[t]) {
        const double share = static_cast<double>(weight) / static_cast<double>(sum);
        all.shares.push_back({work, threads_[t].name, share * seconds[t]});
        moved[work] = {work};
      }
    }
    for (auto& [work, what] : moved) {
      what.bytes = work->bytes;
      what.flops = work->flops;
      all.moved.push_back(what);
    }
  }

  std::vector<Thread> threads_;
  bool ended_ = false;
  TimePoint begin_{};
  double cpu_ = 0, kernel_ = 0;
};

}  // namespace

Result<std::unique_ptr<WorkProfile>> WorkProfile::Begin() {
  auto profile = std::make_unique<Profile>();
  DT_TRY_STATUS(profile->Start());
  return std::unique_ptr<WorkProfile>(std::move(profile));
}

}  // namespace dt
