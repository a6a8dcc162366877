// Failpoints: named places in the code at which a test ends the process as SIGKILL does, or lets a
// thread stand still for ever. None is armed unless a test arms it, and a place that is not costs a
// look at two variables.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace dt {

// This thread has come to the place; `number` is that of the step or the order. Any thread.
void PassFailpoint(std::string_view place, uint64_t number);

// Arms a place for the whole process if the environment variable DOVETAIL_FAILPOINT is
// "PROCESS:PLACE:NUMBER:FILE" with this process, such as "worker 3:barrier:20:died". The first
// process that comes there makes the file and is killed; with the file there, nothing happens. With
// ":hangs" behind the file, the thread stands still instead. Call it before other threads start.
void ArmFailpoint(std::string_view process);

// For simulations, whose processes are threads: called on this thread at every place.
using FailpointHandler = std::function<void(std::string_view place, uint64_t number)>;
void SetFailpointHandler(FailpointHandler handler);

}  // namespace dt
