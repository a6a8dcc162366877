#include "worker/data/cache_meta.h"

#include <bit>
#include <cstring>

#include "common/base/hash.h"

namespace dt::worker {
namespace {

constexpr uint64_t kRecordBytesMax = 1 << 30;

class Writer {
 public:
  void U64(uint64_t value) { out_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void Text(std::string_view text) {
    U64(text.size());
    out_ += text;
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// After the first short read it returns zeros, and ok() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  uint64_t U64() {
    uint64_t value = 0;
    const std::string_view bytes = Take(sizeof value);
    if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  // A number that is at most `most`.
  uint64_t UpTo(uint64_t most) {
    const uint64_t value = U64();
    if (value > most) ok_ = false;
    return ok_ ? value : 0;
  }
  std::string Text() { return std::string(Take(U64())); }
  // The number of items that take at least `bytes_each` bytes each.
  uint64_t Count(uint64_t bytes_each) {
    const uint64_t count = U64();
    if (count > left_.size() / bytes_each) ok_ = false;
    return ok_ ? count : 0;
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && left_.empty(); }

 private:
  std::string_view Take(uint64_t bytes) {
    if (bytes > left_.size()) ok_ = false;
    if (!ok_) return {};
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }
  std::string_view left_;
  bool ok_ = true;
};

void PutFloat(Writer& out, float value) { out.U64(std::bit_cast<uint32_t>(value)); }
void PutFloats(Writer& out, std::span<const float> values) {
  out.U64(values.size());
  for (const float value : values) PutFloat(out, value);
}

float GetFloat(Reader& in) {
  return std::bit_cast<float>(static_cast<uint32_t>(in.UpTo(~uint32_t{0})));
}
std::vector<float> GetFloats(Reader& in) {
  std::vector<float> values(in.Count(8));
  for (float& value : values) value = GetFloat(in);
  return values;
}

void PutColumn(Writer& out, const ColumnSpec& column) {
  out.Text(column.name);
  out.U64(static_cast<uint64_t>(column.type));
  out.U64(static_cast<uint64_t>(column.role));
  out.Text(column.separator);
  out.U64(column.length);
  out.U64(column.max_len);
  PutFloat(out, column.fill);
  out.U64(column.weighted ? 1 : 0);
  out.Text(column.transform);
  out.U64(column.of.size());
  for (const std::string& name : column.of) out.Text(name);
  out.Text(column.from);
  out.U64(column.hash);
  out.Text(column.weights);
  PutFloats(out, column.clip);
  out.U64(column.standardise ? 1 : 0);
  PutFloat(out, column.mean);
  PutFloat(out, column.deviation);
  out.U64(column.quantiles);
  PutFloats(out, column.edges);
}

// False for values that no column can have.
bool GetColumn(Reader& in, ColumnSpec& column) {
  column.name = in.Text();
  const uint64_t type = in.U64(), role = in.U64();
  column.separator = in.Text();
  const uint64_t length = in.U64(), max_len = in.U64();
  column.fill = GetFloat(in);
  const uint64_t weighted = in.U64();
  column.transform = in.Text();
  column.of.resize(in.Count(8));
  for (std::string& name : column.of) name = in.Text();
  column.from = in.Text();
  column.hash = in.U64();
  column.weights = in.Text();
  column.clip = GetFloats(in);
  column.standardise = in.UpTo(1) == 1;
  column.mean = GetFloat(in);
  column.deviation = GetFloat(in);
  column.quantiles = static_cast<uint32_t>(in.UpTo(~uint32_t{0}));
  column.edges = GetFloats(in);
  if (!in.ok() || type > static_cast<uint64_t>(ColumnType::kStrings) ||
      role > static_cast<uint64_t>(ColumnRole::kWeight) || length > kRecordBytesMax / 16 ||
      max_len > ~uint32_t{0} || weighted > 1) {
    return false;
  }
  column.type = static_cast<ColumnType>(type);
  column.role = static_cast<ColumnRole>(role);
  column.length = static_cast<uint32_t>(length);
  column.max_len = static_cast<uint32_t>(max_len);
  column.weighted = weighted == 1;
  return true;
}

}  // namespace

std::string EncodeColumns(std::span<const ColumnSpec> columns) {
  Writer out;
  out.U64(columns.size());
  for (const ColumnSpec& column : columns) PutColumn(out, column);
  return out.Take();
}

std::string EncodeMeta(const CacheMeta& meta) {
  Writer out;
  out.Text(meta.options);
  out.Text(meta.sources);
  out.Text(EncodeColumns(meta.columns));
  out.U64(meta.rows);
  out.U64(meta.heap_words);
  out.U64(meta.rows_skipped);
  out.Text(meta.first_skipped);
  out.U64(meta.chunk_hashes.size());
  for (const uint64_t hash : meta.chunk_hashes) out.U64(hash);
  out.U64(meta.fingerprint);
  return out.Take();
}

Result<CacheMeta> DecodeMeta(std::string_view bytes) {
  CacheMeta meta;
  Reader in(bytes);
  meta.options = in.Text();
  meta.sources = in.Text();
  const std::string columns = in.Text();
  Reader columns_in(columns);
  meta.columns.resize(columns_in.Count(152));
  uint64_t length = 0;
  for (ColumnSpec& column : meta.columns) {
    if (!GetColumn(columns_in, column)) return DataLoss("its description of columns is damaged");
    length += column.length + 1;
    if (length > kRecordBytesMax / 16) return DataLoss("its description of columns is damaged");
  }
  meta.rows = in.U64();
  meta.heap_words = in.U64();
  meta.rows_skipped = in.U64();
  meta.first_skipped = in.Text();
  meta.chunk_hashes.resize(in.Count(8));
  for (uint64_t& hash : meta.chunk_hashes) hash = in.U64();
  meta.fingerprint = in.U64();
  if (!in.done() || !columns_in.done()) return DataLoss("its description is damaged");
  return meta;
}

uint64_t FingerprintOf(const CacheMeta& meta) {
  Writer out;
  out.Text(EncodeColumns(meta.columns));
  out.U64(meta.rows);
  for (const uint64_t hash : meta.chunk_hashes) out.U64(hash);
  return HashString(out.Take());
}

}  // namespace dt::worker
