#include "common/control/key_files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/pause.h"
#include "common/base/text.h"
#include "common/storage/files.h"

namespace dt {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFileBytesMax = 4096;
constexpr Duration kPause = milliseconds(50);

// Writes the whole file or nothing. Invalid if `path` exists: no file is replaced.
Status WriteNew(const std::string& path, const std::string& text, Readers readers) {
  const std::string draft = fmt::format("{}.{}", path, getpid());
  DT_TRY_STATUS(WriteWholeFile(draft, text, readers));
  const bool named = link(draft.c_str(), path.c_str()) == 0;
  const int why = errno;
  unlink(draft.c_str());
  if (named) return OkStatus();
  if (why != EEXIST) return DiskError("writing", path, why);
  return WithHint(Invalid("{} exists already", path), "remove it first, or take another name");
}

// Reads the text of a key file. Invalid if it holds a secret that other accounts can read or
// change.
Result<std::string> ReadPrivate(const std::string& path) {
  const Result<OpenFile> file = OpenForReading(path);
  if (file.status().code() == StatusCode::kNotFound) {
    return WithHint(Invalid("there is no key {}", path),
                    "make one with `dovetail keygen`, or correct the name");
  }
  DT_TRY_STATUS(file.status());
  DT_TRY(std::string text, ReadWholeFile(path, kFileBytesMax));
  struct stat about {};
  const bool known = fstat(file->descriptor(), &about) == 0;
  const bool ours = known && (about.st_uid == geteuid() || about.st_uid == 0);
  const bool open = !ours || (about.st_mode & 077) != 0;
  if (text.find("secret") != std::string::npos && open) {
    return WithHint(
        Invalid("the key {} can be read or changed by other accounts", path),
        fmt::format("chmod 600 {}, as the account that runs the job; if others may have "
                    "read it, make another",
                    path));
  }
  return text;
}

// The job's pair. The secret is missing if only the public key was copied to this machine.
Result<KeyPair> JobKey(const JobConfig& job, const SocketNeeds& needs) {
  if (!job.security.curve.key.empty()) return ReadKeyFile(job.security.curve.key);
  const std::string path = DefaultKeyFile(job);
  const TimePoint deadline = SystemClock().Now() + needs.timeout;
  std::error_code ignored;
  if (needs.makes_keys && !fs::exists(path, ignored)) {
    const std::string stem = path.substr(0, path.size() - std::strlen(".key"));
    fs::remove(stem + ".pub", ignored);
    // Another process may create the pair at the same time; then that pair is used.
    const Status made = WriteKeyFiles(stem, MakeKeyPair());
    if (!made.ok() && !fs::exists(path, ignored)) return made;
  }
  bool found = false;
  const auto found_or_stopped = [&] {
    found = fs::exists(path, ignored);
    return found || needs.stop.stop_requested();
  };
  if (!PollUntil(deadline, kPause, found_or_stopped)) {
    return WithHint(Unavailable("there is no key {}, which the job's scheduler makes", path),
                    "start the scheduler; on another machine, copy its key there or name one "
                    "with security.curve.key");
  }
  if (!found) return Cancelled("stopped on request");
  return ReadKeyFile(path);
}

}  // namespace

Status WriteKeyFiles(const std::string& stem, const KeyPair& pair) {
  const fs::path folder = fs::path(stem).parent_path();
  if (!folder.empty()) DT_TRY_STATUS(MakePrivateFolder(folder.string()));
  DT_TRY_STATUS(WriteNew(stem + ".key",
                         fmt::format("public {}\nsecret {}\n", pair.public_key, pair.secret_key),
                         Readers::kOwner));
  return WriteNew(stem + ".pub", fmt::format("public {}\n", pair.public_key), Readers::kAll);
}

Result<KeyPair> ReadKeyFile(const std::string& path) {
  DT_TRY(const std::string text, ReadPrivate(path));
  KeyPair pair;
  bool well_formed = true;
  for (const std::string_view line : SplitText(text, '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    const size_t space = line.find(' ');
    const std::string value(line.substr(space == std::string_view::npos ? line.size() : space + 1));
    std::string& key = line.starts_with("secret ") ? pair.secret_key : pair.public_key;
    well_formed = well_formed && IsKey(value) && key.empty() &&
                  (line.starts_with("secret ") || line.starts_with("public "));
    key = value;
  }
  well_formed = well_formed && !pair.public_key.empty() &&
                (pair.secret_key.empty() || PublicKeyOf(pair.secret_key) == pair.public_key);
  if (well_formed) return pair;
  return WithHint(Invalid("{} is not a key of Dovetail", path), "make one with `dovetail keygen`");
}

std::string DefaultKeyFile(const JobConfig& job) { return job.run_dir + "/keys/job.key"; }

Result<ZmqOptions> SocketOptionsOf(const JobConfig& job, const SocketNeeds& needs) {
  if (job.security.insecure) return ZmqOptions{.insecure = true};
  CurveOptions curve;
  DT_TRY(curve.job, JobKey(job, needs));
  curve.own = curve.job;
  if (!job.security.curve.own.empty()) {
    DT_TRY(curve.own, ReadKeyFile(job.security.curve.own));
  }
  if (curve.own.secret_key.empty()) {
    return WithHint(Invalid("this process has no secret key to connect with"),
                    "name its own pair with security.curve.own");
  }
  if (needs.listens && curve.job.secret_key.empty()) {
    return WithHint(Invalid("servers and the scheduler need the secret key of the job"),
                    "name the file .key of the job with security.curve.key, not .pub");
  }
  for (const std::string& path : job.security.curve.allow) {
    DT_TRY(const KeyPair allowed, ReadKeyFile(path));
    curve.allowed.push_back(allowed.public_key);
  }
  return ZmqOptions{.curve = std::move(curve)};
}

}  // namespace dt
