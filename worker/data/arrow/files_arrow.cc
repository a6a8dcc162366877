// Files of S3, Google Cloud Storage and HDFS, by Arrow's file systems.
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <string_view>

#include <arrow/filesystem/api.h>
#include <arrow/filesystem/s3fs.h>
#include <arrow/util/future.h>
#include <arrow/util/io_util.h>
#include <arrow/util/thread_pool.h>
#include <arrow/util/uri.h>

#include "common/base/mutex.h"
#include "worker/data/arrow/parts_arrow.h"

namespace dt::worker {
namespace {

// A call that takes longer is given up.
constexpr double kCallSeconds = 60;
// Limits of the libraries below, so that most calls end before with a reason.
constexpr double kConnectSeconds = 5;
constexpr int kAttempts = 3;
constexpr std::string_view kGoogleRetries = "retry_limit_seconds=20";
// Calls at once. A call that was given up keeps its thread until it ends.
constexpr int kThreads = 32;

// ------------------------------------------------------------------ file systems

// A file system, and the path of a URI in it.
struct Located {
  std::shared_ptr<arrow::fs::FileSystem> system;
  std::string path;
  std::string bucket;           // See BucketOf.
  bool has_credentials = true;  // False: requests are anonymous.
};

bool IsS3(std::string_view uri) { return uri.starts_with("s3://"); }

// "bucket" of s3://bucket/key and of gs://anonymous@bucket/key; empty for HDFS, which has none.
std::string BucketOf(std::string_view uri) {
  if (uri.starts_with("hdfs://")) return "";
  uri.remove_prefix(uri.find("://") + 3);
  uri = uri.substr(0, uri.find_first_of("/?"));
  return std::string(uri.substr(uri.find('@') + 1));
}

// The file systems in use, by the part of their URIs without the path. Making one asks the network.
class FileSystems {
 public:
  arrow::Result<Located> Locate(const std::string& uri) {
    const std::string key = WithoutPath(uri);
    {
      MutexLock lock(mutex_);
      const auto known = systems_.find(key);
      if (known != systems_.end()) {
        Located at = known->second;
        ARROW_ASSIGN_OR_RAISE(at.path, at.system->PathFromUri(uri));
        return at;
      }
    }
    ARROW_ASSIGN_OR_RAISE(Located at, IsS3(uri) ? OpenS3(uri) : Open(uri));
    at.bucket = BucketOf(uri);
    MutexLock lock(mutex_);
    systems_.try_emplace(key, at);
    return at;
  }

  // Each call of a library below is between these.
  void BeginCall() { ++calls_; }
  void EndCall() { --calls_; }

  // Returns false if a call still runs.
  bool Close() {
    if (calls_ > 0) return false;
    MutexLock lock(mutex_);
    systems_.clear();
    const arrow::Status ended = arrow::fs::EnsureS3Finalized();
    if (!ended.ok()) ended.Warn();
    return true;
  }

 private:
  // "s3://bucket?query": what decides which file system it is.
  static std::string WithoutPath(const std::string& uri) {
    const size_t authority = uri.find("://") + 3;
    const size_t path = std::min(uri.find('/', authority), uri.find('?', authority));
    const size_t query = uri.find('?');
    return uri.substr(0, path) + (query == std::string::npos ? "" : uri.substr(query));
  }

  static arrow::Result<Located> Open(std::string uri) {
    if (uri.starts_with("gs://") && uri.find("retry_limit_seconds=") == std::string::npos) {
      uri += uri.find('?') == std::string::npos ? "?" : "&";
      uri += kGoogleRetries;
    }
    Located at;
    ARROW_ASSIGN_OR_RAISE(at.system, arrow::fs::FileSystemFromUri(uri, &at.path));
    return at;
  }

  arrow::Result<Located> OpenS3(const std::string& uri) {
    ARROW_RETURN_NOT_OK(StartS3());
    Located at;
    ARROW_ASSIGN_OR_RAISE(auto options, arrow::fs::S3Options::FromUri(uri, &at.path));
    options.connect_timeout = kConnectSeconds;
    options.retry_strategy = arrow::fs::S3RetryStrategy::GetAwsStandardRetryStrategy(kAttempts);
    at.has_credentials = !options.GetAccessKey().empty();
    if (!at.has_credentials) options.ConfigureAnonymousCredentials();
    ARROW_ASSIGN_OR_RAISE(at.system, arrow::fs::S3FileSystem::Make(options));
    return at;
  }

