#include "common/dense/dense_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "common/base/hash.h"
#include "common/storage/files.h"

namespace dt {
namespace {

constexpr std::string_view kMagic = "DTDENSE2";
constexpr uint64_t kValuesMax = uint64_t{1} << 60;
constexpr uint32_t kFilesMax = 65536;

template <class T>
void Append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string NameOf(uint32_t position) {
  return position == 0 ? "dense.bin" : fmt::format("dense-{}.bin", position);
}

// Reads the file's fields one after the other, and knows the offset for errors.
class FieldReader {
 public:
  FieldReader(std::string_view content, const std::string& path) : content_(content), path_(path) {}

  template <class T>
  Result<T> Read() {
    T value;
    DT_TRY(const std::string_view bytes, Bytes(sizeof(T)));
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  Result<std::string_view> Bytes(size_t count) {
    if (content_.size() - at_ < count) return Damaged("ends too early");
    const std::string_view bytes = content_.substr(at_, count);
    at_ += count;
    return bytes;
  }
  Status Damaged(std::string_view how) const {
    return WithWhere(DataLoss("the file of dense parameters is damaged: {}", how),
                     fmt::format("{}, offset {}", path_, at_));
  }
  bool at_end() const { return at_ == content_.size(); }

 private:
  const std::string_view content_;
  const std::string& path_;
  size_t at_ = 0;
};

Result<DensePart> ReadPart(FieldReader& in) {
  DensePart part;
  DT_TRY(const uint32_t name_bytes, in.Read<uint32_t>());
  DT_TRY(part.name, in.Bytes(name_bytes));
  DT_TRY(const uint32_t dims, in.Read<uint32_t>());
  if (dims > 16) return in.Damaged("an array has too many dimensions");
  for (Shape* const shape : {&part.whole, &part.box.first, &part.box.length}) {
    shape->resize(dims);
    for (int64_t& dim : *shape) {
      DT_TRY(dim, in.Read<int64_t>());
    }
  }
  uint64_t values = 1, whole = 1;
  for (uint32_t d = 0; d < dims; ++d) {
    const int64_t n = part.whole[d], first = part.box.first[d], length = part.box.length[d];
    const bool inside = n >= 0 && first >= 0 && length >= 0 && first <= n && length <= n - first;
    const bool sane = inside && (n == 0 || whole <= kValuesMax / static_cast<uint64_t>(n));
    if (!sane) return in.Damaged("an array has an impossible shape");
    whole *= static_cast<uint64_t>(n);
    values *= static_cast<uint64_t>(length);
  }
  DT_TRY(const std::string_view bytes, in.Bytes(values * sizeof(float)));
  part.values = BytesOf(bytes);
  return part;
}

// Takes the parts of one file; returns how many files there are.
Result<uint32_t> ReadFile(const std::string& path,
                          const std::function<Status(const DensePart&)>& take) {
  DT_TRY(const std::string content, ReadWholeFile(path));
  FieldReader in(content, path);
  DT_TRY(const std::string_view magic, in.Bytes(kMagic.size()));
  if (magic.starts_with("DTDENSE") && magic != kMagic) {
    return WithHint(WithWhere(Invalid("the file of dense parameters has another format, that of "
                                      "another version of this program"),
                              path),
                    "use the checkpoint with the program that wrote it, or start anew");
  }
  if (magic != kMagic) return in.Damaged("it does not begin as one");
  if (content.size() < kMagic.size() + sizeof(uint64_t)) return in.Damaged("ends too early");
  const std::string_view body =
      std::string_view(content).substr(0, content.size() - sizeof(uint64_t));
  uint64_t digest = 0;
  std::memcpy(&digest, content.data() + body.size(), sizeof(digest));
  if (digest != HashBytes(BytesOf(body)))
    return in.Damaged("its digest does not match its content");
  DT_TRY(const uint32_t files, in.Read<uint32_t>());
  if (files == 0 || files > kFilesMax) return in.Damaged("it names an impossible number of files");
  DT_TRY(const uint32_t parts, in.Read<uint32_t>());
  for (uint32_t i = 0; i < parts; ++i) {
    DT_TRY(const DensePart part, ReadPart(in));
    DT_TRY_STATUS(take(part));
  }
  DT_TRY_STATUS(in.Bytes(sizeof(uint64_t)).status());
  if (!in.at_end()) return in.Damaged("something follows the last array");
  return files;
}

}  // namespace

std::string DensePath(const std::string& folder, uint32_t position) {
  return (std::filesystem::path(folder) / NameOf(position)).string();
}

size_t CopyCommon(const DensePart& part, const DenseBox& to, std::span<float> values) {
  DenseBox common;
  Shape in_part, in_box;  // Where the common box begins in both.
  for (size_t d = 0; d < part.whole.size(); ++d) {
    const int64_t first = std::max(part.box.first[d], to.first[d]);
    const int64_t end =
        std::min(part.box.first[d] + part.box.length[d], to.first[d] + to.length[d]);
    if (first >= end) return 0;
    common.length.push_back(end - first);
    in_part.push_back(first - part.box.first[d]);
    in_box.push_back(first - to.first[d]);
  }
  std::vector<int64_t> from;
  ForEachRow({in_part, common.length}, part.box.length,
             [&](int64_t first, int64_t) { from.push_back(first); });
  size_t row = 0;
  const auto bytes = [](int64_t n) { return static_cast<size_t>(n) * sizeof(float); };
  ForEachRow({in_box, common.length}, to.length, [&](int64_t first, int64_t length) {
    std::memcpy(values.data() + first, part.values.data() + bytes(from[row++]), bytes(length));
  });
  return static_cast<size_t>(ElementCount(common.length));
}

DenseWriter::DenseWriter(uint32_t files, size_t parts) : content_(kMagic) {
  Append(content_, files);
  Append(content_, static_cast<uint32_t>(parts));
}

void DenseWriter::Add(const DensePart& part) {
  Append(content_, static_cast<uint32_t>(part.name.size()));
  content_ += part.name;
  Append(content_, static_cast<uint32_t>(part.whole.size()));
  for (const Shape* const shape : {&part.whole, &part.box.first, &part.box.length}) {
    for (const int64_t dim : *shape) Append(content_, dim);
  }
  content_.append(reinterpret_cast<const char*>(part.values.data()), part.values.size());
}

Result<CheckpointFile> DenseWriter::Write(const std::string& folder, uint32_t position) {
  Append(content_, HashBytes(BytesOf(content_)));
  DT_TRY_STATUS(WriteWholeFile(DensePath(folder, position), content_));
  return CheckpointFile{
      .name = NameOf(position), .bytes = content_.size(), .digest = HashBytes(BytesOf(content_))};
}

Status ReadDenseParts(const std::string& folder,
                      const std::function<Status(const DensePart&)>& take) {
  DT_TRY(const uint32_t files, ReadFile(DensePath(folder, 0), take));
  for (uint32_t f = 1; f < files; ++f) {
    DT_TRY_STATUS(ReadFile(DensePath(folder, f), take).status());
  }
  return OkStatus();
}

const ArrayReader::Array* DenseArrayIn(const ArrayReader& file, const std::string& name) {
  const ArrayReader::Array* const exported = file.Find("dense." + name);
  return exported != nullptr ? exported : file.Find(name);
}

Result<std::vector<DenseArray>> ReadDenseArrays(const std::string& folder) {
  std::map<std::string, DenseArray, std::less<>> arrays;
  std::map<std::string, size_t, std::less<>> found;
  DT_TRY_STATUS(ReadDenseParts(folder, [&](const DensePart& part) -> Status {
    DenseArray& array = arrays[std::string(part.name)];
    if (array.name.empty()) {
      array.name = part.name;
      array.shape = part.whole;
      array.values.resize(static_cast<size_t>(ElementCount(part.whole)));
    }
    if (array.shape != part.whole) {
      return WithWhere(DataLoss("the files of dense parameters disagree about {}", array.name),
                       folder);
    }
    const DenseBox all{Shape(array.shape.size(), 0), array.shape};
    found[array.name] += CopyCommon(part, all, array.values);
    return OkStatus();
  }));
  std::vector<DenseArray> sorted;
  for (auto& [name, array] : arrays) {
    if (found[name] != array.values.size()) {
      return WithWhere(DataLoss("the files of dense parameters lack elements of {}", name), folder);
    }
    sorted.push_back(std::move(array));
  }
  return sorted;
}

}  // namespace dt
