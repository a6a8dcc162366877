// The interface of libdovetail_arrow.so: one C function that fills a table of functions, which read
// Parquet files and the files of remote file systems. Program and library are both compiled with
// this file; the version detects a library of another build. Plain data only.
//
// All functions may be called on any thread, unless noted. No exception leaves the library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dt::worker {

inline constexpr uint32_t kArrowTableVersion = 2;
inline constexpr const char* kArrowTableSymbol = "DtFillArrowTable";

enum class ArrowCode : uint8_t { kOk, kNotFound, kMalformed, kUnavailable, kTimeout };

// `text` is a sentence in thread-local memory, valid until the thread's next call.
struct ArrowError {
  ArrowCode code = ArrowCode::kOk;
  const char* text = "";
};

// ------------------------------------------------------------------ columns of values

enum class ArrowType : uint8_t {
  kBool,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kF16,
  kF32,
  kF64,
  kText,
  kLargeText,  // Text whose ends are 64-bit numbers.
  kDictionary,
  kDays,    // Since 1970, 32 bits.
  kDateMs,  // Milliseconds since 1970, 64 bits, as the following.
  kTimeS,   // Seconds.
  kTimeMs,
  kTimeUs,
  kTimeNs,
  kList,
  kLargeList,  // Lists whose ends are 64-bit numbers.
  kFixedList,  // Lists of `list_size` items.
  kOther,      // A type that the program cannot read; such columns have no values.
};

// The values of some rows, or the items of their lists.
struct ArrowColumn {
  ArrowType type = ArrowType::kOther;
  ArrowType index = ArrowType::kOther;  // kDictionary: the integer type of `values`.
  uint32_t list_size = 0;               // kFixedList.
  uint64_t length = 0;
  // Bit bits_at + i is set if value i is not null; nullptr: no value is null.
  const uint8_t* valid = nullptr;
  uint64_t bits_at = 0;
  // Numbers [length]; kBool: a bit for each value, from bit bits_at; texts: their bytes;
  // kDictionary: positions in `items`.
  const void* values = nullptr;
  // Texts and lists, except kFixedList: where each ends and the next begins, i32 or i64
  // [length + 1].
  const void* ends = nullptr;
  // The items of all lists, one after the other, or the values of the dictionary.
  const ArrowColumn* items = nullptr;
};

struct ArrowBatch {
  uint64_t rows = 0;
  const ArrowColumn* columns = nullptr;  // In the order of ArrowSelection::fields.
};

// ------------------------------------------------------------------ Parquet

// The bytes of a file, which the program implements.
struct ArrowInput {
  void* context = nullptr;
  // Fills `out` with the bytes from position `at`. Returns false on failure, of which the program
  // knows the reason. Any thread, also several at once.
  bool (*read)(void* context, uint64_t at, uint64_t bytes, void* out) = nullptr;
  // Called once, on any thread, after the last read. Reads ahead may still run when the file is
  // closed.
  void (*release)(void* context) = nullptr;
  uint64_t size = 0;
  bool is_remote = false;  // A request takes milliseconds: few large ones are better.
};

// A column of the file.
struct ArrowField {
  const char* name = "";
  const char* type_text = "";          // The type in words.
  ArrowType type = ArrowType::kOther;  // Of its values, or of the items of its lists.
  bool is_list = false;
  uint32_t list_size = 0;  // 0: the lists vary in length.
};

// Columns of consecutive row groups.
struct ArrowSelection {
  const uint32_t* fields = nullptr;  // Numbers of fields of the file.
  size_t field_count = 0;
  uint32_t first_group = 0;
  uint32_t group_count = 0;
  // Rows of a batch. A batch has fewer at the end, and where a dictionary changes.
  uint64_t batch_rows = 0;
  // Columns are decoded in parallel, on the library's threads, and pages are read one by one, so
  // that memory is bounded however large the row groups are.
  bool is_large = false;
};

struct ArrowParquet;  // An open file, of which the description has been read. Immutable.
struct ArrowRows;     // A pass over the rows of some row groups. One thread at a time.

// ------------------------------------------------------------------ files

struct ArrowFileInfo {
  uint64_t size = 0;
  int64_t modified_ns = 0;  // Since 1970; 0: unknown.
};

struct ArrowFile;  // An open remote file.

struct ArrowTable {
  uint32_t version = 0;

  // `input` is copied, and released on failure as well.
  ArrowError (*open_parquet)(const ArrowInput& input, ArrowParquet** out) = nullptr;
  void (*close_parquet)(ArrowParquet* file) = nullptr;
  // The file owns the fields.
  const ArrowField* (*fields)(const ArrowParquet* file, size_t* count) = nullptr;
  uint32_t (*group_count)(const ArrowParquet* file) = nullptr;
  uint64_t (*group_rows)(const ArrowParquet* file, uint32_t group) = nullptr;
  // What the selected columns take in memory once decoded, as far as the file tells it.
  uint64_t (*decoded_bytes)(const ArrowParquet* file, const ArrowSelection& selection) = nullptr;

  ArrowError (*open_rows)(const ArrowParquet* file, const ArrowSelection& selection,
                          ArrowRows** out) = nullptr;
  // *out is nullptr at the end. A batch may be used after its ArrowRows has been closed.
  ArrowError (*next_batch)(ArrowRows* rows, const ArrowBatch** out) = nullptr;
  void (*free_batch)(const ArrowBatch* batch) = nullptr;
  void (*close_rows)(ArrowRows* rows) = nullptr;

  // A `uri` starts with s3://, gs:// or hdfs://. Each call ends within a deadline.
  ArrowError (*describe_file)(const char* uri, ArrowFileInfo* out) = nullptr;
  // Calls `found` for every file below the folder, with its path as in `uri`.
  ArrowError (*list_files)(const char* uri, void* context,
                           void (*found)(void* context, const char* file,
                                         const ArrowFileInfo& info)) = nullptr;
  ArrowError (*open_file)(const char* uri, ArrowFile** out, uint64_t* size) = nullptr;
  // Also on several threads at once. *got is smaller than `bytes` only at the end of the file.
  ArrowError (*read_file)(ArrowFile* file, uint64_t at, uint64_t bytes, void* out,
                          uint64_t* got) = nullptr;
  void (*close_file)(ArrowFile* file) = nullptr;
  // Ends all use of remote files: the objects of network libraries must go before the process
  // destroys its static ones. Returns false if a call that was given up still runs, and uses them.
  bool (*close_file_systems)() = nullptr;
};

// The type of the library's only entry point. Returns false if the library was built for another
// version of the table.
using FillArrowTable = bool (*)(uint32_t version, ArrowTable* table);

}  // namespace dt::worker
