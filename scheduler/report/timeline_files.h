// The timelines of steps that workers of this machine have written (docs/commands.md), over HTTP.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/net/http/http_server.h"

namespace dt::scheduler {

// "/timeline" is a page with a link to each file in `folder`, "/timeline/worker-3.json" is one of
// them. Nothing for other paths, and while there is no such file.
std::optional<HttpReply> TimelineReply(const std::string& folder, std::string_view path);

}  // namespace dt::scheduler
