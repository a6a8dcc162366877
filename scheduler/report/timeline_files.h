// Serves timelines of steps over HTTP, as written by workers of this machine (docs/commands.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/net/http/http_server.h"

namespace dt::scheduler {

// "/timeline" returns a page with links to the files in `folder`, "/timeline/worker-3.json" one of
// the files. Empty for other paths, and if there is no such file.
std::optional<HttpReply> TimelineReply(const std::string& folder, std::string_view path);

}  // namespace dt::scheduler
