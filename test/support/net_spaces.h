// Network namespaces on one bridge: each is a machine of its own as far as the network goes, with a
// link that can be cut. The calling process is moved into a new one first, which has the bridge, so
// nothing of the machine's own network is seen or changed. All of it is gone when the process ends.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace dt::test {

class NetSpaces {
 public:
  // Makes `count` of them. Call it in the main thread, before others are started. Errors: NotYet,
  // with the reason, where this is not permitted or `ip` is missing.
  static Result<NetSpaces> Make(uint32_t count);
  ~NetSpaces();
  NetSpaces(NetSpaces&&) = default;
  NetSpaces& operator=(NetSpaces&&) = delete;

  // Addresses without ports: of the calling process, and in the spaces.
  static std::string Address() { return "10.77.0.1"; }
  static std::string AddressIn(uint32_t space) { return "10.77.0." + std::to_string(10 + space); }
  // Runs `what` in a thread that is in the space, as are processes that it starts; waits for it.
  void Run(uint32_t space, const std::function<void()>& what) const;
  // Nothing gets in or out of the space until it is joined again.
  Status Cut(uint32_t space) const;
  Status Join(uint32_t space) const;

 private:
  NetSpaces() = default;
  Status Add();

  std::vector<int> descriptors_;  // Of the spaces.
};

}  // namespace dt::test
