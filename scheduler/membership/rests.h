// The rest that workers of a machine keep before they enter a view, if workers of that machine have
// been in the others' way again and again (worker_suspects.h): the way to it may be cut for long,
// and each time that one of them enters, training stands still until it is noticed.
//
// The first time costs nothing. After the second it is a minute, and twice as long after each
// further one, up to 16 minutes. After an hour without another all is forgotten, as it is by a
// scheduler that is started again. Plain state; time is passed in.
#pragma once

#include <map>
#include <string>

#include "common/base/clock.h"

namespace dt::scheduler {

class Rests {
 public:
  // A worker of this machine has had to leave, because it was in the others' way.
  void OnInTheWay(TimePoint now, const std::string& host);
  // How long workers of this machine still wait; 0 if they need not.
  Duration Left(TimePoint now, const std::string& host) const;

 private:
  struct Rest {
    int times = 0;
    TimePoint last{};
  };
  static Duration Length(int times);

  std::map<std::string, Rest> by_host_;
};

}  // namespace dt::scheduler
