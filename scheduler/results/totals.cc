#include "scheduler/results/totals.h"

#include "common/base/text.h"

namespace dt::scheduler {
namespace {

using Sum = std::pair<uint64_t, uint64_t>;  // High, low.

// Adds up the reports of the processes one by one.
class Adder {
 public:
  explicit Adder(bool compares_copies) : compares_copies_(compares_copies) {}

  Status Add(const Member& from, const FinishDone& report) {
    totals_.stats[from.id] = report.stats;
    for (const TableReport& table : report.tables) DT_TRY_STATUS(AddTable(from, table));
    if (compares_copies_) {
      for (const CopySum& copy : report.copies) DT_TRY_STATUS(AddCopy(from, copy));
    }
    for (const DenseSum& sum : report.dense) {
      const auto [first, added] = dense_.try_emplace(sum.part, sum);
      if (added || first->second == sum) continue;
      return Internal("{} holds other dense parameters than the workers before it", from.Name());
    }
    return OkStatus();
  }
  Totals Take() {
    for (const auto& [name, sum] : sums_) {
      totals_.tables[name].checksum = HexOf(sum.first) + HexOf(sum.second);
    }
    Sum dense;
    for (const auto& [part, sum] : dense_) {
      dense.first += sum.high;
      dense.second += sum.low;
    }
    if (!dense_.empty()) totals_.dense_checksum = HexOf(dense.first) + HexOf(dense.second);
    return std::move(totals_);
  }

 private:
  Status AddCopy(const Member& from, const CopySum& copy) {
    const auto [first, added] = copies_.try_emplace(copy.shard, from.Name(), copy);
    if (added || first->second.second == copy) return OkStatus();
    return Internal("{} and {} hold different rows of shard {}", first->second.first, from.Name(),
                    copy.shard.value());
  }

  Status AddTable(const Member& from, const TableReport& table) {
    const Sum sum = {table.checksum_high, table.checksum_low};
    const bool again =
        from.role() == Role::kWorker && !replicas_.try_emplace(table.name, sum).second;
    if (again && replicas_[table.name] != sum) {
      return Internal("{} holds other rows of table {} than the workers before it", from.Name(),
                      table.name);
    }
    (again ? AddReplica : AddReport)(table, totals_.tables[table.name]);
    if (again) return OkStatus();
    sums_[table.name].first += sum.first;
    sums_[table.name].second += sum.second;
    return OkStatus();
  }

  const bool compares_copies_;
  Totals totals_;
  std::map<std::string, Sum> sums_;
  std::map<uint32_t, DenseSum> dense_;   // By part.
  std::map<std::string, Sum> replicas_;  // Checksums of the tables that are on workers.
  std::map<ShardId, std::pair<std::string, CopySum>>
      copies_;  // The first ones, and whose they are.
};

}  // namespace

void AddReport(const TableReport& report, JobResult::Table& to) {
  to.rows += report.rows;
  to.rows_in_memory += report.rows_in_memory;
  to.rows_on_disk += report.rows_on_disk;
  to.bytes += report.bytes;
  to.pushes_refused += report.pushes_refused;
  to.rows_expired += report.rows_expired;
  to.rows_touched += report.rows_touched;
  to.rows_fetched += report.rows_fetched;
  to.rows_written += report.rows_written;
}

void AddReplica(const TableReport& report, JobResult::Table& to) {
  to.rows_touched += report.rows_touched;
}

Result<Totals> TotalsOf(const std::map<ProcessId, FinishDone>& reports, const Membership& members,
                        const JobConfig& job) {
  // The last record of how time has passed may not have come to every copy.
  const bool by_time = std::ranges::any_of(job.model.tables, [](const TableConfig& table) {
    return table.life.expiry_time > Duration::zero();
  });
  Adder adder(!by_time);
  for (const auto& [id, report] : reports) {
    DT_TRY_STATUS(adder.Add(*members.Find(id), report));
  }
  return adder.Take();
}

}  // namespace dt::scheduler
