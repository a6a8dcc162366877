#include "worker/data/dataset.h"

#include <algorithm>
#include <cstring>
#include <errno.h>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sys/file.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/pause.h"
#include "common/base/text.h"
#include "worker/data/cache_build.h"
#include "worker/data/mapped_dataset.h"
#include "worker/data/split_source.h"

namespace dt::worker {
namespace {

// Another process may be reading a very large input for the first time.
constexpr Duration kLockTimeout = std::chrono::minutes(60);
constexpr Duration kLockPoll = milliseconds(50);

// The right to build one cache, for one process of this machine at a time. The kernel takes it back
// if the process dies.
class BuildLock {
 public:
  static Result<std::unique_ptr<BuildLock>> Take(const std::string& path) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0) {
      return WithHint(
          Unavailable("{}: the data cache cannot be made: {}", path, std::strerror(errno)),
          "set data.cache_dir to a directory that can be written");
    }
    auto lock = std::make_unique<BuildLock>(file);
    int error = 0;
    const auto locked_or_failed = [&] {
      error = flock(file, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
      return error != EWOULDBLOCK && error != EINTR;
    };
    if (!PollUntil(SystemClock().Now() + kLockTimeout, kLockPoll, locked_or_failed)) {
      return Timeout("{}: another process has been building this data cache for an hour", path);
    }
    if (error != 0) return Unavailable("{}: locking failed: {}", path, std::strerror(error));
    return lock;
  }
  explicit BuildLock(int file) : file_(file) {}
  ~BuildLock() { close(file_); }
  BuildLock(const BuildLock&) = delete;
  BuildLock& operator=(const BuildLock&) = delete;

 private:
  const int file_;
};

// The key shape of libsvm and libffm, if only the data can tell it. It comes from the training
// data, so that all splits agree.
Result<std::optional<KeyShape>> ShapeOfTrain(const DataConfig& config, Split split,
                                             TaskPool& pool) {
  if (split == Split::kTrain || config.train.empty() || config.format == DataFormat::kBinary ||
      !MakeFileFormat(FormatRequestFor(config, split, std::nullopt))->has_key_shape()) {
    return std::optional<KeyShape>();
  }
  const Result<std::unique_ptr<Dataset>> train = Dataset::Open(config, Split::kTrain, pool);
  // A trained model may be evaluated where its training data is absent.
  if (train.status().code() == StatusCode::kNotFound) return std::optional<KeyShape>();
  DT_TRY_STATUS(train.status());
  for (const ColumnSpec& column : (*train)->columns()) {
    if (column.is_keys()) return std::optional(KeyShape{column.length, column.weighted});
  }
  return std::optional<KeyShape>();
}

std::string CacheDir(const DataConfig& config) {
  return config.cache_dir.empty() ? "." : config.cache_dir;
}

// Returns a usable cache, or null; logs why an existing one is not usable.
std::unique_ptr<CacheFile> TryCache(const std::string& path, const SplitSource& source,
                                    TaskPool& pool) {
  Result<std::unique_ptr<CacheFile>> cache = CacheFile::Open(path, pool);
  if (cache.status().code() == StatusCode::kNotFound) return nullptr;
  std::string reason;
  if (!cache.ok()) {
    reason = MessageOf(cache.status());
  } else if ((*cache)->meta().options != source.options_text()) {
    reason = "it was made with other options";
  } else if ((*cache)->meta().sources != source.inputs().sources_text()) {
    reason = "its sources have changed";
  } else {
    return *std::move(cache);
  }
  LogInfo("data.cache.stale", {{"cache", path}, {"reason", reason}});
  return nullptr;
}

std::unique_ptr<Dataset> MakeDataset(std::unique_ptr<CacheFile> cache, const DataConfig& config,
                                     bool from_cache, TimePoint start) {
  const CacheMeta& meta = cache->meta();
  Dataset::OpenStats stats{.from_cache = from_cache, .rows_skipped = meta.rows_skipped};
  stats.seconds = SecondsBetween(start, SystemClock().Now());
  if (meta.rows_skipped > 0) {
    LogWarn("data.rows_skipped",
            {{"count", meta.rows_skipped}, {"kept", meta.rows}, {"first", meta.first_skipped}});
  }
  return std::make_unique<MappedDataset>(std::move(cache), config, stats);
}

// Null: a part without rows.
Result<std::unique_ptr<CacheFile>> BuildAndOpen(SplitSource& source, const DataConfig& config,
                                                const std::string& path, TaskPool& pool) {
  const std::string draft = path + ".new";
  DT_TRY(const uint64_t rows, BuildCache(source, config.on_error, draft, pool));
  if (rows == 0) return nullptr;
  if (rename(draft.c_str(), path.c_str()) != 0) {
    return Unavailable("{}: renaming the new data cache failed: {}", path, std::strerror(errno));
  }
  return CacheFile::Open(path, pool);
}

// A command is run at every open: its cache has a unique name, which is removed at once.
Result<std::unique_ptr<CacheFile>> BuildFromCommand(SplitSource& source, const DataConfig& config,
                                                    const std::string& dir, TaskPool& pool) {
  std::error_code ignored;
  std::filesystem::create_directories(dir, ignored);
  std::string path = dir + "/command.XXXXXX";
  const int file = mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) {
    return WithHint(
        Unavailable("{}: the data cache cannot be made: {}", path, std::strerror(errno)),
        "set data.cache_dir to a directory that can be written");
  }
  close(file);
  const Status built = BuildCache(source, config.on_error, path, pool).status();
  Result<std::unique_ptr<CacheFile>> cache =
      built.ok() ? CacheFile::Open(path, pool) : Result<std::unique_ptr<CacheFile>>(built);
  unlink(path.c_str());
  return cache;
}

