// The reports that a process would have to repeat to another scheduler: a restarted scheduler
// knows only what was on its disk, and asks every process to begin a new session, in which it hears
// all of this again. Reports are therefore states: to hear one twice, or late, does no harm.
//
//   DataReady, Ready, Failed, Leaving           kept to the end
//   KvPut                                       until the next view
//   OrderDone                                   until all have done it (OrderMessage::settled), or
//                                               the next view
//   RowsWritten, SplitRequest                   until the next one
//   KvGet, SplitRequest                         until the answer
//   Recalled, ViewReport                        not at all: the scheduler asks again
#pragma once

#include <deque>

#include "common/control/messages.h"

namespace dt {

class Unsettled {
 public:
  // Called with every message to the scheduler. Numbers a SplitRequest. Orders that are given back
  // may come again.
  void OnSent(ControlMessage& message);
  // Called with every message of the scheduler. False: it is a repetition, and is to be dropped.
  bool OnReceived(const ControlMessage& message);
  // In the order in which they were sent.
  const std::deque<ControlMessage>& messages() const { return messages_; }

 private:
  std::deque<ControlMessage> messages_;
  uint64_t last_order_ = 0, last_request_ = 0;
  ViewNumber view_;  // The last one that has begun.
  bool started_ = false;
};

}  // namespace dt
