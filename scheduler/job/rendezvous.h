// Small values that processes leave for each other by key. A plain state machine.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/control/messages.h"

namespace dt::scheduler {

// All that the rendezvous has to remember.
struct RendezvousRecord {
  std::map<std::string, std::string> values;
  std::map<std::string, std::set<Incarnation>>
      waiting;         // Who has asked for a key that is not there.
  uint64_t bytes = 0;  // Sum over everything that was put.
  DT_FIELDS(values, waiting, bytes)
};

class Rendezvous {
 public:
  struct Answer {
    Incarnation to;
    KvValueMessage message;
  };
  // REQUIRES: `record` outlives the rendezvous.
  explicit Rendezvous(RendezvousRecord& record) : record_(record) {}

  // Answers those who wait for the key. A key that is there already takes the new value. Busy when
  // too much is kept.
  Result<std::vector<Answer>> Put(KvPutMessage put);
  // At once if the key is there, else as soon as it is.
  std::vector<Answer> Get(Incarnation from, const KvGetMessage& get);

 private:
  RendezvousRecord& record_;
};

}  // namespace dt::scheduler
