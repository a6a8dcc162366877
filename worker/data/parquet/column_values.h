// The values of an Arrow column as the numbers and keys of a column of the data set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/specs/column.h"
#include "worker/data/arrow/arrow_table.h"
#include "worker/data/format/cell_values.h"

namespace dt::worker {

enum class ValueState : uint8_t { kGood, kNull, kBad };

// Values that have been converted, all of them floats or all of them keys. Memory is kept between
// uses.
struct Values {
  std::vector<float> floats;
  std::vector<Key> keys;
  std::vector<ValueState> states;
  bool all_good = true;  // No state is another than kGood.
};

bool IsNull(const ArrowColumn& column, uint64_t index);

// Whether the values of a row are a list: of keys, or a vector of numbers.
bool TakesLists(const ColumnSpec& column);

// What is wrong with the type of a file's column for `column`, as "… found, … expected"; empty:
// nothing.
std::string TypeMismatch(const ColumnSpec& column, const ArrowField& field);

// The same for the column with the weights of a list.
std::string WeightsMismatch(const ColumnSpec& column, const ArrowField& field);

// Converts the values of one column of a batch that are no lists. One thread at a time.
class ColumnValues {
 public:
  // REQUIRES: TypeMismatch has found nothing. All three outlive this.
  ColumnValues(const ColumnSpec& column, const CellConverter& converter, const ArrowColumn& from)
      : column_(column), converter_(converter), from_(from) {}

  // Converts values [begin, begin + count). Nulls are keys and floats of 0, bad values anything.
  void Load(uint64_t begin, size_t count, Values& out);
  // The value as error messages quote it.
  std::string TextOf(uint64_t index) const;

 private:
  void LoadPlain(const ArrowColumn& from, uint64_t begin, size_t count, Values& out) const;
  static void ReadFloats(const ArrowColumn& from, uint64_t begin, size_t count, Values& out);
  void LoadFloats(const ArrowColumn& from, uint64_t begin, size_t count, Values& out) const;
  void LoadBins(const ArrowColumn& from, uint64_t begin, size_t count, Values& out) const;
  void LoadTimes(const ArrowColumn& from, uint64_t begin, size_t count, Values& out) const;
  void LoadIds(const ArrowColumn& from, uint64_t begin, size_t count, Values& out) const;
  void LoadTexts(const ArrowColumn& from, uint64_t begin, size_t count, Values& out) const;
  void LoadFromDictionary(uint64_t begin, size_t count, Values& out);
  uint64_t PositionAt(uint64_t i) const;

  const ColumnSpec& column_;
  const CellConverter& converter_;
  const ArrowColumn& from_;
  // The whole dictionary, once values of it have been loaded.
  Values dictionary_;
  bool has_dictionary_ = false;
};

}  // namespace dt::worker
