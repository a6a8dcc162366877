// Notices peers that owe an answer for too long, to messages that they answer at once.
//
// Only the time in which its owner looks for answers counts: a process that stood still, or was
// busy with other things, has to look first. One thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"

namespace dt {

class AnswerWatch {
 public:
  explicit AnswerWatch(Duration limit) : limit_(limit) {}

  // A message has gone to an endpoint of this process; it may owe other answers.
  void OnAsked(ProcessId process, const std::string& endpoint);
  // Something has come from there.
  void OnAnswer(const std::string& endpoint) { waits_.erase(endpoint); }
  // Nothing is expected any more from endpoints that are not among these.
  void KeepOnly(const std::set<std::string>& endpoints);
  // Call it several times in a `limit`, when the answers that have arrived are taken.
  void Pass(TimePoint now);

  bool empty() const { return waits_.empty(); }
  // Processes that have owed an answer for `limit`, at one endpoint or more; ascending.
  std::vector<ProcessId> Silent() const;

 private:
  struct Wait {
    ProcessId process;
    Duration waited{};
  };
  Duration limit_;
  std::map<std::string, Wait> waits_;  // By endpoint.
  std::optional<TimePoint> passed_;    // The last call of Pass.
};

}  // namespace dt
