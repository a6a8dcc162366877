#include "scheduler/state/outbox.h"

#include "common/base/written_paths.h"

namespace dt::scheduler {

void Outbox::Send(Incarnation to, ControlMessage message) {
  messages_.push_back({to, std::move(message)});
}

void Outbox::Send(const Member& to, ControlMessage message) {
  Send(to.incarnation(), std::move(message));
}

void Outbox::AddEvent(TimePoint now, std::string kind, Details details) {
  for (auto& [name, detail] : details) {
    if (auto* const text = std::get_if<std::string>(&detail)) *text = WithWrittenPaths(*text);
  }
  events_.push_back({SecondsBetween(begin_, now), std::move(kind), std::move(details)});
}

}  // namespace dt::scheduler
