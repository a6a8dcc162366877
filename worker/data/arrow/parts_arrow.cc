#include "worker/data/arrow/parts_arrow.h"

#include <algorithm>

namespace dt::worker {
namespace {

constexpr size_t kTextMax = 400;

const uint8_t* ValidBits(const arrow::Array& array) {
  return array.null_count() == 0 ? nullptr : array.null_bitmap_data();
}

// The first number of an array of numbers of `bits` bits each.
const void* Numbers(const arrow::Array& array, int bits) {
  const auto& buffer = array.data()->buffers[1];
  if (buffer == nullptr) return nullptr;
  return buffer->data() + (bits == 1 ? 0 : array.offset() * (bits / 8));
}

template <class TextArray>
void DescribeText(const arrow::Array& array, ArrowColumn& out) {
  const auto& text = static_cast<const TextArray&>(array);
  out.ends = text.raw_value_offsets();
  out.values = text.raw_data();
}

template <class ListArray>
void DescribeList(const arrow::Array& array, ArrowColumn& out, std::deque<ArrowColumn>& more) {
  const auto& list = static_cast<const ListArray&>(array);
  out.ends = list.raw_value_offsets();
  ArrowColumn& items = more.emplace_back();
  DescribeArray(*list.values(), items, more);
  out.items = &items;
}

void DescribeFixedList(const arrow::Array& array, ArrowColumn& out, std::deque<ArrowColumn>& more) {
  const auto& list = static_cast<const arrow::FixedSizeListArray&>(array);
  out.list_size = static_cast<uint32_t>(list.list_type()->list_size());
  ArrowColumn& items = more.emplace_back();
  // The slice only moves the start, which a column describes by itself; the buffers stay.
  DescribeArray(*list.values()->Slice(list.value_offset(0)), items, more);
  out.items = &items;
}

void DescribeDictionary(const arrow::Array& array, ArrowColumn& out,
                        std::deque<ArrowColumn>& more) {
  const auto& words = static_cast<const arrow::DictionaryArray&>(array);
  const arrow::DataType& index = *words.indices()->type();
  out.index = ArrowTypeOf(index);
  out.values = Numbers(*words.indices(), index.bit_width());
  ArrowColumn& items = more.emplace_back();
  DescribeArray(*words.dictionary(), items, more);
  out.items = &items;
}

ArrowType TimeOf(arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return ArrowType::kTimeS;
    case arrow::TimeUnit::MILLI:
      return ArrowType::kTimeMs;
    case arrow::TimeUnit::MICRO:
      return ArrowType::kTimeUs;
    case arrow::TimeUnit::NANO:
      return ArrowType::kTimeNs;
  }
  return ArrowType::kOther;
}

}  // namespace

ArrowError MakeArrowError(ArrowCode code, const std::string& text) {
  static thread_local std::string kept;
  kept = text.substr(0, std::min(text.find('\n'), kTextMax));
  while (!kept.empty() && (kept.back() == '.' || kept.back() == ' ')) kept.pop_back();
  return {code, kept.c_str()};
}

ArrowError ToArrowError(const arrow::Status& status, ArrowCode otherwise) {
  if (status.ok()) return {};
  if (status.IsOutOfMemory()) return MakeArrowError(ArrowCode::kUnavailable, status.message());
  return MakeArrowError(otherwise, status.message());
}

const arrow::DataType& StoredType(const arrow::DataType& type) {
  if (type.id() != arrow::Type::EXTENSION) return type;
  return *static_cast<const arrow::ExtensionType&>(type).storage_type();
}

ArrowType ArrowTypeOf(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::BOOL:
      return ArrowType::kBool;
    case arrow::Type::INT8:
      return ArrowType::kI8;
    case arrow::Type::INT16:
      return ArrowType::kI16;
    case arrow::Type::INT32:
      return ArrowType::kI32;
    case arrow::Type::INT64:
      return ArrowType::kI64;
    case arrow::Type::UINT8:
      return ArrowType::kU8;
    case arrow::Type::UINT16:
      return ArrowType::kU16;
    case arrow::Type::UINT32:
      return ArrowType::kU32;
    case arrow::Type::UINT64:
      return ArrowType::kU64;
    case arrow::Type::HALF_FLOAT:
      return ArrowType::kF16;
    case arrow::Type::FLOAT:
      return ArrowType::kF32;
    case arrow::Type::DOUBLE:
      return ArrowType::kF64;
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return ArrowType::kText;
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return ArrowType::kLargeText;
    case arrow::Type::DICTIONARY:
      return ArrowType::kDictionary;
    case arrow::Type::DATE32:
      return ArrowType::kDays;
    case arrow::Type::DATE64:
      return ArrowType::kDateMs;
    case arrow::Type::TIMESTAMP:
      return TimeOf(static_cast<const arrow::TimestampType&>(type).unit());
    case arrow::Type::LIST:
      return ArrowType::kList;
    case arrow::Type::LARGE_LIST:
      return ArrowType::kLargeList;
    case arrow::Type::FIXED_SIZE_LIST:
      return ArrowType::kFixedList;
    default:
      return ArrowType::kOther;
  }
}

void DescribeArray(const arrow::Array& array, ArrowColumn& out, std::deque<ArrowColumn>& more) {
  if (array.type_id() == arrow::Type::EXTENSION) {
    return DescribeArray(*static_cast<const arrow::ExtensionArray&>(array).storage(), out, more);
  }
  out.type = ArrowTypeOf(*array.type());
  out.length = static_cast<uint64_t>(array.length());
  out.valid = ValidBits(array);
  out.bits_at = static_cast<uint64_t>(array.offset());
  switch (out.type) {
    case ArrowType::kOther:
      return;
    case ArrowType::kText:
      return DescribeText<arrow::BinaryArray>(array, out);
    case ArrowType::kLargeText:
      return DescribeText<arrow::LargeBinaryArray>(array, out);
    case ArrowType::kDictionary:
      return DescribeDictionary(array, out, more);
    case ArrowType::kList:
      return DescribeList<arrow::ListArray>(array, out, more);
    case ArrowType::kLargeList:
      return DescribeList<arrow::LargeListArray>(array, out, more);
    case ArrowType::kFixedList:
      return DescribeFixedList(array, out, more);
    default:
      out.values = Numbers(array, array.type()->bit_width());
  }
}

}  // namespace dt::worker

// The entry point.
extern "C" __attribute__((visibility("default"))) bool DtFillArrowTable(
    uint32_t version, dt::worker::ArrowTable* table) {
  if (version != dt::worker::kArrowTableVersion) return false;
  *table = {};
  table->version = version;
  dt::worker::FillParquet(*table);
  dt::worker::FillFiles(*table);
  return true;
}
