#include "worker/service/share_state.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace dt::worker {
namespace {

constexpr size_t kRowsAtOnce = 16384;

class Sharing {
 public:
  Sharing(const ShareLink& link, const SharedState& state) : link_(link), state_(state) {}

  Status All() {
    DT_TRY_STATUS(Order());
    for (Parameters::Array& array : state_.parameters.arrays()) {
      DT_TRY_STATUS(Share(std::as_writable_bytes(std::span(array.values))));
    }
    DT_TRY_STATUS(SameOnBoth(state_.parameters.Checksum(), "dense parameters"));
    for (size_t t = 0; t < state_.tables.size(); ++t) {
      DT_TRY_STATUS(Table(state_.tables.table(t)));
    }
    return OkStatus();
  }

 private:
  Status Share(std::span<std::byte> bytes) {
    if (bytes.empty()) return OkStatus();
    return link_.communicator.Broadcast(link_.call, link_.from, bytes);
  }
  template <class T>
  Status ShareValue(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return Share(std::as_writable_bytes(std::span(&value, 1)));
  }
  template <class T>
  Status ShareList(std::vector<T>& list) {
    uint64_t size = list.size();
    DT_TRY_STATUS(ShareValue(size));
    list.resize(size);
    return Share(std::as_writable_bytes(std::span(list)));
  }

  Status SameOnBoth(std::string own, std::string_view what) {
    std::string given = own;
    DT_TRY_STATUS(Share(std::as_writable_bytes(std::span(given))));
    if (given == own) return OkStatus();
    return Internal("rank {} has {} {}, and gave {}", link_.call.group.ranks[link_.from], what,
                    given, own);
  }

  Status Order() {
    OrderProgress& order = state_.order;
    uint8_t begun = order.begun.has_value() ? 1 : 0;
    double seconds = begun != 0 ? SecondsBetween(*order.begun, state_.now) : 0;
    DT_TRY_STATUS(ShareValue(order.number));
    DT_TRY_STATUS(ShareValue(begun));
    DT_TRY_STATUS(ShareValue(seconds));
    DT_TRY_STATUS(ShareValue(order.done.end_step));
    DT_TRY_STATUS(ShareValue(order.done.samples));
    DT_TRY_STATUS(ShareList(order.done.loss_sums));
    DT_TRY_STATUS(ShareList(order.done.first_losses));
    DT_TRY_STATUS(ShareValue(state_.samples_before));
    if (link_.gives()) return OkStatus();
    order.begun.reset();
    if (begun != 0) {
      order.begun =
          state_.now - std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
    }
    return OkStatus();
  }

  // In the order of row numbers, which the workers then agree on.
  Status Table(WorkerTable& table) {
    uint64_t rows = table.rows();
    DT_TRY_STATUS(ShareValue(rows));
    DT_TRY_STATUS(link_.gives() ? GiveRows(table) : TakeRows(rows, table));
    DT_TRY(const TableReport report, table.Report());
    return SameOnBoth(fmt::format("{:x} {:x}", report.checksum_high, report.checksum_low),
                      table.config().name);
  }
  Status GiveRows(WorkerTable& table) {
    std::vector<uint32_t> numbers(table.rows());
    std::iota(numbers.begin(), numbers.end(), 0u);
    std::vector<std::byte> bytes;
    size_t rows = 0;
    return table.VisitRows(numbers, [&](Key key, std::span<const std::byte> record) {
      const auto key_bytes = std::as_bytes(std::span(&key, 1));
      bytes.insert(bytes.end(), key_bytes.begin(), key_bytes.end());
      bytes.insert(bytes.end(), record.begin(), record.end());
      if (++rows % kRowsAtOnce != 0 && rows != numbers.size()) return OkStatus();
      const Status given = Share(bytes);
      bytes.clear();
      return given;
    });
  }
  Status TakeRows(uint64_t rows, WorkerTable& table) {
    const size_t width = sizeof(Key) + table.record_bytes();
    std::vector<std::byte> bytes;
    table.Clear();
    for (uint64_t first = 0; first < rows; first += kRowsAtOnce) {
      bytes.resize(std::min<uint64_t>(kRowsAtOnce, rows - first) * width);
      DT_TRY_STATUS(Share(bytes));
      for (size_t at = 0; at < bytes.size(); at += width) {
        Key key = 0;
        std::memcpy(&key, bytes.data() + at, sizeof(key));
        const auto record = std::span(bytes).subspan(at + sizeof(key), table.record_bytes());
        DT_TRY_STATUS(table.Restore(key, record));
      }
    }
    return table.FinishRestore();
  }

  const ShareLink& link_;
  const SharedState& state_;
};

}  // namespace

Status ShareState(const ShareLink& link, const SharedState& state) {
  return Sharing(link, state).All();
}

}  // namespace dt::worker