Result<std::unique_ptr<Dataset>> OpenBinary(const DataConfig& config, Split split, TaskPool& pool) {
  const TimePoint start = SystemClock().Now();
  const std::vector<std::string>& files = FilesOf(config, split);
  if (files.size() != 1) {
    return Invalid("data.{}: {} files found, one file of format binary expected", NameOf(split),
                   files.size());
  }
  Result<std::unique_ptr<CacheFile>> cache = CacheFile::Open(files[0], pool);
  if (cache.status().code() == StatusCode::kDataLoss) {
    return WithHint(Malformed("{}", MessageOf(cache.status())),
                    "make it again with `dovetail data convert`");
  }
  DT_TRY_STATUS(cache.status());
  return MakeDataset(*std::move(cache), config, true, start);
}

// The data set of a source of files: from its cache, which is built if need be.
Result<std::unique_ptr<Dataset>> OpenCached(SplitSource& source, const DataConfig& config,
                                            Split split, TaskPool& pool) {
  const TimePoint start = SystemClock().Now();
  const std::string dir = CacheDir(config);
  const uint64_t name = HashString(source.options_text() + "\n" + source.inputs().paths_text());
  const std::string path = fmt::format("{}/{}-{}.dtcache", dir, NameOf(split), HexOf(name));
  if (auto cache = TryCache(path, source, pool))
    return MakeDataset(std::move(cache), config, true, start);
  DT_TRY(const std::unique_ptr<BuildLock> lock, BuildLock::Take(path + ".lock"));
  // Another process may have built the cache meanwhile.
  if (auto cache = TryCache(path, source, pool))
    return MakeDataset(std::move(cache), config, true, start);
  DT_TRY(auto cache, BuildAndOpen(source, config, path, pool));
  if (cache == nullptr) {
    return std::make_unique<EmptyDataset>(WithDerived(source.columns(), config));
  }
  auto data = MakeDataset(std::move(cache), config, false, start);
  LogInfo("data.cache.built",
          {{"cache", path}, {"rows", data->rows()}, {"seconds", data->open_stats().seconds}});
  return data;
}

}  // namespace

Result<std::unique_ptr<Dataset>> Dataset::Open(const DataConfig& config, Split split,
                                               TaskPool& pool) {
  const TimePoint start = SystemClock().Now();
  const bool is_command = IsFromCommand(config, split);
  const bool no_data = !is_command && FilesOf(config, split).empty();
  if (config.format == DataFormat::kBinary && !no_data) return OpenBinary(config, split, pool);
  DT_TRY(const std::optional<KeyShape> shape, ShapeOfTrain(config, split, pool));
  if (no_data) return std::make_unique<EmptyDataset>(ColumnsOf(config, split, shape));

  DT_TRY(SplitSource source, SplitSource::Make(config, split, shape));
  if (is_command) {
    DT_TRY(auto cache, BuildFromCommand(source, config, CacheDir(config), pool));
    return MakeDataset(std::move(cache), config, false, start);
  }
  return OpenCached(source, config, split, pool);
}

Result<std::unique_ptr<Dataset>> Dataset::OpenStripe(const DataConfig& config, Split split,
                                                     Stripe stripe, TaskPool& pool) {
  if (FilesOf(config, split).empty()) {
    return std::make_unique<EmptyDataset>(ColumnsOf(config, split, ShapeOfStripes(config)));
  }
  DT_TRY(SplitSource source, SplitSource::Make(config, split, stripe));
  DataConfig of_stripe = config;  // Equal rows of two stripes draw different keys.
  of_stripe.seed = CombinedHash(config.seed, stripe.number);
  return OpenCached(source, of_stripe, split, pool);
}

}  // namespace dt::worker
