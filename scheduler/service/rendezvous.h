// Small values that processes leave for each other by key. A plain state machine.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/control/messages.h"

namespace dt::scheduler {

class Rendezvous {
 public:
  struct Answer {
    Incarnation to;
    KvValueMessage message;
  };
  // Answers those who wait for the key. A key that is there already takes the new value. Busy when
  // too much is kept.
  Result<std::vector<Answer>> Put(KvPutMessage put);
  // At once if the key is there, else as soon as it is.
  std::vector<Answer> Get(Incarnation from, const KvGetMessage& get);

 private:
  std::map<std::string, std::string> values_;
  std::map<std::string, std::set<Incarnation>> waiting_;
  uint64_t bytes_ = 0;
};

}  // namespace dt::scheduler
