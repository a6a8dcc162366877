// Files of remote file systems, by their URIs: s3://bucket/key, gs://bucket/key, hdfs://host/path.
//
// What follows '?' in a URI sets options, such as s3://bucket/key?region=eu-west-1 or
// ?endpoint_override=host:port&scheme=http. Every call ends within a deadline. Errors: NotFound if
// the bucket or the file is absent; Unavailable or Timeout if the file system cannot be reached or
// denies access, or if this build cannot read it (ArrowLibrary::Open). If SIGPIPE would end the
// process, the process ignores it from the first call on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/input/random_file.h"

namespace dt::worker {

Result<std::shared_ptr<const RandomFile>> OpenRemoteFile(const std::string& uri);

struct RemoteInfo {
  std::string uri;
  uint64_t size = 0;
  int64_t modified_ns = 0;  // Since 1970; 0: unknown. Listings may tell finer times.
};

Result<RemoteInfo> DescribeRemoteFile(const std::string& uri);

// The files that a URI names, sorted. In its path '*' and […] match inside one folder, as in globs;
// '?' is no pattern, since it starts the options. NotFound if there is no such file.
Result<std::vector<RemoteInfo>> ListRemoteFiles(const std::string& uri);

// Ends all use of remote files: call it before the process ends. Returns false if a call that was
// given up still runs; the process must then end without destroying static objects, which the call
// may use.
[[nodiscard]] bool CloseRemoteFiles();

}  // namespace dt::worker
