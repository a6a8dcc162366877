// Ranks find each other through the scheduler.
#pragma once

#include <string>

#include "common/control/control_link.h"
#include "worker/collective/mesh.h"

namespace dt::worker {

class ControlRendezvous : public Rendezvous {
 public:
  explicit ControlRendezvous(ControlLink& link) : link_(link) {}
  Status Put(const std::string& key, std::string value) override {
    link_.Put(key, std::move(value));
    return OkStatus();
  }
  Result<std::string> Get(const std::string& key, Duration timeout) override {
    return link_.Get(key, timeout);
  }

 private:
  ControlLink& link_;
};

}  // namespace dt::worker
