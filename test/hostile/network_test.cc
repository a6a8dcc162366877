// Goal: a peer that reaches a job's sockets on this host, but is none of its processes, can neither
// end any of them nor change a bit of what the job learns. Method: seeded attackers on raw sockets
// connect to every listening port and every shared-memory socket while a real job trains;
// afterwards its checksums are compared with those of a job without attackers. Daily runs attack
// one job of each kind; DT_HOSTILE_SECONDS says for how long to repeat this, and DT_HOSTILE_SEED
// gives the first seed.
#include <cstdio>
#include <map>

#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "test/hostile/hostile_options.h"
#include "test/hostile/victim_job.h"

namespace dt::test {
namespace {

void AttackWith(const char* kind, std::span<const Attack> attacks) {
  ASSERT_NE(ChecksumInPeace(), "");
  const TimePoint until = SystemClock().Now() + HostileTime();
  uint64_t tries = 0, jobs = 0, failed = 0, other_checksums = 0;
  std::map<std::string, uint64_t> counts;
  uint64_t seed = HostileSeed();
  do {
    Random random(seed);
    const VictimEnd end = RunVictim([&](const Targets& targets) {
      const Attack& attack = attacks[random() % attacks.size()];
      ++counts[attack.name];
      ++tries;
      attack.run(random, targets);
    });
    ++jobs;
    failed += end.program.exit_code != 0;
    other_checksums += end.program.exit_code == 0 && end.checksum != ChecksumInPeace();
    EXPECT_EQ(end.program.exit_code, 0) << end.program.output;
    EXPECT_EQ(end.checksum, ChecksumInPeace());
    if (::testing::Test::HasFailure()) std::printf("again: DT_HOSTILE_SEED=%lu\n", seed);
    ++seed;
  } while (SystemClock().Now() < until && !::testing::Test::HasFailure());
  std::printf(
      "%s, seeds %lu to %lu: %lu tries, %lu jobs, %lu of them failed, %lu other checksums\n", kind,
      HostileSeed(), seed - 1, tries, jobs, failed, other_checksums);
  for (const auto& [name, count] : counts) std::printf("  %6lu %s\n", count, name.c_str());
  EXPECT_GE(counts.size(), attacks.size() / 2) << "the job was too short";
}

TEST(HostileNetwork, TcpConnectionsLeaveAJobAsItIs) { AttackWith("tcp", TcpAttacks()); }
TEST(HostileNetwork, MessagesOfKeyHoldersThatBreakTheRulesLeaveAJobAsItIs) {
  AttackWith("messages", MemberAttacks());
}
TEST(HostileNetwork, SharedMemoryLeavesAJobAsItIs) { AttackWith("shared memory", ShmAttacks()); }

}  // namespace
}  // namespace dt::test
