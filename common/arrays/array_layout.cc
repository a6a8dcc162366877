#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/arrays/array_file.h"
#include "common/base/check.h"

namespace dt {
namespace {

// Builds a sequence of little-endian fields.
class Fields {
 public:
  Fields& U16(uint64_t value) { return Put(value, 2); }
  Fields& U32(uint64_t value) { return Put(value, 4); }
  Fields& U64(uint64_t value) { return Put(value, 8); }
  Fields& Text(std::string_view text) {
    out_ += text;
    return *this;
  }
  std::string Take() { return std::move(out_); }

 private:
  Fields& Put(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_.push_back(static_cast<char>(value >> (8 * i)));
    return *this;
  }
  std::string out_;
};

constexpr uint64_t kZip64Version = 45;
// The earliest date that zip can store; a constant, so that equal content gives equal bytes.
constexpr uint64_t kFirstOf1980 = 0x0021;
constexpr uint64_t kInExtra = 0xffffffff;  // The real number is in the ZIP64 field.

// The size of a type and its names in the two formats.
struct TypeForm {
  uint64_t bytes;
  const char *numpy, *safetensors;
};
TypeForm FormOf(ArraySpec::Type type) {
  switch (type) {
    case ArraySpec::Type::kF32:
      return {4, "<f4", "F32"};
    case ArraySpec::Type::kU64:
      return {8, "<u8", "U64"};
    case ArraySpec::Type::kU8:
      return {1, "|u1", "U8"};
  }
  DT_UNREACHABLE();
}

std::string MemberName(const ArraySpec& array) { return array.name + ".npy"; }

std::string NpyHeader(const ArraySpec& array) {
  std::string shape;
  for (const uint64_t dim : array.shape) shape += fmt::format("{}, ", dim);
  if (array.shape.size() > 1) shape.resize(shape.size() - 2);
  if (array.shape.size() == 1) shape.resize(shape.size() - 1);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 FormOf(array.type).numpy, shape);
  constexpr size_t kBefore = 10;
  text.append(63 - (kBefore + text.size()) % 64, ' ');
  text += '\n';
  return Fields().Text("\x93NUMPY\x01").Text({"\0", 1}).U16(text.size()).Text(text).Take();
}

uint64_t MemberBytes(const ArraySpec& array) { return NpyHeader(array).size() + array.bytes(); }

}  // namespace

uint64_t ArraySpec::bytes() const {
  uint64_t bytes = FormOf(type).bytes;
  for (const uint64_t dim : shape) bytes *= dim;
  return bytes;
}

namespace {

using Json = nlohmann::ordered_json;

Json ObjectOf(const Metadata& metadata) {
  Json object = Json::object();
  for (const auto& [name, text] : metadata) object[name] = text;
  return object;
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string MetadataJson(const Metadata& metadata) { return Dump(ObjectOf(metadata)); }

ArrayLayout SafetensorsLayout(std::span<const ArraySpec> arrays, const Metadata& metadata) {
  ArrayLayout layout;
  Json header = {{"__metadata__", ObjectOf(metadata)}};
  uint64_t at = 0;
  for (const ArraySpec& array : arrays) {
    header[array.name] = {{"dtype", FormOf(array.type).safetensors},
                          {"shape", array.shape},
                          {"data_offsets", {at, at + array.bytes()}}};
    layout.data_at.push_back(at);
    at += array.bytes();
  }
  std::string text = Dump(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  layout.head = Fields().U64(text.size()).Text(text).Take();
  layout.intro.resize(arrays.size());
  for (uint64_t& place : layout.data_at) place += layout.head.size();
  layout.end = layout.head.size() + at;
  return layout;
}

ArrayLayout NpzLayout(std::span<const ArraySpec> arrays) {
  ArrayLayout layout;
  for (const ArraySpec& array : arrays) {
    layout.intro.push_back(NpzIntro(array, 0));
    layout.data_at.push_back(layout.end + layout.intro.back().size());
    layout.end = layout.data_at.back() + array.bytes();
  }
  return layout;
}

std::string NpzIntro(const ArraySpec& array, uint32_t crc) {
  const std::string name = MemberName(array);
  const uint64_t bytes = MemberBytes(array);
  return Fields()
      .U32(0x04034b50)
      .U16(kZip64Version)
      .U16(0)  // Flags.
      .U16(0)  // Not compressed.
      .U16(0)
      .U16(kFirstOf1980)
      .U32(crc)
      .U32(kInExtra)
      .U32(kInExtra)
      .U16(name.size())
      .U16(20)
      .Text(name)
      .U16(1)  // ZIP64.
      .U16(16)
      .U64(bytes)
      .U64(bytes)
      .Text(NpyHeader(array))
      .Take();
}

std::string NpzEnd(std::span<const ArraySpec> arrays, const ArrayLayout& layout,
                   std::span<const uint32_t> crcs) {
  Fields directory;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const std::string name = MemberName(arrays[i]);
    const uint64_t bytes = MemberBytes(arrays[i]);
    directory.U32(0x02014b50).U16(kZip64Version).U16(kZip64Version).U16(0).U16(0).U16(0);
    directory.U16(kFirstOf1980).U32(crcs[i]).U32(kInExtra).U32(kInExtra).U16(name.size()).U16(28);
    directory.U16(0).U16(0).U16(0).U32(0).U32(kInExtra).Text(name);
    directory.U16(1).U16(24).U64(bytes).U64(bytes);
    directory.U64(layout.data_at[i] - layout.intro[i].size());
  }
  const std::string list = directory.Take();
  Fields end;
  end.Text(list);
  end.U32(0x06064b50).U64(44).U16(kZip64Version).U16(kZip64Version).U32(0).U32(0);
  end.U64(arrays.size()).U64(arrays.size()).U64(list.size()).U64(layout.end);
  end.U32(0x07064b50).U32(0).U64(layout.end + list.size()).U32(1);
  end.U32(0x06054b50).U16(0).U16(0).U16(0xffff).U16(0xffff).U32(kInExtra).U32(kInExtra).U16(0);
  return end.Take();
}

}  // namespace dt
