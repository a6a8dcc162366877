#include "worker/data/input/remote_files.h"

#include <algorithm>

#include <fnmatch.h>

#include "common/base/broken_pipe.h"
#include "worker/data/arrow/arrow_library.h"

namespace dt::worker {
namespace {

std::string_view SchemeOf(std::string_view uri) { return uri.substr(0, uri.find("://") + 3); }

// What may be wrong outside of the job file.
std::string_view HintFor(std::string_view uri, StatusCode code) {
  if (code == StatusCode::kNotFound) return "check the path in the job file";
  if (uri.starts_with("s3://")) {
    return "credentials are taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE or "
           "the machine's role, the endpoint from AWS_ENDPOINT_URL";
  }
  if (uri.starts_with("gs://")) {
    return "credentials are taken from GOOGLE_APPLICATION_CREDENTIALS or the machine's account";
  }
  return "HDFS needs an installed Hadoop: set HADOOP_HOME, JAVA_HOME and CLASSPATH";
}

// Paths are in logs and data caches, which others may read. Those of Google and Hadoop have the
// name of a user at most.
Status CheckNoSecret(const std::string& uri) {
  const std::string_view scheme = SchemeOf(uri);
  const size_t end = std::min(uri.find('/', scheme.size()), uri.size());
  if (scheme != "s3://" || uri.find('@') >= end) return OkStatus();
  return WithHint(Invalid("a path that starts with s3:// holds credentials, a bucket expected"),
                  HintFor(uri, StatusCode::kUnavailable));
}

Result<ArrowLibrary> LibraryFor(const std::string& uri) {
  DT_TRY_STATUS(CheckNoSecret(uri));
  IgnoreBrokenPipes();  // The client libraries of the file systems report such a write.
  return ArrowLibrary::Open(fmt::format("a path that starts with {}", SchemeOf(uri)));
}

Status RemoteStatus(const ArrowError& error, const std::string& uri) {
  if (error.code == ArrowCode::kOk) return OkStatus();
  const Status status = ToStatus(error, uri);
  return WithHint(status, HintFor(uri, status.code()));
}

class RemoteFile : public RandomFile {
 public:
  RemoteFile(ArrowLibrary library, ArrowOwned<ArrowFile> file, std::string uri, uint64_t size)
      : library_(library), file_(std::move(file)), uri_(std::move(uri)), size_(size) {}

  Result<size_t> ReadAt(uint64_t at, std::span<char> out) const override {
    if (at >= size_) return size_t{0};
    const uint64_t bytes = std::min<uint64_t>(out.size(), size_ - at);
    uint64_t got = 0;
    const ArrowError error = library_->read_file(file_.get(), at, bytes, out.data(), &got);
    DT_TRY_STATUS(RemoteStatus(error, uri_));
    if (got < bytes) {
      return Unavailable("{}: only {} of {} bytes were answered from position {}", uri_, got, bytes,
                         at);
    }
    return static_cast<size_t>(got);
  }
  uint64_t size() const override { return size_; }
  bool is_remote() const override { return true; }

 private:
  const ArrowLibrary library_;
  const ArrowOwned<ArrowFile> file_;
  const std::string uri_;
  const uint64_t size_;
};

}  // namespace

Result<std::shared_ptr<const RandomFile>> OpenRemoteFile(const std::string& uri) {
  DT_TRY(const ArrowLibrary library, LibraryFor(uri));
  ArrowFile* file = nullptr;
  uint64_t size = 0;
  DT_TRY_STATUS(RemoteStatus(library->open_file(uri.c_str(), &file, &size), uri));
  return std::make_shared<RemoteFile>(library, ArrowOwned<ArrowFile>(file, library->close_file),
                                      uri, size);
}

Result<RemoteInfo> DescribeRemoteFile(const std::string& uri) {
  DT_TRY(const ArrowLibrary library, LibraryFor(uri));
  ArrowFileInfo info;
  DT_TRY_STATUS(RemoteStatus(library->describe_file(uri.c_str(), &info), uri));
  return RemoteInfo{uri, info.size, info.modified_ns};
}

Result<std::vector<RemoteInfo>> ListRemoteFiles(const std::string& uri) {
  DT_TRY(const ArrowLibrary library, LibraryFor(uri));
  const std::string path = uri.substr(0, uri.find('?'));
  const size_t pattern = path.find_first_of("*[");
  if (pattern == std::string::npos) {
    DT_TRY(RemoteInfo file, DescribeRemoteFile(uri));
    return std::vector<RemoteInfo>{std::move(file)};
  }
  const std::string folder = path.substr(0, path.rfind('/', pattern) + 1);
  if (folder.size() <= SchemeOf(uri).size()) {
    return Invalid("{}: a pattern found in the name of the bucket, a name expected", uri);
  }
  struct Matches {
    const std::string& path;
    std::vector<RemoteInfo> files;
  } matches{path, {}};
  const auto found = [](void* context, const char* file, const ArrowFileInfo& info) {
    auto& to = *static_cast<Matches*>(context);
    const std::string name = std::string(file).substr(0, std::string_view(file).find('?'));
    if (fnmatch(to.path.c_str(), name.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0) {
      to.files.push_back({file, info.size, info.modified_ns});
    }
  };
  const std::string options = uri.substr(path.size());
  const ArrowError error = library->list_files((folder + options).c_str(), &matches, found);
  DT_TRY_STATUS(RemoteStatus(error, uri));
  if (matches.files.empty()) {
    return WithHint(NotFound("{}: no file of this name found", uri),
                    HintFor(uri, StatusCode::kNotFound));
  }
  std::ranges::sort(matches.files, {}, &RemoteInfo::uri);
  return std::move(matches.files);
}

bool CloseRemoteFiles() {
  if (!ArrowLibrary::IsOpen()) return true;
  const Result<ArrowLibrary> library = ArrowLibrary::Open("");
  return !library.ok() || (*library)->close_file_systems();
}

}  // namespace dt::worker