  arrow::Status StartS3() {
    MutexLock lock(start_mutex_);
    if (arrow::fs::IsS3Initialized()) return arrow::Status::OK();
    arrow::fs::S3GlobalOptions options;
    options.log_level = arrow::fs::S3LogLevel::Off;
    return arrow::fs::InitializeS3(options);
  }

  Mutex mutex_;
  std::map<std::string, Located> systems_ DT_GUARDED_BY(mutex_);
  Mutex start_mutex_;
  std::atomic<int> calls_ = 0;
};

FileSystems& Systems() {
  static FileSystems systems;
  return systems;
}

// ------------------------------------------------------------------ calls with a deadline

// Says what failed in words that name what to do about it.
ArrowError FilesError(const arrow::Status& status, std::string_view uri, const Located& at) {
  const std::string text = status.message();
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  const std::string bucket = BucketOf(uri);
  if (has("NO_SUCH_BUCKET") || has("NoSuchBucket") || has("Bucket '" + bucket + "' not found")) {
    return MakeArrowError(ArrowCode::kNotFound, "the bucket \"" + bucket + "\" does not exist");
  }
  // Invalid: the URI.
  if (status.IsKeyError() || status.IsInvalid() ||
      arrow::internal::ErrnoFromStatus(status) == ENOENT) {
    return MakeArrowError(ArrowCode::kNotFound, text);
  }
  if (has("curlCode") || has("NETWORK_CONNECTION")) {
    return MakeArrowError(ArrowCode::kUnavailable, "the endpoint cannot be reached: " + text);
  }
  if (!at.has_credentials && (has("ACCESS_DENIED") || has("HTTP status 403"))) {
    return MakeArrowError(ArrowCode::kUnavailable,
                          "there are no credentials, and without them access is denied");
  }
  return ToArrowError(status, ArrowCode::kUnavailable);
}

// Runs call(at) on another thread and waits for it, but not beyond the deadline. A call that is
// given up goes on, so it owns all that it uses.
template <class T>
ArrowError Bounded(const char* uri, std::function<arrow::Result<T>(Located& at)> call, T& out) {
  static const auto pool = arrow::internal::ThreadPool::MakeEternal(kThreads);
  if (!pool.ok()) return ToArrowError(pool.status(), ArrowCode::kUnavailable);
  struct Outcome {
    Located at;
    arrow::Result<T> result = arrow::Status::UnknownError("not run");
  };
  const auto run = [uri = std::string(uri), call = std::move(call)] {
    Systems().BeginCall();
    auto outcome = std::make_shared<Outcome>();
    const arrow::Status status = Caught([&]() -> arrow::Status {
      ARROW_ASSIGN_OR_RAISE(outcome->at, Systems().Locate(uri));
      ARROW_ASSIGN_OR_RAISE(outcome->result, call(outcome->at));
      return arrow::Status::OK();
    });
    if (!status.ok()) outcome->result = status;
    Systems().EndCall();
    return outcome;
  };
  const auto future = (*pool)->Submit(run);
  if (!future.ok()) return ToArrowError(future.status(), ArrowCode::kUnavailable);
  if (!future->Wait(kCallSeconds)) {
    return MakeArrowError(
        ArrowCode::kTimeout,
        "no answer within " + std::to_string(static_cast<int>(kCallSeconds)) + " s");
  }
  const std::shared_ptr<Outcome>& outcome = *future->result();
  if (!outcome->result.ok()) return FilesError(outcome->result.status(), uri, outcome->at);
  out = std::move(*outcome->result);
  return {};
}

// ------------------------------------------------------------------ the table's functions

// A KeyError: the path names no file.
arrow::Status NotThere(const Located& at) {
  if (!at.bucket.empty()) {
    ARROW_ASSIGN_OR_RAISE(const auto bucket, at.system->GetFileInfo(at.bucket));
    if (bucket.type() == arrow::fs::FileType::NotFound) {
      return arrow::Status::KeyError("the bucket \"", at.bucket, "\" does not exist");
    }
  }
  return arrow::Status::KeyError("the file does not exist");
}

ArrowFileInfo InfoOf(const arrow::fs::FileInfo& info) {
  return {.size = static_cast<uint64_t>(info.size()),
          .modified_ns = info.mtime().time_since_epoch().count()};
}

arrow::Result<ArrowFileInfo> Describe(Located& at) {
  ARROW_ASSIGN_OR_RAISE(const auto info, at.system->GetFileInfo(at.path));
  if (info.type() == arrow::fs::FileType::NotFound) return NotThere(at);
  if (!info.IsFile()) {
    return arrow::Status::KeyError("a folder found, a file or a pattern such as folder/* expected");
  }
  return InfoOf(info);
}

ArrowError DescribeFile(const char* uri, ArrowFileInfo* out) {
  return Bounded<ArrowFileInfo>(uri, Describe, *out);
}

// A path with the characters replaced that the path of a URI cannot have (RFC 3986, 3.3), and no
// others, so that it matches patterns as users write them.
std::string Escaped(std::string_view path) {
  constexpr std::string_view kAllowed = "-._~!$&'()*+,;=:@/";
  std::string out;
  for (const char c : path) {
    const bool allowed = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                         (c >= 'a' && c <= 'z') || kAllowed.find(c) != std::string_view::npos;
    out += allowed ? std::string(1, c) : arrow::util::UriEscape({&c, 1});
  }
  return out;
}

struct FoundFile {
  std::string path;
  ArrowFileInfo info;
};

ArrowError ListFiles(const char* uri, void* context,
                     void (*found)(void* context, const char* file, const ArrowFileInfo& info)) {
  using Files = std::vector<FoundFile>;
  const auto list = [folder = std::string(uri)](Located& at) -> arrow::Result<Files> {
    const size_t query = std::min(folder.find('?'), folder.size());
    std::string base = folder.substr(0, query);
    if (!base.ends_with('/')) base += '/';
    arrow::fs::FileSelector selector;
    selector.base_dir = at.path;
    selector.recursive = true;
    ARROW_ASSIGN_OR_RAISE(const auto infos, at.system->GetFileInfo(selector));
    Files files;
    for (const auto& info : infos) {
      if (!info.IsFile()) continue;
      std::string_view below = std::string_view(info.path()).substr(at.path.size());
      while (below.starts_with('/')) below.remove_prefix(1);
      files.push_back({base + Escaped(below) + folder.substr(query), InfoOf(info)});
    }
    return files;
  };
  Files files;
  const ArrowError error = Bounded<Files>(uri, list, files);
  for (const FoundFile& file : files) found(context, file.path.c_str(), file.info);
  return error;
}

}  // namespace

struct ArrowFile {
  std::string uri;
  std::shared_ptr<arrow::io::RandomAccessFile> file;
};

namespace {

struct SizedFile {
  std::shared_ptr<arrow::io::RandomAccessFile> file;
  int64_t size = 0;
};

ArrowError OpenFile(const char* uri, ArrowFile** out, uint64_t* size) {
  const auto open = [](Located& at) -> arrow::Result<SizedFile> {
    SizedFile opened;
    ARROW_ASSIGN_OR_RAISE(opened.file, at.system->OpenInputFile(at.path));
    ARROW_ASSIGN_OR_RAISE(opened.size, opened.file->GetSize());
    return opened;
  };
  SizedFile opened;
  const ArrowError error = Bounded<SizedFile>(uri, open, opened);
  if (error.code != ArrowCode::kOk) return error;
  *size = static_cast<uint64_t>(opened.size);
  *out = std::make_unique<ArrowFile>(ArrowFile{uri, std::move(opened.file)}).release();
  return {};
}

ArrowError ReadFile(ArrowFile* file, uint64_t at, uint64_t bytes, void* out, uint64_t* got) {
  using Buffer = std::shared_ptr<arrow::Buffer>;
  const auto read = [from = file->file, at, bytes](Located&) {
    return from->ReadAt(static_cast<int64_t>(at), static_cast<int64_t>(bytes));
  };
  Buffer buffer;
  const ArrowError error = Bounded<Buffer>(file->uri.c_str(), read, buffer);
  if (error.code != ArrowCode::kOk) return error;
  *got = static_cast<uint64_t>(buffer->size());
  std::memcpy(out, buffer->data(), *got);
  return {};
}

void CloseFile(ArrowFile* file) { delete file; }

bool CloseFileSystems() { return Systems().Close(); }

}  // namespace

void FillFiles(ArrowTable& table) {
  table.describe_file = DescribeFile;
  table.list_files = ListFiles;
  table.open_file = OpenFile;
  table.read_file = ReadFile;
  table.close_file = CloseFile;
  table.close_file_systems = CloseFileSystems;
}

}  // namespace dt::worker
