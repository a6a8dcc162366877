// A small real job that is attacked while it trains: the program's own processes on this host, and
// their addresses.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "test/hostile/attack.h"
#include "test/support/tiny_job.h"

namespace dt::test {

struct VictimEnd {
  ProgramEnd program;
  std::string checksum;
};

// Runs a job of some seconds in a folder of its own. While the job trains, `meanwhile` is called
// repeatedly with all addresses at which its processes listen.
VictimEnd RunVictim(const std::function<void(const Targets&)>& meanwhile);
// The checksum of the same job without attackers; "" if it fails. A single process trains it, which
// is faster and gives the same bits.
const std::string& ChecksumInPeace();

}  // namespace dt::test
