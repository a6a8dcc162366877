// What the cells of a data set become, in every format whose columns the job file lists: keys of
// texts and ids, crossed keys, transformed numbers. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/hash.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/specs/column.h"
#include "worker/data/format/time_cell.h"
#include "worker/data/row_layout.h"

namespace dt::worker {

inline constexpr std::string_view kIdExpected = "an id from 0 to 18446744073709551615";

// Invalid if a column asks for something that these formats cannot do.
Status CheckListedColumns(const std::vector<ColumnSpec>& columns);

// The key that a column with `hash` makes of a key; 0: the key itself.
constexpr Key HashedKey(Key key, uint64_t hash) { return hash == 0 ? key : MixBits(key) % hash; }

// SignedLog, with a table of small integers, which most cells are.
class SignedLogs {
 public:
  SignedLogs();
  float operator()(float value) const;

 private:
  std::vector<float> small_;
};

// Turns the cells of one column into keys or numbers. Immutable: any thread.
class CellConverter {
 public:
  // What a cell holds, or an item of it.
  enum class Kind : uint8_t {
    kNumber,
    kText,
    kId,
    kBucket,  // An integer that is put into a bucket.
    kBin,     // A number that is put into a bin.
    kTime,
  };

  // Both outlive this.
  CellConverter(const ColumnSpec& column, const SignedLogs& logs);

  Kind kind() const { return kind_; }
  // Whether Number, or OfId, changes anything.
  bool changes_numbers() const { return changes_number_; }
  bool keeps_ids() const { return is_plain_; }

  // A number: clipped, then its logarithm, then standardised, as far as the column says.
  float Number(float value) const { return changes_number_ ? Changed(value) : value; }

  // Keys. With the transform `named`, equal texts or ids in two columns have different ones. A
  // bucket or a bin of nothing is that of an empty cell.
  Key OfText(std::string_view text) const {
    return is_plain_ ? HashString(text) : Hashed(named_ ? NamedText(text) : HashString(text));
  }
  Key OfId(uint64_t id) const { return is_plain_ ? id : Hashed(named_ ? NamedId(id) : id); }
  Key OfBucket(std::optional<int64_t> value) const;
  Key OfBin(std::optional<float> value) const;
  // REQUIRES: IsTime(seconds).
  Key OfTime(int64_t seconds) const { return Hashed(PartOf(part_, seconds)); }

 private:
  float Changed(float value) const;
  Key NamedText(std::string_view text) const;
  Key NamedId(uint64_t id) const;
  Key Hashed(Key key) const { return HashedKey(key, column_.hash); }

  const ColumnSpec& column_;
  const SignedLogs& logs_;
  Kind kind_ = Kind::kNumber;
  TimePart part_ = TimePart::kHour;
  bool named_ = false, logs_number_ = false;
  bool is_plain_ = true;         // The key of a text or an id is its own.
  bool changes_number_ = false;  // Number does something.
};

// What is wrong with a list that has another number of weights than of items.
std::string WeightsError(const ColumnSpec& column, size_t weights, size_t items);

// One for each column of a layout, in its order. Both outlive them.
std::vector<CellConverter> ConvertersOf(const RowLayout& layout, const SignedLogs& logs);

// The crossed columns of a layout.
class Crossings {
 public:
  explicit Crossings(const RowLayout& layout);
  // Fills them in a record of the layout whose other columns are filled.
  void Put(std::byte* record) const;
  bool empty() const { return crossings_.empty(); }

 private:
  struct Crossing {
    std::string_view name;
    uint64_t hash = 0;  // See ColumnSpec.
    uint32_t to = 0;    // Byte offset in the record.
    std::vector<uint32_t> from;
  };
  std::vector<Crossing> crossings_;  // The layout owns the names.
};

}  // namespace dt::worker
