// The kinds of processes of a job.
#pragma once

#include <cstdint>
#include <string_view>

namespace dt {

enum class Role : uint8_t { kScheduler, kServer, kWorker };
std::string_view NameOf(Role role);

}  // namespace dt
