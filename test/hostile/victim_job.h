// A small real job that is attacked while it trains: the program's own processes on this host, and
// where they can be reached.
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

// Runs a job of some seconds in a folder of its own. `meanwhile` is called again and again, with
// everything that listens, from the time when the job trains until it ends.
VictimEnd RunVictim(const std::function<void(const Targets&)>& meanwhile);
// The checksum of the same job when nobody attacks it; "" if it fails. One process trains it, which
// is quicker and gives the same bits.
const std::string& ChecksumInPeace();

}  // namespace dt::test
