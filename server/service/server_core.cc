#include "server/service/server_core.h"

#include <algorithm>
#include <filesystem>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/open_files.h"
#include "common/storage/path_below.h"
#include "server/shard/checksum.h"
#include "server/table/table_specs.h"

namespace dt::server {
namespace {

constexpr Duration kSaveTimeout = seconds(60);

std::vector<uint64_t> FirstSegments(const std::vector<ExecutorAnswer>& answers) {
  std::vector<uint64_t> firsts;
  for (const ExecutorAnswer& answer : answers) firsts.push_back(answer.first_segment);
  return firsts;
}

bool HasAnswered(const std::optional<ExecutorAnswer>& answer) { return answer.has_value(); }

}  // namespace

ServerCore::ServerCore(Options options)
    : options_(std::move(options)), tables_(TableSpecsOf(options_.job)) {}

// ------------------------------------------------------------ one message after the other

void ServerCore::OnMessage(TimePoint now, ControlMessage message) {
  if (auto* changed = std::get_if<MapChangedMessage>(&message)) {
    map_ = std::move(changed->map);
    return;
  }
  inbox_.push_back(std::move(message));
  Advance(now);
}

void ServerCore::Advance(TimePoint now) {
  while (failure_.ok() && !question_.has_value() && !inbox_.empty()) {
    ControlMessage message = std::move(inbox_.front());
    inbox_.pop_front();
    failure_.Update(Handle(now, std::move(message)));
  }
}

Status ServerCore::Handle(TimePoint now, ControlMessage message) {
  if (const auto* start = std::get_if<StartMessage>(&message)) return Start(*start);
  if (const auto* order = std::get_if<OrderMessage>(&message)) return CarryOut(now, *order);
  if (const auto* next = std::get_if<NewViewMessage>(&message)) return BeginView(next->view);
  if (const auto* kept = std::get_if<CheckpointCommittedMessage>(&message)) return Cut(*kept);
  LogWarn("server.unexpected_message", {{"message", NameOf(message)}});
  return OkStatus();
}

void ServerCore::AskAll(const MakeCommand& command, Then then) {
  question_ =
      Question{std::vector<std::optional<ExecutorAnswer>>(options_.executors), std::move(then)};
  for (uint32_t i = 0; i < options_.executors; ++i) commands_.push_back({i, command(i)});
}

std::optional<uint32_t> ServerCore::awaited() const {
  if (!question_.has_value()) return std::nullopt;
  const auto open = std::ranges::find_if_not(question_->answers, HasAnswered);
  return static_cast<uint32_t>(open - question_->answers.begin());
}

void ServerCore::OnAnswer(TimePoint now, uint32_t executor, ExecutorAnswer answer) {
  DT_CHECK(question_.has_value() && !question_->answers[executor].has_value());
  question_->answers[executor] = std::move(answer);
  if (!std::ranges::all_of(question_->answers, HasAnswered)) return;
  const Question question = *std::exchange(question_, std::nullopt);
  Answers answers;
  for (const auto& one : question.answers) {
    failure_.Update(one->status);
    answers.push_back(*one);
  }
  if (failure_.ok()) failure_.Update(question.then(now, std::move(answers)));
  Advance(now);
}

void ServerCore::Done(uint64_t order, OrderResult result) {
  outgoing_.push_back(OrderDoneMessage{.order = order, .result = std::move(result)});
}

// ------------------------------------------------------------ start

ShardSetOptions ServerCore::ShardsOf(const StartMessage& start, uint32_t executor) const {
  ShardSetOptions shards{.tables = tables_,
                         .slices = std::max(1u, start.slices) * std::max(1u, start.team),
                         .view = start.view,
                         .self = options_.self,
                         .executor = executor,
                         .executors = options_.executors,
                         .frames = options_.frames,
                         .steps_before = start.steps_before};
  if (options_.job.train.asynchronous()) shards.staleness = options_.job.train.staleness;
  return shards;
}

DiskTierOptions ServerCore::DiskOf() const {
  const ServerConfig& server = options_.job.cluster.server;
  DiskTierOptions disk;
  disk.folder = options_.keeper != nullptr ? options_.keeper->dir() : server.dir;
  disk.memory_bytes = server.memory_bytes / options_.executors;
  disk.open_files = OpenFilesMax() / 4 / options_.executors;
  return disk;
}

Status ServerCore::Start(const StartMessage& given) {
  StartMessage start = given;
  for (TableSpec& table : tables_) {
    table.on_worker = std::ranges::count(start.tables_on_worker, table.id) > 0;
  }
  if (start.view.map.FindServer(options_.self) == nullptr) {
    LogWarn("server.without_shards", {{"id", options_.self.value()}});
  }
  std::vector<std::optional<LogLocation>> logs(options_.executors);
  if (options_.keeper != nullptr) {
    DT_TRY(logs, options_.keeper->LocationsAtStart(options_.executors, start.view.generation));
  }
  AskAll([&](uint32_t i) { return BeginCommand(ShardsOf(start, i), DiskOf(), logs[i]); },
         [this, shards = start.view.map.shards()](TimePoint, const Answers& answers) -> Status {
           if (options_.keeper != nullptr) {
             DT_TRY_STATUS(options_.keeper->OnStarted(FirstSegments(answers)));
           }
           started_ = true;
           LogInfo("server.started", {{"executors", answers.size()},
                                      {"shards_of_job", shards},
                                      {"tables", tables_.size()}});
           outgoing_.push_back(ReadyMessage{});
           return OkStatus();
         });
  return OkStatus();
}

Status ServerCore::BeginView(const View& view) {
  AskAll([&](uint32_t) { return NewViewCommand(view.number, view.workers); },
         [this, number = view.number](TimePoint, const Answers& answers) -> Status {
           ViewReportMessage report{.view = number};
           for (const ExecutorAnswer& answer : answers) {
             report.step = std::max(report.step, answer.complete);
           }
           LogInfo("server.view", {{"view", number.value()}, {"complete", report.step}});
           outgoing_.push_back(report);
           return OkStatus();
         });
  return OkStatus();
}

// ------------------------------------------------------------ orders

Status ServerCore::CarryOut(TimePoint now, const OrderMessage& order) {
  if (const auto* save = std::get_if<SaveOrder>(&order.what)) {
    return Save(now, order.number, *save);
  }
  if (const auto* load = std::get_if<LoadOrder>(&order.what)) return Load(order.number, *load);
  if (std::holds_alternative<FinishOrder>(order.what)) return Finish(order.number);
  LogWarn("server.unexpected_order", {{"order", order.number}});
  return OkStatus();
}

Status ServerCore::Save(TimePoint now, uint64_t order, const SaveOrder& save) {
  DT_TRY(const std::string folder, PathBelow(options_.job.checkpoint.dir, save.name));
  const std::string own = fmt::format("{}/server-{}", folder, options_.self.value());
  // An earlier process of this server may have been killed while it saved.
  if (options_.keeper != nullptr) {
    std::error_code absent;
    std::filesystem::remove_all(own, absent);
  }
  AskAll(
      [&](uint32_t i) {
        return SaveCommand(save.step, {folder, options_.self, i}, kSaveTimeout);
      },
      [this, order, own, now, step = save.step](TimePoint, const Answers&) {
        saving_ = Saving{order, step, own, now, options_.executors, {}, {}};
        Done(order, SaveDone{.files = {}, .writing = true});
        return OkStatus();
      });
  return OkStatus();
}

void ServerCore::OnSaved(TimePoint now, uint32_t, SavedRows saved) {
  DT_CHECK(saving_.has_value());
  saving_->status.Update(saved.status);
  std::ranges::move(saved.files, std::back_inserter(saving_->files));
  if (--saving_->executors_left == 0) failure_.Update(EndSaving(now));
}

Status ServerCore::EndSaving(TimePoint now) {
  Saving saving = *std::exchange(saving_, std::nullopt);
  if (!saving.status.ok()) {
    std::error_code ignored;
    std::filesystem::remove_all(saving.folder, ignored);
    return saving.status;
  }
  LogInfo("server.saved", {{"step", saving.step}, {"seconds", SecondsBetween(saving.begun, now)}});
  outgoing_.push_back(RowsWrittenMessage{saving.order, std::move(saving.files)});
  return OkStatus();
}

Status ServerCore::Load(uint64_t order, const LoadOrder& load) {
  RowsToLoad rows{load.folder, load.step, load.generation};
  if (load.begins) rows.taken = load.taken;
  AskAll([&](uint32_t) { return LoadCommand(rows); },
         [this, order, load, rows](TimePoint, const Answers& answers) -> Status {
           if (options_.keeper != nullptr) {
             DT_TRY_STATUS(options_.keeper->SetBase(
                 {load.generation, load.step, load.folder, FirstSegments(answers), rows.taken}));
           }
           LogInfo("server.loaded", {{"step", load.step}, {"generation", load.generation.value()}});
           Done(order, LoadDone{});
           return OkStatus();
         });
  return OkStatus();
}

Status ServerCore::Finish(uint64_t order) {
  AskAll([](uint32_t) { return ReportCommand(); },
         [this, order](TimePoint, Answers answers) {
           FinishDone done;
           done.tables = answers[0].tables;
           for (size_t i = 1; i < answers.size(); ++i) AddReports(done.tables, answers[i].tables);
           done.map = answers[0].map;
           for (ExecutorAnswer& answer : answers) {
             done.map = std::min(done.map, answer.map);
             std::ranges::move(answer.copies, std::back_inserter(done.copies));
           }
           if (options_.stats) done.stats = options_.stats();
           Done(order, std::move(done));
           return OkStatus();
         });
  return OkStatus();
}

// A checkpoint is complete, so the log before it is of no use.
Status ServerCore::Cut(const CheckpointCommittedMessage& kept) {
  if (options_.keeper == nullptr) return OkStatus();
  if (!started_) {
    options_.keeper->NoteCommitted(kept);
    return OkStatus();
  }
  if (!options_.keeper->Continues(kept)) return OkStatus();
  AskAll([&](uint32_t) { return CutCommand(kept.step); },
         [this, kept](TimePoint, const Answers& answers) {
           const Status cut = options_.keeper->SetBase(
               {kept.generation, kept.step, kept.folder, FirstSegments(answers)});
           if (!cut.ok()) {  // The next checkpoint cuts the log.
             LogWarn("server.log_not_cut", {{"problem", ToText(cut)}});
           }
           return OkStatus();
         });
  return OkStatus();
}

}  // namespace dt::server
