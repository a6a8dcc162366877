// Goal: other programs can read the files that ArrayFile writes. Method: an independent reader of
// each format, written from the format's specification; numpy reads the npz file in test/e2e.
#include "common/arrays/array_file.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "test/support/scratch_folder.h"

namespace dt {
namespace {

using Arrays = std::map<std::string, std::string>;  // Maps names to data.

template <class T>
T NumberAt(const std::string& text, size_t at) {
  T value;
  EXPECT_LE(at + sizeof(T), text.size());
  std::memcpy(&value, text.data() + at, sizeof(T));
  return value;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

const std::vector<ArraySpec> kSpecs = {{"table.a.keys", ArraySpec::Type::kU64, {100'000}},
                                       {"table.a.values", ArraySpec::Type::kF32, {100'000, 3}},
                                       {"none", ArraySpec::Type::kF32, {0, 3}},
                                       {"scalar", ArraySpec::Type::kF32, {}}};

// Writes all arrays in parallel, a little of each at a time; returns what was written.
Arrays Write(const std::string& path, ArrayFormat format) {
  auto file = ArrayFile::Create(path, format, kSpecs, {{"about", "test"}, {"model", "{}"}});
  EXPECT_TRUE(file.ok()) << file.status();
  Arrays all;
  for (uint64_t i = 0; i < 100'000; ++i) {
    const float values[3] = {static_cast<float>(i), 0.5f, -static_cast<float>(i)};
    const std::span<const std::byte> key = std::as_bytes(std::span(&i, 1));
    const std::span<const std::byte> row = std::as_bytes(std::span(values));
    EXPECT_TRUE((*file)->Append(0, key).ok() && (*file)->Append(1, row).ok());
    all["table.a.keys"].append(reinterpret_cast<const char*>(key.data()), key.size());
    all["table.a.values"].append(reinterpret_cast<const char*>(row.data()), row.size());
  }
  all["none"] = "";
  all["scalar"] = "abcd";
  EXPECT_TRUE((*file)->Append(3, std::as_bytes(std::span("abcd", 4))).ok());
  EXPECT_FALSE(std::filesystem::exists(path)) << "not before it is whole";
  const Status finished = (*file)->Finish();
  EXPECT_TRUE(finished.ok()) << finished;
  return all;
}

TEST(ArrayFile, Safetensors) {
  const test::ScratchFolder folder;
  const Arrays want = Write(folder / "a.safetensors", ArrayFormat::kSafetensors);
  const std::string text = ReadFile(folder / "a.safetensors");
  const auto header_bytes = NumberAt<uint64_t>(text, 0);
  EXPECT_EQ(header_bytes % 8, 0u);
  const auto header = nlohmann::json::parse(text.substr(8, header_bytes));
  EXPECT_EQ(header.size(), kSpecs.size() + 1);
  EXPECT_EQ(header["__metadata__"]["about"], "test");
  uint64_t at = 0;
  for (const ArraySpec& spec : kSpecs) {
    const auto& its = header[spec.name];
    EXPECT_EQ(its["dtype"], spec.type == ArraySpec::Type::kF32 ? "F32" : "U64");
    EXPECT_EQ(its["shape"], nlohmann::json(spec.shape));
    EXPECT_EQ(its["data_offsets"][0], at) << "without holes";
    at = its["data_offsets"][1];
    const uint64_t begin = its["data_offsets"][0];
    EXPECT_EQ(text.substr(8 + header_bytes + begin, at - begin), want.at(spec.name));
  }
  EXPECT_EQ(text.size(), 8 + header_bytes + at);
}

// Returns a stored member, and checks the fields of both of its zip records. `at` is the offset of
// the central record.
std::string ZipMember(const std::string& zip, size_t at, const std::string& name) {
  EXPECT_EQ(NumberAt<uint32_t>(zip, at), 0x02014b50u);
  EXPECT_EQ(zip.substr(at + 46, name.size()), name);
  const size_t extra = at + 46 + name.size();
  EXPECT_EQ(NumberAt<uint16_t>(zip, extra), 1u);
  const auto bytes = NumberAt<uint64_t>(zip, extra + 4),
             offset = NumberAt<uint64_t>(zip, extra + 20);
  EXPECT_EQ(NumberAt<uint64_t>(zip, extra + 12), bytes);
  EXPECT_EQ(NumberAt<uint32_t>(zip, offset), 0x04034b50u);
  EXPECT_EQ(NumberAt<uint16_t>(zip, offset + 8), 0u) << "stored";
  const size_t data =
      offset + 30 + NumberAt<uint16_t>(zip, offset + 26) + NumberAt<uint16_t>(zip, offset + 28);
  EXPECT_EQ(NumberAt<uint64_t>(zip, data - 16), bytes);
  const std::string member = zip.substr(data, bytes);
  const uint32_t crc = static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(member.data()), member.size()));
  EXPECT_EQ(NumberAt<uint32_t>(zip, at + 16), crc);
  EXPECT_EQ(NumberAt<uint32_t>(zip, offset + 14), crc);
  return member;
}

TEST(ArrayFile, Npz) {
  const test::ScratchFolder folder;
  const Arrays want = Write(folder / "a.npz", ArrayFormat::kNpz);
  const std::string zip = ReadFile(folder / "a.npz");
  const size_t end = zip.size() - 22, locator = end - 20;
  ASSERT_EQ(NumberAt<uint32_t>(zip, end), 0x06054b50u);
  ASSERT_EQ(NumberAt<uint32_t>(zip, locator), 0x07064b50u);
  const auto record = NumberAt<uint64_t>(zip, locator + 8);
  ASSERT_EQ(NumberAt<uint32_t>(zip, record), 0x06064b50u);
  EXPECT_EQ(NumberAt<uint64_t>(zip, record + 32), kSpecs.size() + 1);
  size_t at = NumberAt<uint64_t>(zip, record + 48);
  const std::string shapes[] = {"(100000,)", "(100000, 3)", "(0, 3)", "()"};
  for (size_t i = 0; i < kSpecs.size(); ++i) {
    const std::string name = kSpecs[i].name + ".npy", member = ZipMember(zip, at, name);
    at += 46 + name.size() + 28;
    EXPECT_EQ(member.substr(0, 8), std::string("\x93NUMPY\x01\0", 8));
    const size_t data = 10 + NumberAt<uint16_t>(member, 8);
    EXPECT_EQ(data % 64, 0u);
    EXPECT_NE(member.substr(10, data - 10).find("'shape': " + shapes[i]), std::string::npos)
        << member.substr(10, data - 10);
    EXPECT_EQ(member.substr(data), want.at(kSpecs[i].name));
  }
  const std::string about = ZipMember(zip, at, "metadata.npy");
  EXPECT_NE(about.find("'descr': '|u1'"), std::string::npos);
  EXPECT_TRUE(about.ends_with("\n{\"about\":\"test\",\"model\":\"{}\"}")) << about;
  EXPECT_EQ(at + 46 + std::string("metadata.npy").size() + 28, record);
}

TEST(ArrayFile, NothingIsLeftOfWhatWasNotFinished) {
  const test::ScratchFolder folder;
  { ASSERT_TRUE(ArrayFile::Create(folder / "a.npz", ArrayFormat::kNpz, kSpecs, {}).ok()); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  const auto nowhere = ArrayFile::Create("/proc/nowhere/a.npz", ArrayFormat::kNpz, kSpecs, {});
  EXPECT_FALSE(nowhere.ok());
}

}  // namespace
}  // namespace dt
