#include "test/support/net_spaces.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <sched.h>

#include "common/base/check.h"

namespace dt::test {
namespace {

Status Ip(const std::string& command) {
  if (std::system(("ip " + command + " 2>/dev/null").c_str()) == 0) return OkStatus();
  return NotYet("`ip {}` fails", command);
}

Status Unshare() {
  if (unshare(CLONE_NEWNET) == 0) return OkStatus();
  return NotYet("no network namespace can be made: {}", std::strerror(errno));
}

}  // namespace

Result<NetSpaces> NetSpaces::Make(uint32_t count) {
  DT_TRY_STATUS(Unshare());
  DT_TRY_STATUS(Ip("link set lo up"));
  DT_TRY_STATUS(Ip("link add br0 type bridge"));
  DT_TRY_STATUS(Ip(fmt::format("addr add {}/24 dev br0", Address())));
  DT_TRY_STATUS(Ip("link set br0 up"));
  NetSpaces spaces;
  for (uint32_t space = 0; space < count; ++space) DT_TRY_STATUS(spaces.Add());
  return spaces;
}

NetSpaces::~NetSpaces() {
  for (const int descriptor : descriptors_) close(descriptor);
}

Status NetSpaces::Add() {
  const auto space = static_cast<uint32_t>(descriptors_.size());
  Status made;
  int descriptor = -1;
  std::jthread([&] {
    made = Unshare();
    descriptor = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  }).join();
  DT_TRY_STATUS(made);
  descriptors_.push_back(descriptor);
  DT_TRY_STATUS(Ip(fmt::format("link add out{0} type veth peer name in{0}", space)));
  DT_TRY_STATUS(Ip(fmt::format("link set in{} netns /proc/{}/fd/{}", space, getpid(), descriptor)));
  DT_TRY_STATUS(Ip(fmt::format("link set out{} master br0", space)));
  DT_TRY_STATUS(Join(space));
  Run(space, [&] {
    made = Ip("link set lo up");
    made.Update(Ip(fmt::format("addr add {}/24 dev in{}", AddressIn(space), space)));
    made.Update(Ip(fmt::format("link set in{} up", space)));
  });
  return made;
}

void NetSpaces::Run(uint32_t space, const std::function<void()>& what) const {
  std::jthread([&] {
    DT_CHECK(setns(descriptors_[space], CLONE_NEWNET) == 0);
    what();
  }).join();
}

Status NetSpaces::Cut(uint32_t space) const {
  return Ip(fmt::format("link set out{} down", space));
}
Status NetSpaces::Join(uint32_t space) const { return Ip(fmt::format("link set out{} up", space)); }

}  // namespace dt::test
