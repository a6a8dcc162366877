// "dense.bin", little-endian:
//
//   "DTDENSE1" | u32 arrays | each: u32 name bytes, name, u32 dims, i64 dims…, f32 values… | u64
//   digest
//
// in the order of names; the digest is the XXH3-64 of all before it.
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <fmt/format.h>

#include "common/base/hash.h"
#include "worker/engine/parameters.h"

namespace dt::worker {
namespace {

constexpr std::string_view kMagic = "DTDENSE1";
constexpr std::string_view kName = "dense.bin";

template <class T>
void Append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Writes beside the file, then renames: a reader never sees half of it.
Status WriteWhole(const std::string& path, std::string_view content) {
  const std::string draft = path + ".part";
  const auto failed = [&](std::string_view doing) {
    return WithWhere(Unavailable("{} failed: {}", doing, std::strerror(errno)), path);
  };
  const int file = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return failed("creating the file");
  bool ok = true;
  while (ok && !content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    ok = written > 0;
    if (ok) content.remove_prefix(static_cast<size_t>(written));
  }
  ok = ok && ::fsync(file) == 0;
  const int error = errno;
  ::close(file);
  errno = error;
  if (!ok) return failed("writing the file");
  if (std::rename(draft.c_str(), path.c_str()) != 0) return failed("renaming the finished file");
  return OkStatus();
}

// Reads the file's fields one after the other; remembers where.
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

Status ReadArray(FieldReader& in, const Parameters::Array& array, const std::string& path,
                 std::vector<float>& values) {
  DT_TRY(const uint32_t name_bytes, in.Read<uint32_t>());
  DT_TRY(const std::string_view name, in.Bytes(name_bytes));
  if (name != array.name) {
    return Differs(path, fmt::format("it has {} where this job has {}", name, array.name));
  }
  DT_TRY(const uint32_t dims, in.Read<uint32_t>());
  if (dims > 16) return in.Damaged("an array has too many dimensions");
  Shape shape(dims);
  for (int64_t& dim : shape) {
    DT_TRY(dim, in.Read<int64_t>());
  }
  if (shape != array.shape) {
    return Differs(path, fmt::format("{} has shape {} there and {} here", name, TextOf(shape),
                                     TextOf(array.shape)));
  }
  DT_TRY(const std::string_view bytes, in.Bytes(array.values.size() * sizeof(float)));
  values.resize(array.values.size());
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return OkStatus();
}

Result<std::string> ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return WithWhere(
        NotFound("the dense parameters of the checkpoint cannot be read: {}", std::strerror(errno)),
        path);
  }
  std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return content;
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
  DT_TRY_STATUS(WriteWhole(path, content));
  return CheckpointFile{
      .name = std::string(kName), .bytes = content.size(), .digest = HashBytes(BytesOf(content))};
}

Status Parameters::Load(const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / kName).string();
  DT_TRY(const std::string content, ReadWhole(path));
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
  DT_TRY(const uint32_t arrays, in.Read<uint32_t>());
  if (arrays != arrays_.size()) {
    return Differs(path, fmt::format("it has {} dense arrays, not {}", arrays, arrays_.size()));
  }
  std::vector<std::vector<float>> loaded;
  for (const Array* array : ByName()) {
    DT_TRY_STATUS(ReadArray(in, *array, path, loaded.emplace_back()));
  }
  DT_TRY_STATUS(in.Bytes(sizeof(uint64_t)).status());
  if (!in.at_end()) return in.Damaged("something follows the last array");
  const std::vector<const Array*> sorted = ByName();
  for (size_t i = 0; i < sorted.size(); ++i) {
    // Copied in place: kernels hold no pointer between steps, but views do.
    std::ranges::copy(loaded[i], arrays_[sorted[i] - arrays_.data()].values.begin());
  }
  return OkStatus();
}

}  // namespace dt::worker
