#include "common/arrays/array_forms.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "common/base/text.h"
#include "common/storage/json_file.h"

namespace dt {
namespace {

using Array = ArrayReader::Array;
using Type = ArrayReader::Type;

struct TypeName {
  std::string_view safetensors, numpy;
  Type type;
};
constexpr TypeName kTypeNames[] = {{"F64", "<f8", Type::kF64}, {"F32", "<f4", Type::kF32},
                                   {"F16", "<f2", Type::kF16}, {"BF16", "", Type::kBf16},
                                   {"I64", "<i8", Type::kI64}, {"I32", "<i4", Type::kI32},
                                   {"U64", "<u8", Type::kU64}, {"U32", "<u4", Type::kU32}};

Type TypeOf(std::string_view name, std::string_view TypeName::*called) {
  const auto at = std::ranges::find(kTypeNames, name, called);
  return at == std::end(kTypeNames) || name.empty() ? Type::kOther : at->type;
}

std::string_view TextIn(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Part of the bytes; nothing if they end before.
std::optional<std::span<const std::byte>> Part(std::span<const std::byte> bytes, uint64_t at,
                                               uint64_t count) {
  if (at > bytes.size() || count > bytes.size() - at) return std::nullopt;
  return bytes.subspan(at, count);
}

// A little-endian number of `size` bytes; 0 if the bytes end before.
uint64_t NumberIn(std::span<const std::byte> bytes, uint64_t at, size_t size) {
  uint64_t value = 0;
  const auto part = Part(bytes, at, size);
  if (part.has_value()) std::memcpy(&value, part->data(), size);
  return value;
}

Status CutShort() { return Malformed("it ends too early"); }

}  // namespace

// ------------------------------------------------------------ safetensors

namespace {

Result<Array> ArrayOf(const std::string& name, const Json& json, std::span<const std::byte> data) {
  Array array{.name = name, .type_name = dt::TextOf(json, "dtype")};
  array.type = TypeOf(array.type_name, &TypeName::safetensors);
  std::vector<uint64_t> offsets;
  for (const Json& dim : MemberOf(json, "shape")) {
    if (!dim.is_number_unsigned()) return Malformed("array {} has no valid shape", name);
    array.shape.push_back(dim.get<uint64_t>());
  }
  for (const Json& offset : MemberOf(json, "data_offsets")) {
    if (offset.is_number_unsigned()) offsets.push_back(offset.get<uint64_t>());
  }
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    return Malformed("array {} has no valid offsets", name);
  }
  const auto part = Part(data, offsets[0], offsets[1] - offsets[0]);
  if (!part.has_value()) return CutShort();
  array.data = *part;
  if (!Fits(array)) return Malformed("array {} does not have the bytes of its shape", name);
  return array;
}

}  // namespace

Result<std::vector<Array>> ReadSafetensors(std::span<const std::byte> bytes) {
  constexpr uint64_t kLengthBytes = 8;
  const uint64_t length = NumberIn(bytes, 0, kLengthBytes);
  const auto head = Part(bytes, kLengthBytes, length);
  if (bytes.size() < kLengthBytes || !head.has_value() || head->empty() ||
      head->front() != std::byte{'{'}) {
    return Malformed("it is neither a safetensors file nor an npz file");
  }
  DT_TRY(const Json header, ParseJson(TextIn(*head), "its header"));
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + length);
  std::vector<Array> arrays;
  for (const auto& [name, json] : header.items()) {
    if (name == "__metadata__") continue;
    DT_TRY(Array array, ArrayOf(name, json, data));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

// ------------------------------------------------------------ npz: zip and npy

namespace {

constexpr uint64_t kEndSignature = 0x06054b50, kEnd64Signature = 0x06064b50;
constexpr uint64_t kEnd64LocatorSignature = 0x07064b50;
constexpr uint64_t kEntrySignature = 0x02014b50, kLocalSignature = 0x04034b50;
constexpr uint64_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30, kLocatorBytes = 20;
constexpr uint64_t kSizeInExtra = 0xffffffff, kExtra64 = 1;

struct Directory {
  uint64_t at = 0, entries = 0;
};

// The directory is at the archive's end, after which there may be a comment.
Result<Directory> FindDirectory(std::span<const std::byte> zip) {
  constexpr uint64_t kCommentMax = 0xffff;
  if (zip.size() < kEndBytes) return CutShort();
  const uint64_t last = zip.size() - kEndBytes;
  for (uint64_t back = 0; back <= std::min(last, kCommentMax); ++back) {
    const uint64_t end = last - back;
    if (NumberIn(zip, end, 4) != kEndSignature) continue;
    Directory directory{NumberIn(zip, end + 16, 4), NumberIn(zip, end + 10, 2)};
    const uint64_t locator = end >= kLocatorBytes ? end - kLocatorBytes : 0;
    if (NumberIn(zip, locator, 4) != kEnd64LocatorSignature) return directory;
    const uint64_t end64 = NumberIn(zip, locator + 8, 8);
    if (NumberIn(zip, end64, 4) != kEnd64Signature) return CutShort();
    return Directory{NumberIn(zip, end64 + 48, 8), NumberIn(zip, end64 + 32, 8)};
  }
  return CutShort();
}

struct Member {
  std::string name;
  uint64_t method = 0, bytes = 0, local_at = 0;
};

// Sizes and offsets of 4 GiB and more are in an extra field, in this order, as far as they do not
// fit.
void TakeExtra(std::span<const std::byte> extra, uint64_t packed, Member& member) {
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    const uint64_t id = NumberIn(extra, at, 2), length = NumberIn(extra, at + 2, 2);
    uint64_t field = at + 4;
    at = field + length;
    if (id != kExtra64) continue;
    if (member.bytes == kSizeInExtra) {
      member.bytes = NumberIn(extra, field, 8);
      field += 8;
    }
    if (packed == kSizeInExtra) field += 8;
    if (member.local_at == kSizeInExtra) member.local_at = NumberIn(extra, field, 8);
  }
}

// Reads an entry of the directory and moves `at` behind it.
Result<Member> ReadEntry(std::span<const std::byte> zip, uint64_t& at) {
  if (NumberIn(zip, at, 4) != kEntrySignature) return CutShort();
  const uint64_t name_bytes = NumberIn(zip, at + 28, 2), extra_bytes = NumberIn(zip, at + 30, 2);
  const auto name = Part(zip, at + kEntryBytes, name_bytes);
  const auto extra = Part(zip, at + kEntryBytes + name_bytes, extra_bytes);
  if (!name.has_value() || !extra.has_value()) return CutShort();
  Member member{std::string(TextIn(*name)), NumberIn(zip, at + 10, 2), NumberIn(zip, at + 24, 4),
                NumberIn(zip, at + 42, 4)};
  TakeExtra(*extra, NumberIn(zip, at + 20, 4), member);
  at += kEntryBytes + name_bytes + extra_bytes + NumberIn(zip, at + 32, 2);
  return member;
}

// The value of a key in the header of a .npy, which is a literal of Python: {'descr': '<f4', …}.
std::string_view ValueIn(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return {};
  std::string_view value = header.substr(at + key.size() + 3);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  const size_t end = value.starts_with('(') ? value.find(')') : value.find_first_of(",}");
  return value.substr(0, end);
}

Result<Array> ReadNpy(const std::string& name, std::span<const std::byte> npy) {
  const std::string_view text = TextIn(npy);
  if (!text.starts_with("\x93NUMPY")) return Malformed("array {} does not begin as a .npy", name);
  const bool first_version = NumberIn(npy, 6, 1) == 1;
  const uint64_t begin = first_version ? 10 : 12;
  const uint64_t length = NumberIn(npy, 8, first_version ? 2 : 4);
  const auto header = Part(npy, begin, length);
  if (!header.has_value()) return CutShort();
  std::string_view type = ValueIn(TextIn(*header), "descr");
  if (type.size() >= 2 && type.front() == '\'') type = type.substr(1, type.size() - 2);
  Array array{.name = name, .type = TypeOf(type, &TypeName::numpy), .type_name = std::string(type)};
  std::string_view shape = ValueIn(TextIn(*header), "shape");
  if (!shape.starts_with('(')) return Malformed("array {} has no shape", name);
  for (const std::string_view part : SplitText(shape.substr(1), ',')) {
    uint64_t dim = 0;
    const size_t digit = part.find_first_not_of(' ');
    if (digit == std::string_view::npos) continue;
    for (const char c : part.substr(digit)) {
      if (c < '0' || c > '9' || dim > (uint64_t{1} << 56)) {
        return Malformed("array {} has no valid shape", name);
      }
      dim = dim * 10 + static_cast<uint64_t>(c - '0');
    }
    array.shape.push_back(dim);
  }
  if (ValueIn(TextIn(*header), "fortran_order") == "True" && array.shape.size() > 1) {
    return WithHint(Malformed("array {} is in column order", name),
                    "save numpy.ascontiguousarray of it");
  }
  array.data = npy.subspan(begin + length);
  if (!Fits(array)) return Malformed("array {} does not have the bytes of its shape", name);
  return array;
}

}  // namespace

bool LooksLikeZip(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && TextIn(bytes.first(2)) == "PK";
}

Result<std::vector<Array>> ReadNpz(std::span<const std::byte> zip) {
  constexpr std::string_view kSuffix = ".npy";
  DT_TRY(const Directory directory, FindDirectory(zip));
  std::vector<Array> arrays;
  uint64_t at = directory.at;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    DT_TRY(Member member, ReadEntry(zip, at));
    if (!member.name.ends_with(kSuffix)) continue;
    const std::string name = member.name.substr(0, member.name.size() - kSuffix.size());
    if (member.method != 0) {
      return WithHint(Malformed("array {} is compressed", name),
                      "save it with numpy.savez instead of savez_compressed");
    }
    if (NumberIn(zip, member.local_at, 4) != kLocalSignature) return CutShort();
    const uint64_t data = member.local_at + kLocalBytes + NumberIn(zip, member.local_at + 26, 2) +
                          NumberIn(zip, member.local_at + 28, 2);
    const auto npy = Part(zip, data, member.bytes);
    if (!npy.has_value()) return CutShort();
    DT_TRY(Array array, ReadNpy(name, *npy));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace dt
