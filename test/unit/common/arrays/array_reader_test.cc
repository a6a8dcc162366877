// Goal: ArrayReader reads what ArrayFile and numpy write, and a damaged file is an error. Method:
// files of ArrayFile, cut short and changed at every byte; a file as numpy writes it, byte by byte.
#include "common/arrays/array_reader.h"

#include <fstream>
#include <numeric>

#include <gtest/gtest.h>

#include "common/arrays/array_file.h"
#include "test/support/scratch_folder.h"

namespace dt {
namespace {

const std::vector<ArraySpec> kTwoArrays = {{"keys", ArraySpec::Type::kU64, {3}},
                                           {"values", ArraySpec::Type::kF32, {3, 2}},
                                           {"none", ArraySpec::Type::kF32, {0, 2}},
                                           {"scalar", ArraySpec::Type::kF32, {}}};
const std::vector<Key> kKeys = {7, ~Key{0}, 1};
const std::vector<float> kValues = {0.5f, -1, 2, 3, -4, 1e-30f};

class ReadArrays : public ::testing::Test {
 protected:
  std::string Write(ArrayFormat format) {
    const std::string path = folder_ / "arrays";
    auto file = ArrayFile::Create(path, format, kTwoArrays, {{"about", "test"}});
    EXPECT_TRUE((*file)->Append(0, std::as_bytes(std::span(kKeys))).ok());
    EXPECT_TRUE((*file)->Append(1, std::as_bytes(std::span(kValues))).ok());
    EXPECT_TRUE((*file)->Append(3, std::as_bytes(std::span(kValues)).first(4)).ok());
    EXPECT_TRUE((*file)->Finish().ok());
    return path;
  }
  std::string Write(const std::string& content) {
    const std::string path = folder_ / "other";
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  const test::ScratchFolder folder_;
};

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_F(ReadArrays, BothFormatsAreReadAsTheyWereWritten) {
  for (const ArrayFormat format : {ArrayFormat::kSafetensors, ArrayFormat::kNpz}) {
    const auto reader = ArrayReader::Open(Write(format));
    ASSERT_TRUE(reader.ok()) << reader.status();
    std::vector<Key> keys(3);
    ASSERT_TRUE(reader->ReadKeys(*reader->Find("keys"), 0, keys).ok());
    EXPECT_EQ(keys, kKeys);
    std::vector<float> some(4);
    ASSERT_TRUE(reader->ReadFloats(*reader->Find("values"), 2, some).ok());
    EXPECT_EQ(some, std::vector<float>(kValues.begin() + 2, kValues.end()));
    EXPECT_EQ(reader->Find("values")->shape, (std::vector<uint64_t>{3, 2}));
    EXPECT_EQ(reader->Find("none")->elements(), 0u);
    EXPECT_EQ(reader->Find("scalar")->elements(), 1u);
    EXPECT_EQ(reader->Find("other"), nullptr);
    some.resize(3);
    EXPECT_EQ(reader->ReadFloats(*reader->Find("keys"), 0, some).code(), StatusCode::kOutOfRange);
    EXPECT_EQ(reader->ReadKeys(*reader->Find("values"), 0, keys).code(), StatusCode::kOutOfRange);
  }
}

// Nothing reads beyond the file, whatever it says.
TEST_F(ReadArrays, ADamagedFileIsAnErrorOrHasOtherArrays) {
  for (const ArrayFormat format : {ArrayFormat::kSafetensors, ArrayFormat::kNpz}) {
    const std::string whole = ContentOf(Write(format));
    for (size_t length = 0; length < whole.size(); ++length) {
      EXPECT_FALSE(ArrayReader::Open(Write(whole.substr(0, length))).ok()) << length;
    }
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 0x55);
      const auto reader = ArrayReader::Open(Write(changed));
      if (!reader.ok()) continue;
      for (const ArrayReader::Array& array : reader->arrays()) {
        std::vector<float> floats(array.type == ArrayReader::Type::kF32 ? array.elements() : 0);
        if (floats.empty()) continue;
        EXPECT_TRUE(reader->ReadFloats(array, 0, floats).ok());
      }
    }
  }
}

std::string Bytes(std::initializer_list<int> bytes) { return {bytes.begin(), bytes.end()}; }

std::string Npy(std::string_view dictionary, std::string_view data) {
  std::string header(dictionary);
  header.append(117 - header.size(), ' ') += '\n';
  return Bytes({0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0}) + header + std::string(data);
}

std::string U16(size_t n) { return Bytes({static_cast<int>(n & 255), static_cast<int>(n >> 8)}); }

// An archive as numpy.savez writes it, but with sizes of 4 bytes; its checksums are not read.
std::string Npz(const std::string& name, const std::string& npy, int method) {
  const std::string zeros(4, '\0'), size = U16(npy.size()) + U16(0), length = U16(name.size());
  const std::string form = U16(20) + U16(0) + U16(static_cast<size_t>(method)) + zeros + zeros;
  const std::string local = "PK\3\4" + form + size + size + length + U16(0) + name + npy;
  const std::string entry = "PK\1\2" + U16(20) + form + size + size + length + U16(0) + U16(0) +
                            U16(0) + U16(0) + zeros + zeros + name;
  return local + entry + "PK\5\6" + zeros + U16(1) + U16(1) + U16(entry.size()) + U16(0) +
         U16(local.size()) + U16(0) + U16(0);
}

TEST_F(ReadArrays, TypesOfNumpyAreConverted) {
  const std::string two = "'fortran_order': False, 'shape': (2,), }";
  const std::string doubles(
      "\0\0\0\0\0\0\xf0\x3f"
      "\0\0\0\0\0\0\0\xc0",
      16);
  auto reader = ArrayReader::Open(Write(Npz("a.npy", Npy("{'descr': '<f8', " + two, doubles), 0)));
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<float> floats(2);
  ASSERT_TRUE(reader->ReadFloats(*reader->Find("a"), 0, floats).ok());
  EXPECT_EQ(floats, (std::vector<float>{1, -2}));

  const std::string halves("\0\x3c\0\xc0", 4), ints("\7\0\0\0\xff\xff\xff\xff", 8);
  reader = ArrayReader::Open(Write(Npz("a.npy", Npy("{'descr': '<f2', " + two, halves), 0)));
  ASSERT_TRUE(reader->ReadFloats(*reader->Find("a"), 0, floats).ok());
  EXPECT_EQ(floats, (std::vector<float>{1, -2}));

  reader = ArrayReader::Open(Write(Npz("a.npy", Npy("{'descr': '<i4', " + two, ints), 0)));
  std::vector<Key> keys(2);
  EXPECT_EQ(MessageOf(reader->ReadKeys(*reader->Find("a"), 0, keys)), "array a has a negative key");
  ASSERT_TRUE(reader->ReadKeys(*reader->Find("a"), 0, std::span(keys).first(1)).ok());
  EXPECT_EQ(keys[0], 7u);
}

TEST_F(ReadArrays, WhatCannotBeReadSaysWhatWouldHelp) {
  const std::string columns = "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }";
  const auto in_columns = ArrayReader::Open(Write(Npz("a.npy", Npy(columns, "abcd"), 0)));
  EXPECT_EQ(ProblemOf(in_columns.status()).hint, "save numpy.ascontiguousarray of it");
  const auto packed = ArrayReader::Open(Write(Npz("a.npy", "abcd", 8)));
  EXPECT_EQ(ProblemOf(packed.status()).hint,
            "save it with numpy.savez instead of savez_compressed");
  EXPECT_EQ(packed.status().code(), StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace dt
