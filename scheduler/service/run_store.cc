#include "scheduler/service/run_store.h"

#include <charconv>

#include "common/storage/json_fields.h"

namespace dt::scheduler {
namespace {

// Keys. Each part of the record has its own: "run/members", …
constexpr const char* kTerm = "term";
constexpr const char* kGeneration = "generation";
constexpr const char* kIdentity = "run";  // Empty if no run is unfinished.
constexpr const char* kParts = "run/";

// The number stored under `key`; 0 if there is none.
Result<uint64_t> ReadNumber(StateStore& store, const std::string& key) {
  DT_TRY(const std::optional<std::string> text, store.Get(key));
  if (!text.has_value()) return uint64_t{0};
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size()) {
    return DataLoss("the scheduler's state holds \"{}\" as {}", *text, key);
  }
  return number;
}

Result<RunIdentity> IdentityFrom(const std::string& text) {
  RunIdentity identity;
  try {
    FieldsFromJson(Json::parse(text), identity);
    return identity;
  } catch (const std::exception& e) {  // Thrown by nlohmann::json.
    return DataLoss("the scheduler's note of the run is damaged: {}", e.what());
  }
}

}  // namespace

Result<std::unique_ptr<RunStore>> RunStore::Open(std::unique_ptr<StateStore> state) {
  auto store = std::make_unique<RunStore>(Key(), std::move(state));
  DT_TRY(const uint64_t term, ReadNumber(*store->state_, kTerm));
  DT_TRY(const uint64_t generation, ReadNumber(*store->state_, kGeneration));
  store->term_ = Term(term + 1);
  store->generation_ = Generation(generation);
  DT_TRY_STATUS(store->state_->Put({{kTerm, std::to_string(term + 1)}}));
  return store;
}

Result<std::optional<UnfinishedRun>> RunStore::Unfinished() {
  DT_TRY(const std::optional<std::string> text, state_->Get(kIdentity));
  DT_TRY(RecordParts parts, state_->GetAll(kParts));
  if (!text.has_value() || text->empty() || parts.empty()) return std::optional<UnfinishedRun>();
  DT_TRY(RunIdentity identity, IdentityFrom(*text));
  DT_TRY(JobRecord record, DecodeJobRecord(parts));
  kept_ = std::move(parts);
  fixed_kept_ = record.phase >= JobPhase::kStarting;
  return std::optional<UnfinishedRun>({std::move(identity), std::move(record)});
}

Status RunStore::BeginRun(const RunIdentity& identity) {
  kept_.clear();
  fixed_kept_ = false;
  DT_TRY_STATUS(state_->RemoveAll(kParts));
  generation_ = Generation(generation_.value() + 1);
  return state_->Put({{kGeneration, std::to_string(generation_.value())},
                      {kIdentity, FieldsToJson(identity).dump()}});
}

Status RunStore::KeepGeneration(Generation generation) {
  generation_ = generation;
  return state_->Put({{kGeneration, std::to_string(generation.value())}});
}

Status RunStore::Keep(const JobRecord& record) {
  std::map<std::string, std::string> changed;
  for (auto& [name, bytes] : EncodeJobRecord(record, fixed_kept_ ? PartsOf::kRun : PartsOf::kAll)) {
    if (const auto kept = kept_.find(name); kept != kept_.end() && kept->second == bytes) continue;
    changed.emplace(kParts + name, bytes);
    kept_[name] = std::move(bytes);
  }
  if (!changed.empty()) DT_TRY_STATUS(state_->Put(changed));
  fixed_kept_ = record.phase >= JobPhase::kStarting;
  return OkStatus();
}

Status RunStore::EndRun() { return state_->Put({{kIdentity, ""}}); }

}  // namespace dt::scheduler
