#include "worker/memory/dense_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "common/base/hash.h"
#include "common/storage/files.h"
#include "worker/memory/parameters.h"

namespace dt::worker {
namespace {

constexpr std::string_view kMagic = "DTDENSE1";
constexpr std::string_view kName = "dense.bin";
constexpr uint64_t kValuesMax = uint64_t{1} << 60;

template <class T>
void Append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
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

std::string TextOf(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Status Differs(const std::string& path, std::string_view how) {
  return WithHint(WithWhere(Invalid("the checkpoint is of another model: {}", how), path),
                  "resume with the job file it was written with, or start anew");
}

Result<DenseArray> ReadArray(FieldReader& in) {
  DenseArray array;
  DT_TRY(const uint32_t name_bytes, in.Read<uint32_t>());
  DT_TRY(array.name, in.Bytes(name_bytes));
  DT_TRY(const uint32_t dims, in.Read<uint32_t>());
  if (dims > 16) return in.Damaged("an array has too many dimensions");
  array.shape.resize(dims);
  uint64_t values = 1;
  for (int64_t& dim : array.shape) {
    DT_TRY(dim, in.Read<int64_t>());
    const bool sane = dim >= 0 && (dim == 0 || values <= kValuesMax / static_cast<uint64_t>(dim));
    if (!sane) return in.Damaged("an array has an impossible shape");
    values *= static_cast<uint64_t>(dim);
  }
  DT_TRY(const std::string_view bytes, in.Bytes(values * sizeof(float)));
  array.values.resize(values);
  if (!bytes.empty()) std::memcpy(array.values.data(), bytes.data(), bytes.size());
  return array;
}

}  // namespace

Result<CheckpointFile> Parameters::Save(const std::string& folder) const {
  std::string content(kMagic);
  content.reserve(bytes() + 4096);
  Append(content, static_cast<uint32_t>(arrays_.size()));
  for (const Array* array : ByName()) {
    Append(content, static_cast<uint32_t>(array->name.size()));
    content += array->name;
    Append(content, static_cast<uint32_t>(array->shape.size()));
    for (const int64_t dim : array->shape) Append(content, dim);
    content.append(reinterpret_cast<const char*>(array->values.data()),
                   array->values.size() * sizeof(float));
  }
  Append(content, HashBytes(BytesOf(content)));
  const std::string path = (std::filesystem::path(folder) / kName).string();
  DT_TRY_STATUS(WriteWholeFile(path, content));
  return CheckpointFile{
      .name = std::string(kName), .bytes = content.size(), .digest = HashBytes(BytesOf(content))};
}

Result<std::vector<DenseArray>> ReadDenseFile(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / kName).string();
  DT_TRY(const std::string content, ReadWholeFile(path));
  FieldReader in(content, path);
  DT_TRY(const std::string_view magic, in.Bytes(kMagic.size()));
  if (magic != kMagic) return in.Damaged("it does not begin as one");
  if (content.size() < kMagic.size() + sizeof(uint64_t)) return in.Damaged("ends too early");
  const std::string_view body =
      std::string_view(content).substr(0, content.size() - sizeof(uint64_t));
  uint64_t digest = 0;
  std::memcpy(&digest, content.data() + body.size(), sizeof(digest));
  if (digest != HashBytes(BytesOf(body)))
    return in.Damaged("its digest does not match its content");
  DT_TRY(const uint32_t count, in.Read<uint32_t>());
  std::vector<DenseArray> arrays;
  for (uint32_t i = 0; i < count; ++i) {
    DT_TRY(DenseArray array, ReadArray(in));
    arrays.push_back(std::move(array));
  }
  DT_TRY_STATUS(in.Bytes(sizeof(uint64_t)).status());
  if (!in.at_end()) return in.Damaged("something follows the last array");
  return arrays;
}

Status Parameters::Load(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / kName).string();
  DT_TRY(const std::vector<DenseArray> saved, ReadDenseFile(folder));
  if (saved.size() != arrays_.size()) {
    return Differs(path,
                   fmt::format("it has {} dense arrays, not {}", saved.size(), arrays_.size()));
  }
  const std::vector<const Array*> own = ByName();
  for (size_t i = 0; i < own.size(); ++i) {
    if (saved[i].name != own[i]->name) {
      return Differs(path,
                     fmt::format("it has {} where this job has {}", saved[i].name, own[i]->name));
    }
    if (saved[i].shape == own[i]->shape) continue;
    return Differs(path, fmt::format("{} has shape {} there and {} here", own[i]->name,
                                     TextOf(saved[i].shape), TextOf(own[i]->shape)));
  }
  for (size_t i = 0; i < own.size(); ++i) {
    // Copied in place: kernels hold no pointer between steps, but views do.
    std::ranges::copy(saved[i].values, arrays_[own[i] - arrays_.data()].values.begin());
  }
  return OkStatus();
}

Status Parameters::LoadWithoutState(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / kName).string();
  DT_TRY(const std::vector<DenseArray> saved, ReadDenseFile(folder));
  std::vector<const DenseArray*> found;  // One per array; null: it is optimizer state.
  for (const Array& own : arrays_) {
    const auto at = std::ranges::find(saved, own.name, &DenseArray::name);
    found.push_back(own.optimizer_state || at == saved.end() ? nullptr : &*at);
    if (own.optimizer_state) continue;
    if (at == saved.end()) return Differs(path, fmt::format("it has no {}", own.name));
    if (at->shape == own.shape) continue;
    return Differs(path, fmt::format("{} has shape {} there and {} here", own.name,
                                     TextOf(at->shape), TextOf(own.shape)));
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] != nullptr) std::ranges::copy(found[i]->values, arrays_[i].values.begin());
  }
  return OkStatus();
}

}  // namespace dt::worker
