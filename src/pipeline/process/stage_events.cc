#include "pipeline/process/stage_events.h"

#include "pipeline/coordinator/run_events.h"

namespace portico::pipeline {

using events::Event;

StageLabels::StageLabels(std::string_view name, const std::vector<std::string>& targets)
    : stage(events::LabelOf(name)) {
  for (const std::string& target : targets) next.push_back(events::LabelOf(target));
}

StageEvents::StageEvents(const StageLabels* labels, const Request& request)
    : labels_(*labels), key_(events::NextKey()), name_(request.id) {}

void StageEvents::Took(const std::string& source, const Part& part) {
  const bool first = taken_.empty();
  const int64_t number = taken_[source]++;
  if (!events::On()) return;
  events::Name(key_, name_);
  const events::Label peer = source.empty() ? events::kCoordinator : events::LabelOf(source);
  if (first) events::Record(Event::kStageInputReceived, key_, labels_.stage, {.peer = peer});
  if (source.empty()) return;
  events::Record(Event::kStageStreamChunkReceived, key_, labels_.stage,
                 {.peer = peer, .tag = ModalityOf(part), .a = number});
}

void StageEvents::Sent(const Part& part) {
  const int64_t number = sent_++;
  if (!events::On()) return;
  const events::Label modality = ModalityOf(part);
  for (const events::Label peer : labels_.next) {
    const events::Details chunk{.peer = peer, .tag = modality, .a = number};
    if (number == 0) {
      events::Record(Event::kStageHopSent, key_, labels_.stage, {.peer = peer});
      events::Record(Event::kStageFirstStreamChunkSent, key_, labels_.stage, chunk);
    }
    events::Record(Event::kStageStreamChunkSent, key_, labels_.stage, chunk);
  }
}

void StageEvents::Completed() const {
  const bool terminal = !labels_.next.empty() && labels_.next.front() == events::kCoordinator;
  events::Record(
      Event::kStageComplete, key_, labels_.stage,
      {.peer = labels_.next.empty() ? events::Label{0} : labels_.next.front(), .a = terminal});
}

}  // namespace portico::pipeline
