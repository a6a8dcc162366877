// Small values that processes leave for each other by key. A plain state machine.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/control/messages.h"

namespace dt::scheduler {

// The state of the rendezvous; a part of the job's record.
struct RendezvousRecord {
  std::map<std::string, std::string> values;
  // Processes that asked for a key before it was put.
  std::map<std::string, std::set<Incarnation>> waiting;
  uint64_t bytes = 0;  // Total size of keys and values.
  DT_FIELDS(values, waiting, bytes)
};

class Rendezvous {
 public:
  struct Answer {
    Incarnation to;
    KvValueMessage message;
  };
  // REQUIRES: `record` outlives this object.
  explicit Rendezvous(RendezvousRecord& record) : record_(record) {}

  // Sets the key's value, new or not, and returns answers to the processes that wait for it.
  // Errors: Busy, if the values are too large together.
  Result<std::vector<Answer>> Put(KvPutMessage put);
  // Returns the answer if the key has a value; otherwise Put will.
  std::vector<Answer> Get(Incarnation from, const KvGetMessage& get);

 private:
  RendezvousRecord& record_;
};

}  // namespace dt::scheduler
