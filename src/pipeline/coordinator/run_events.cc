#include "pipeline/coordinator/run_events.h"

#include <array>
#include <utility>
#include <variant>

namespace portico::pipeline {

using events::Event;

events::Label ModalityOf(const Part& part) {
  static const std::array<events::Label, std::variant_size_v<Part>> labels = {
      events::LabelOf("text"),  events::LabelOf("file"),     events::LabelOf("audio"),
      events::LabelOf("heard"), events::LabelOf("clip_end"), events::LabelOf("encoded"),
      events::LabelOf("end"),   events::LabelOf("tensor"),   events::LabelOf("tool_call")};
  return labels[part.index()];
}

void RunEvents::Begin(const Request& request) {
  key_ = events::OnThread().key;
  if (key_ == events::kNoKey) key_ = events::NextKey();
  name_ = request.id;  // as its stages' processes call it
}

void RunEvents::AddNode(events::Label stage, bool own_process, bool terminal) {
  Node node;
  node.label = stage;
  node.own_process = own_process;
  node.terminal = terminal;
  nodes_.push_back(std::move(node));
}

bool RunEvents::On() {
  if (!events::On()) return false;
  if (!std::exchange(named_, true)) events::Name(key_, name_);
  return true;
}

int64_t RunEvents::Count(std::vector<int64_t>* counts, size_t at) {
  if (counts->size() <= at) counts->resize(at + 1);
  return (*counts)[at]++;
}

void RunEvents::Admitted(size_t entry) {
  if (On())
    events::Record(Event::kRequestAdmission, key_, events::kCoordinator, {.peer = LabelOf(entry)});
}

void RunEvents::Sent(size_t node, size_t edge, size_t to, bool streams, const Part& part) {
  Node& from = nodes_[node];
  if (from.own_process) return;
  const int64_t number = Count(&from.sent, edge);
  if (!On()) return;
  const events::Label peer = LabelOf(to);
  if (number == 0) events::Record(Event::kStageHopSent, key_, from.label, {.peer = peer});
  if (!streams) return;
  const events::Details chunk{.peer = peer, .tag = ModalityOf(part), .a = number};
  if (number == 0) events::Record(Event::kStageFirstStreamChunkSent, key_, from.label, chunk);
  events::Record(Event::kStageStreamChunkSent, key_, from.label, chunk);
}

void RunEvents::Took(size_t node, size_t source, const Part& part) {
  Node& to = nodes_[node];
  if (to.own_process) return;
  const int64_t number = Count(&to.received_from, source == kClient ? nodes_.size() : source);
  const bool first = !std::exchange(to.received, true);
  if (!On()) return;
  const events::Label peer = LabelOf(source);
  if (first) events::Record(Event::kStageInputReceived, key_, to.label, {.peer = peer});
  if (source == kClient) return;
  events::Record(Event::kStageStreamChunkReceived, key_, to.label,
                 {.peer = peer, .tag = ModalityOf(part), .a = number});
}

void RunEvents::ClientTook(size_t source, const Part& part) {
  const int64_t number = Count(&taken_, source);
  if (!On()) return;
  const events::Details chunk{.peer = LabelOf(source), .tag = ModalityOf(part), .a = number};
  events::Record(Event::kCoordinatorStreamReceived, key_, events::kCoordinator, chunk);
  events::Record(Event::kStageStreamChunkReceived, key_, events::kCoordinator, chunk);
}

void RunEvents::Waits(size_t node) {
  if (On()) events::Record(Event::kSchedulerQueueEnter, key_, nodes_[node].label);
}

void RunEvents::Dispatched(size_t node) {
  if (On()) events::Record(Event::kStageDispatch, key_, nodes_[node].label);
}

void RunEvents::Gathered(size_t node) {
  if (On()) events::Record(Event::kStageAggregateReady, key_, nodes_[node].label);
}

void RunEvents::Completed(size_t node, size_t next) {
  const Node& at = nodes_[node];
  if (at.own_process || !On()) return;
  events::Record(Event::kStageComplete, key_, at.label, {.peer = LabelOf(next), .a = at.terminal});
}

void RunEvents::Ended(size_t from, bool success) {
  if (!On()) return;
  events::Record(Event::kTerminalResponse, key_, events::kCoordinator,
                 {.peer = LabelOf(from), .a = success});
}

}  // namespace portico::pipeline
